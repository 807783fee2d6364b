/** Sends one message about a run: a ping, or a POST with JSON. */
import { mapWireError } from '../../http/transport/error-map.js';
import type { Pools } from '../../http/transport/pool.js';
import type { Clock } from '../../model/clock.js';
import { toCryptodlError, CryptodlError } from '../../model/errors.js';
import { durationText } from '../../model/units.js';
import { USER_AGENT } from '../../http/transport/sent-headers.js';

/** The end of a run waits for its messages: so long for all attempts, and for one. */
export const LIMIT_MS = 10_000;
const ATTEMPT_MS = 5000;
const DELAYS_MS = [250, 500, 1000];

export type Content = string | object;

/**
 * Sends a POST with the content, otherwise a GET, until the receiver answers with 2xx. Rejects with the typed error of the last attempt, which
 * names the host but not the path, because the path may be a secret.
 */
export async function send(pools: Pools, clock: Clock, url: string, content?: Content): Promise<void> {
  const endsAt = clock.monotonic() + LIMIT_MS;
  for (let attempt = 0; ; attempt += 1) {
    try {
      const timeoutMs = Math.min(ATTEMPT_MS, endsAt - clock.monotonic());
      await sendOnce(pools, { clock, timeoutMs }, url, content);
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
  pools: Pools,
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
    const { statusCode: status, body } = await pools.of(origin).request({
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
      pools.proxyOf(origin),
    );
  } finally {
    timer.cancel();
  }
}
