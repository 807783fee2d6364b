/** Requests to addresses that the user chose: outside of the request stack, without throttle, breaker and log. */
import { mapWireError } from '../http/transport/error-map.js';
import { createPools } from '../http/transport/pool.js';
import type { Pools } from '../http/transport/pool.js';
import { authoritiesOf } from '../http/transport/sockets.js';
import { USER_AGENT } from '../http/transport/transport.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import { durationText } from '../model/units.js';
import { proxiesOf } from '../options/environment.js';
import type { Surroundings } from '../options/environment.js';
import type { Options } from '../options/flags.js';

/** The end of a run waits for a message, so it is not tried through all of many proxies. */
const MOST_PROXIES = 3;

/** One for each of several proxies. Throws a usage error for a --ca-file that cannot be read. */
export function openPools(options: Options, surroundings: Surroundings, clock: Clock): readonly Pools[] {
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

/** The end of a run waits for its messages: so long for all attempts, and for one. */
export const LIMIT_MS = 10_000;
const ATTEMPT_MS = 5000;
/** The delay before each further attempt. */
const DELAYS_MS = [250, 500, 1000];

/** A text, or an object as JSON. */
export type Content = string | object;

/**
 * Sends a POST with the content, otherwise a GET, until the receiver answers with 2xx. Each attempt takes the next of `pools`, because a proxy
 * may not work. Rejects with the typed error of the last attempt, which names the host but not the path, because the path may be a secret.
 */
export async function send(
  pools: readonly Pools[],
  clock: Clock,
  url: string,
  content?: Content,
): Promise<void> {
  const endsAt = clock.monotonic() + LIMIT_MS;
  for (let attempt = 0; ; attempt += 1) {
    const pool = pools[attempt % pools.length];
    if (pool === undefined) throw new CryptodlError('bug', 'there is no connection for a message');
    try {
      const timeoutMs = Math.min(ATTEMPT_MS, endsAt - clock.monotonic());
      await sendOnce(pool, { clock, timeoutMs }, url, content);
      return;
    } catch (thrown) {
      const error = toCryptodlError(thrown);
      // Some receivers of pings know only GET.
      if (error.code === 'http-refused' && typeof content === 'string') return send(pools, clock, url);
      const delayMs = DELAYS_MS[attempt];
      const mayPass = error.retryable || error.code === 'proxy-refused';
      if (!mayPass || delayMs === undefined || clock.monotonic() + delayMs >= endsAt) throw error;
      await clock.sleep(delayMs);
    }
  }
}

async function sendOnce(
  pool: Pools,
  { clock, timeoutMs }: { readonly clock: Pick<Clock, 'timer'>; readonly timeoutMs: number },
  url: string,
  content?: Content,
): Promise<void> {
  const { origin, pathname, search, host } = new URL(url);
  const isObject = typeof content === 'object';
  const type = isObject ? 'application/json' : 'text/plain; charset=utf-8';
  const stop = new AbortController();
  const timer = clock.timer(timeoutMs, () => {
    stop.abort(new CryptodlError('total-timeout', `${host}: no answer within ${durationText(timeoutMs)}`));
  });
  try {
    const { statusCode: status, body } = await pool.of(origin).request({
      origin,
      path: pathname + search,
      method: content === undefined ? 'GET' : 'POST',
      headers: { 'user-agent': USER_AGENT, ...(content !== undefined && { 'content-type': type }) },
      body: isObject ? JSON.stringify(content) : (content ?? null),
      signal: stop.signal,
    });
    await body.dump();
    // undici gives no final status below 200.
    if (status < 300) return;
    const code = status >= 500 || status === 429 ? 'http-server-error' : 'http-refused';
    throw new CryptodlError(code, `${host} answered ${status}`);
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
