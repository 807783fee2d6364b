/** The sockets of a run: their number, the trusted certificates, and the bandwidth. */
import { readFileSync } from 'node:fs';
import type { Clock } from '../../model/clock.js';
import { usage } from '../../model/errors.js';
import { unreadable } from '../../text/path-faults.js';
import type { SharedResources } from '../../model/shared-resources.js';
import type { PoolOptions } from './pool.js';
import type { Connection } from './limited-clients.js';

/** Sockets for the listing, besides two per object in flight (zip and sidecar). */
const SPARE_SOCKETS = 8;

export interface SocketOptions {
  readonly poolLimit: number | undefined;
  readonly poolLimitPerHost: number | undefined;
  /** Objects in flight at most. */
  readonly mostInFlight: number;
  readonly keepAliveMs: number;
  readonly connectTimeoutMs: number;
  readonly http2: boolean;
  /** Path of a PEM file with further trusted authorities. */
  readonly caFile: string | undefined;
}

export interface SocketScope {
  readonly options: SocketOptions;
  readonly clock: Clock;
  readonly proxies: PoolOptions['proxies'];
  readonly common?: SharedResources | undefined;
}

export function socketsPerHost({ poolLimit, poolLimitPerHost, mostInFlight }: SocketOptions): number {
  const most = poolLimit ?? Number.POSITIVE_INFINITY;
  return Math.min(poolLimitPerHost ?? mostInFlight * 2 + SPARE_SOCKETS, most);
}

export function poolOptions({ options, clock, proxies, common }: SocketScope): PoolOptions {
  return {
    ...options,
    connections: socketsPerHost(options),
    most: options.poolLimit,
    open: common?.once('open sockets', () => new Set<Connection>()),
    authorities: authoritiesOf(options.caFile),
    proxies,
    clock,
  };
}

const PEM = 'give a file in PEM form (-----BEGIN CERTIFICATE-----)';

/** The content of a PEM file. Throws `usage` if it cannot be read or has no certificate. */
export function authoritiesOf(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw unreadable('--ca-file', file, error, PEM);
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw usage(`--ca-file: ${file} holds no certificate`, PEM);
}
