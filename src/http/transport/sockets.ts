/** The sockets of a run: their number, the trusted certificates, and the bandwidth. */
import { readFileSync } from 'node:fs';
import type { Clock } from '../../model/clock.js';
import { errnoOf, usage } from '../../model/errors.js';
import { reasonOf } from '../../text/path-faults.js';
import type { SharedResources } from '../../model/io.js';
import { hostOf } from '../../model/fetch.js';
import type { FetchRequest, Layer, Wait } from '../../model/fetch.js';
import type { Meter } from '../throttle/meter.js';
import { QuotaBucket } from '../throttle/quota-bucket.js';
import type { Connection, PoolOptions } from './pool.js';

/** Sockets for the listing, besides two per object in flight (zip and sidecar). */
const SPARE_SOCKETS = 8;

interface SocketLimits {
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
  const limited = (
    most: number | undefined,
    wait: Wait,
    groupOf: (request: FetchRequest) => string = () => '',
  ): Layer => {
    if (most === undefined) return (next) => next;
    const make = (): Layer => limitInFlight({ clock, most, groupOf, wait });
    return common?.once(`${wait} ${most}`, make) ?? make();
  };
  const ofHost = limited(options.poolLimitPerHost, 'socket-of-host', ({ url }) => hostOf(url));
  const ofAll = limited(options.poolLimit, 'socket');
  return (next) => ofHost(ofAll(next));
}

interface InFlightOptions {
  readonly clock: Clock;
  /** Requests in flight at most, in each group. */
  readonly most: number;
  /** The group of a request, for example its host. */
  readonly groupOf: (request: FetchRequest) => string;
  readonly wait: Wait;
}

/** The layer: a request in flight holds a permit. It stands outside of `timeout`, so waiting spends no timeout. */
export function limitInFlight({ clock, most, groupOf, wait }: InFlightOptions): Layer {
  const groups = new Map<string, QuotaBucket>();
  return (next) => async (request, context) => {
    const name = groupOf(request);
    const slots =
      groups.get(name) ??
      new QuotaBucket({ clock, name, meter: slotMeter(most), maxWaitMs: Number.POSITIVE_INFINITY });
    groups.set(name, slots);
    const { signal, waitSignal, onWait } = context;
    const { priority = 'normal' } = request;
    const permit = { weight: 1, priority, onWait: onWait && (() => onWait(wait)) };
    await slots.take(permit, signal, waitSignal);
    try {
      signal.throwIfAborted();
      return await next(request, context);
    } finally {
      slots.giveBack(1);
    }
  };
}

/** Counts the requests that are in flight. A permit becomes free only when one of them ends. */
function slotMeter(most: number): Meter {
  let free = most;
  return {
    most,
    take: () => {
      if (free === 0) return Number.POSITIVE_INFINITY;
      free -= 1;
      return 0;
    },
    giveBack: () => {
      free += 1;
    },
    onExhausted: () => undefined,
  };
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
