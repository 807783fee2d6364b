/** Requests to addresses that the user chose: outside of the request stack, without throttle, breaker and log. */
import { mapWireError } from '../http/transport/error-map.js';
import { createPools } from '../http/transport/pool.js';
import type { Pools } from '../http/transport/pool.js';
import { authoritiesOf } from '../http/transport/sockets.js';
import { USER_AGENT } from '../http/transport/sent-request.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError } from '../model/errors.js';
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

/** Throws a usage error for a --ca-file that cannot be read. */
export function openPools({ options, surroundings, clock }: NotifyOptions): Pools {
  return createPools({
    connections: 1,
    keepAliveMs: options.keepAliveMs,
    connectTimeoutMs: options.connectTimeoutMs,
    http2: false,
    authorities: authoritiesOf(options.caFile),
    proxies: proxiesOf(options.proxy, surroundings),
    clock,
  });
}

export interface SendOptions {
  readonly pools: Pools;
  readonly clock: Pick<Clock, 'timer'>;
  readonly timeoutMs: number;
}

/**
 * Resolves with the status of the answer: to a POST with the JSON, otherwise to a GET. Rejects with a typed error that names the
 * host but not the path, because the path may be a secret.
 */
export async function send(
  { pools, clock, timeoutMs }: SendOptions,
  url: string,
  json?: object,
): Promise<number> {
  const { origin, pathname, search, host } = new URL(url);
  const stop = new AbortController();
  const timer = clock.timer(timeoutMs, () => {
    stop.abort(new CryptodlError('total-timeout', `${host}: no answer within ${durationText(timeoutMs)}`));
  });
  try {
    const { statusCode, body } = await pools.of(origin).request({
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
      pools.proxyOf(origin),
    );
  } finally {
    timer.cancel();
  }
}

/** undici gives no final status below 200. */
export function isAccepted(status: number): boolean {
  return status < 300;
}
