/** Requests to addresses that the user chose: outside of the request stack, without throttle, breaker and log. */
import { mapWireError } from '../http/transport/error-map.js';
import { createPools } from '../http/transport/pool.js';
import type { Pools } from '../http/transport/pool.js';
import { authoritiesOf } from '../http/transport/sockets.js';
import { USER_AGENT } from '../http/transport/sent-request.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError } from '../model/errors.js';
import type { ErrorCode } from '../model/errors.js';
import { durationText } from '../model/units.js';
import { proxiesOf } from '../options/environment.js';
import type { Surroundings } from '../options/environment.js';
import type { Options } from '../options/flags.js';

export interface NotifyOptions {
  readonly url: string;
  readonly options: Options;
  readonly surroundings: Surroundings;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** The end of a run waits for a message, so it is not tried through all of many proxies. */
const MOST_PROXIES = 3;

/** One for each of several proxies. Throws a usage error for a --ca-file that cannot be read. */
export function openPools({ options, surroundings, clock }: NotifyOptions): readonly Pools[] {
  const proxies = proxiesOf(options.proxy, surroundings);
  const { several, http } = proxies;
  return (several.length > 0 ? several : [http]).slice(0, MOST_PROXIES).map((proxy) =>
    createPools({
      connections: 1,
      keepAliveMs: options.keepAliveMs,
      connectTimeoutMs: options.connectTimeoutMs,
      http2: false,
      authorities: authoritiesOf(options.caFile),
      proxies: several.length > 0 ? { ...proxies, http: proxy, https: proxy } : proxies,
      clock,
    }),
  );
}

export async function closePools(pools: readonly Pools[]): Promise<void> {
  await Promise.all(pools.map((pool) => pool.close()));
}

export interface SendOptions {
  /** Tried in this order while the proxies do not work. */
  readonly pools: readonly Pools[];
  readonly clock: Pick<Clock, 'monotonic' | 'timer'>;
  /** All tries together. */
  readonly timeoutMs: number;
}

/** The request did not reach its host, or the proxy did not answer in time. */
const NEXT_PROXY: ReadonlySet<ErrorCode> = new Set([
  'proxy-unreachable',
  'proxy-refused',
  'connect-failed',
  'connect-timeout',
  'total-timeout',
]);

/**
 * Resolves with the status of the answer: to a POST with the JSON, otherwise to a GET. Rejects with a typed error that names the
 * host but not the path, because the path may be a secret.
 */
export async function send(
  { pools, clock, timeoutMs }: SendOptions,
  url: string,
  json?: object,
): Promise<number> {
  const endsAt = clock.monotonic() + timeoutMs;
  for (let at = 0; ; at += 1) {
    const pool = pools[at];
    if (pool === undefined) throw new CryptodlError('bug', 'there is no connection for a message');
    const left = pools.length - at;
    try {
      return await sendOnce({ pool, clock, timeoutMs: (endsAt - clock.monotonic()) / left }, url, json);
    } catch (error) {
      const isOfProxy = error instanceof CryptodlError && NEXT_PROXY.has(error.code);
      if (left === 1 || !isOfProxy) throw error;
    }
  }
}

interface OneTry extends Pick<SendOptions, 'timeoutMs'> {
  readonly pool: Pools;
  readonly clock: Pick<Clock, 'timer'>;
}

async function sendOnce({ pool, clock, timeoutMs }: OneTry, url: string, json?: object): Promise<number> {
  const { origin, pathname, search, host } = new URL(url);
  const stop = new AbortController();
  const timer = clock.timer(timeoutMs, () => {
    stop.abort(new CryptodlError('total-timeout', `${host}: no answer within ${durationText(timeoutMs)}`));
  });
  try {
    const { statusCode, body } = await pool.of(origin).request({
      origin,
      path: pathname + search,
      headers: { 'user-agent': USER_AGENT },
      method: 'GET',
      signal: stop.signal,
      ...(json === undefined
        ? {}
        : {
            method: 'POST',
            headers: { 'user-agent': USER_AGENT, 'content-type': 'application/json' },
            body: JSON.stringify(json),
          }),
    });
    await body.dump();
    return statusCode;
  } catch (error) {
    throw mapWireError(
      error instanceof Error ? error : new Error(String(error)),
      origin,
      pool.proxyOf(origin),
    );
  } finally {
    timer.cancel();
  }
}

/** undici gives no final status below 200. */
export function isAccepted(status: number): boolean {
  return status < 300;
}
