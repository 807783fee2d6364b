/** The sockets of a run: their number and their trusted certificates. */
import { readFileSync } from 'node:fs';
import { errnoOf, usage } from '../../model/errors.js';
import { hostOf } from '../fetch.js';
import type { Clock } from '../../model/clock.js';
import type { Layer } from '../fetch.js';
import { underWay } from '../throttle/under-way.js';
import type { UnderWayOptions } from '../throttle/under-way.js';
import type { Connection, PoolOptions } from './pool.js';
import type { SharedResources } from '../../model/shared-resources.js';

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
