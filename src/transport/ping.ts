/** One GET of an address that watches over runs (healthchecks.io): no limit, no retry, no body. */
import type { Clock } from '../clock.js';
import { CryptodlError } from '../errors.js';
import { durationText } from '../units.js';
import { mapWireError } from './error-map.js';
import type { Pools } from './pool.js';
import { USER_AGENT } from './transport.js';

export interface PingOptions {
  readonly pools: Pools;
  readonly clock: Pick<Clock, 'timer'>;
  readonly timeoutMs: number;
}

/** Resolves with any 2xx; rejects with a typed error that names the host only: the path may be a secret. */
export async function ping({ pools, clock, timeoutMs }: PingOptions, url: string): Promise<void> {
  const { origin, pathname, search, host } = new URL(url);
  const stop = new AbortController();
  const timer = clock.timer(timeoutMs, () => {
    stop.abort(new CryptodlError('total-timeout', `${host}: no answer within ${durationText(timeoutMs)}`));
  });
  try {
    const { statusCode, body } = await pools.of(origin).request({
      origin,
      path: pathname + search,
      method: 'GET',
      headers: { 'user-agent': USER_AGENT },
      signal: stop.signal,
    });
    await body.dump();
    // undici gives no final status below 200.
    if (statusCode > 299) throw new CryptodlError('http-refused', `${host} answered ${statusCode}`);
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
