/** The sockets of a run: their number, the trusted certificates, and the bandwidth. */
import { readFileSync } from 'node:fs';
import type { Clock } from '../../model/clock.js';
import { errnoOf, usage } from '../../model/errors.js';
import { reasonOf } from '../../text/path-faults.js';
import type { SharedResources } from '../../model/io.js';
import { hostOf } from '../fetch.js';
import type { Layer } from '../fetch.js';
import { limitInFlight } from '../throttle/in-flight.js';
import type { InFlightOptions } from '../throttle/in-flight.js';
import type { Connection, PoolOptions } from './pool.js';

/** Sockets for the listing, besides two per object in flight (zip and sidecar). */
const SPARE_SOCKETS = 8;

interface SocketLimits {
  /** Sockets of the run at most. */
  readonly poolLimit: number | undefined;
  readonly poolLimitPerHost: number | undefined;
  /** Objects in flight at most. */
  readonly mostInFlight: number;
}

export interface SocketOptions extends SocketLimits {
  readonly keepAliveMs: number;
  readonly connectTimeoutMs: number;
  readonly http2: boolean;
  /** Path of a PEM file with further trusted authorities. */
  readonly caFile: string | undefined;
}

interface SocketScope {
  readonly options: SocketOptions;
  readonly clock: Clock;
  readonly proxies: PoolOptions['proxies'];
  readonly common?: SharedResources | undefined;
}

/** The layer in which requests wait for a socket. In the queue of undici, the wait would spend their timeouts. */
export function withSockets({ options, clock, common }: SocketScope): Layer {
  const { poolLimit: most, poolLimitPerHost: mostPerHost } = options;
  const limited = (name: string, limit: Omit<InFlightOptions, 'clock'>): Layer => {
    const make = (): Layer => limitInFlight({ clock, ...limit });
    return common?.once(`${name} ${limit.most}`, make) ?? make();
  };
  const ofHost: Layer[] =
    mostPerHost === undefined
      ? []
      : [
          limited('sockets of a host', {
            most: mostPerHost,
            groupOf: ({ url }) => hostOf(url),
            wait: 'socket-of-host',
          }),
        ];
  const ofAll: Layer[] =
    most === undefined ? [] : [limited('sockets', { most, groupOf: () => '', wait: 'socket' })];
  return (next) => [...ofHost, ...ofAll].reduceRight((inner, layer) => layer(inner), next);
}

export function socketsPerHost({ poolLimit, poolLimitPerHost, mostInFlight }: SocketLimits): number {
  const most = poolLimit ?? Number.POSITIVE_INFINITY;
  return Math.min(poolLimitPerHost ?? mostInFlight * 2 + SPARE_SOCKETS, most);
}

export function poolOptions({ options, clock, proxies, common }: SocketScope): PoolOptions {
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

const PEM = 'give a file in PEM form (-----BEGIN CERTIFICATE-----)';

/** The content of a PEM file. Throws `usage` if it cannot be read or has no certificate. */
export function authoritiesOf(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw usage(`--ca-file: cannot read ${file} (${reasonOf(errnoOf(error))})`, PEM);
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw usage(`--ca-file: ${file} holds no certificate`, PEM);
}

// The limit of received bytes per second, for all connections together (`--bwlimit`).

export interface Bandwidth {
  /** Counts received bytes. The caller must not read on before the returned promise is fulfilled. */
  take(bytes: number): Promise<void> | undefined;
}

export const UNLIMITED: Bandwidth = { take: () => undefined };

/** A shorter wait is added to the wait of a later chunk, because a timer would cost more than the wait. Milliseconds. */
const LEAST_WAIT_MS = 5;

/**
 * Each received chunk takes its share of time. The next read waits until that time is over. Connections of several runs that share
 * `used` share the limit.
 */
export function limitBandwidth(
  bytesPerSecond: number,
  clock: Clock,
  signal: AbortSignal,
  used = { untilMs: clock.monotonic() },
): Bandwidth {
  return {
    take: (bytes) => {
      const now = clock.monotonic();
      used.untilMs = Math.max(used.untilMs, now) + (bytes / bytesPerSecond) * 1000;
      const waitMs = used.untilMs - now;
      return waitMs < LEAST_WAIT_MS ? undefined : clock.sleep(waitMs, signal);
    },
  };
}
