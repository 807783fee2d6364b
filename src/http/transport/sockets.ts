/** The sockets of a run: their number, their trusted certificates, and their bandwidth. */
import { readFileSync } from 'node:fs';
import type { Clock } from '../../model/clock.js';
import { errnoOf, usage } from '../../model/errors.js';
import type { SharedResources } from '../../model/io.js';
import { hostOf } from '../fetch.js';
import type { Layer } from '../fetch.js';
import { underWay } from '../throttle/under-way.js';
import type { UnderWayOptions } from '../throttle/under-way.js';
import type { Connection, PoolOptions } from './pool.js';

/** Sockets for the listing, besides two per object in flight (zip and sidecar). */
const SPARE_SOCKETS = 8;

interface SocketLimits {
  /** Sockets of the run. */
  readonly poolLimit: number | undefined;
  readonly poolLimitPerHost: number | undefined;
  /** Objects. */
  readonly mostInFlight: number;
}

export interface SocketOptions extends SocketLimits {
  readonly keepAliveMs: number;
  readonly connectTimeoutMs: number;
  readonly http2: boolean;
  /** Path of a PEM file with further trusted authorities. */
  readonly caFile: string | undefined;
}

interface RunOfSockets {
  readonly options: SocketOptions;
  readonly clock: Clock;
  readonly proxies: PoolOptions['proxies'];
  readonly common?: SharedResources | undefined;
}

/** Requests do not wait in undici's own queue, because that would spend their timeouts. */
export function withSockets({ options, common }: Pick<RunOfSockets, 'options' | 'common'>): Layer {
  const { poolLimit: most, poolLimitPerHost: mostPerHost } = options;
  const limited = (name: string, limit: UnderWayOptions): Layer => {
    const make = (): Layer => underWay(limit);
    return common?.once(`${name} ${limit.most}`, make) ?? make();
  };
  const ofHost: Layer[] =
    mostPerHost === undefined
      ? []
      : [
          limited('sockets of a host', {
            most: mostPerHost,
            placeOf: ({ url }) => hostOf(url),
            wait: 'socket-of-host',
          }),
        ];
  const ofAll: Layer[] =
    most === undefined ? [] : [limited('sockets', { most, placeOf: () => '', wait: 'socket' })];
  return (next) => [...ofHost, ...ofAll].reduceRight((inner, layer) => layer(inner), next);
}

export function socketsPerHost({ poolLimit, poolLimitPerHost, mostInFlight }: SocketLimits): number {
  const most = poolLimit ?? Number.POSITIVE_INFINITY;
  return Math.min(poolLimitPerHost ?? mostInFlight * 2 + SPARE_SOCKETS, most);
}

export function poolOptions({ options, clock, proxies, common }: RunOfSockets): PoolOptions {
  return {
    connections: socketsPerHost(options),
    most: options.poolLimit,
    open: common?.once('open sockets', () => new Set<Connection>()),
    keepAliveMs: options.keepAliveMs,
    connectTimeoutMs: options.connectTimeoutMs,
    http2: options.http2,
    authorities: authoritiesOf(options.caFile),
    proxies,
    clock,
  };
}

export function authoritiesOf(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw usage(`--ca-file: cannot read ${file} (${errnoOf(error)})`);
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw usage(
    `--ca-file: ${file} holds no certificate`,
    'give a file in PEM form (-----BEGIN CERTIFICATE-----)',
  );
}

// The limit of received bytes per second, over all connections (`--bwlimit`).

export interface Bandwidth {
  /** Counts received bytes. The caller must not read on before the returned promise is fulfilled. */
  take(bytes: number): Promise<void> | undefined;
}

export const UNLIMITED: Bandwidth = { take: () => undefined };

/** Shorter sleeps are not worth a timer. The next chunk pays the debt. Milliseconds. */
const LEAST_WAIT_MS = 5;

/** Bytes are paid after their arrival: each chunk waits until earlier chunks are paid. */
export function limitBandwidth(bytesPerSecond: number, clock: Clock, signal: AbortSignal): Bandwidth {
  let paidUntil = clock.monotonic();
  return {
    take: (bytes) => {
      const now = clock.monotonic();
      paidUntil = Math.max(paidUntil, now) + (bytes / bytesPerSecond) * 1000;
      const waitMs = paidUntil - now;
      return waitMs < LEAST_WAIT_MS ? undefined : clock.sleep(waitMs, signal);
    },
  };
}
