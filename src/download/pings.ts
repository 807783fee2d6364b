/** `--ping`: reports the start and the end of a run to the address of a monitoring service. */
import { mapWireError } from '../http/transport/error-map.js';
import { createPools } from '../http/transport/pool.js';
import type { Pools } from '../http/transport/pool.js';
import { authoritiesOf } from '../http/transport/sockets.js';
import { USER_AGENT } from '../http/transport/transport.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { durationText } from '../model/units.js';
import { proxiesOf } from '../options/environment.js';
import type { Surroundings } from '../options/environment.js';
import type { Options } from '../options/flags.js';

/** Limit of one ping, because the end of a run waits for it. */
const TIMEOUT_MS = 5000;

export interface PingsOptions {
  readonly url: string;
  readonly options: Options;
  readonly surroundings: Surroundings;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** Reports the start without delaying the run, then the end. Failed pings cause one warning. */
export class Pings {
  readonly #options: PingsOptions;
  readonly #pools: Pools;
  readonly #started: Promise<void>;
  #hasWarned = false;

  /** Throws a usage error for a --ca-file that cannot be read. */
  constructor(options: PingsOptions) {
    this.#options = options;
    const { options: flags, surroundings, clock } = options;
    this.#pools = createPools({
      connections: 1,
      keepAliveMs: flags.keepAliveMs,
      connectTimeoutMs: flags.connectTimeoutMs,
      http2: false,
      authorities: authoritiesOf(flags.caFile),
      proxies: proxiesOf(flags.proxy, surroundings),
      clock,
    });
    this.#started = this.#tell('/start');
  }

  /** Resolves after the ping for the end, even if that fails. */
  async end(code: ExitCode): Promise<void> {
    await this.#started;
    await this.#tell(code === 0 ? '' : '/fail');
    await this.#pools.close();
  }

  async #tell(what: string): Promise<void> {
    const { url, clock, warn } = this.#options;
    try {
      await ping({ pools: this.#pools, clock, timeoutMs: TIMEOUT_MS }, addressOf(url, what));
    } catch (error) {
      if (!this.#hasWarned) warn(`--ping: ${toCryptodlError(error).message}`);
      this.#hasWarned = true;
    }
  }
}

/** Appends to the path and keeps the query: `…/uuid/fail?rid=1`. */
function addressOf(text: string, what: string): string {
  const url = new URL(text);
  if (what !== '') url.pathname = url.pathname.replace(/\/*$/, what);
  return url.href;
}

// One GET request to a monitoring service such as healthchecks.io, outside of the request stack: no throttle and no retry.

export interface PingOptions {
  readonly pools: Pools;
  readonly clock: Pick<Clock, 'timer'>;
  readonly timeoutMs: number;
}

/** Resolves for any 2xx. Rejects with a typed error that names the host but not the path, because the path may be a secret. */
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
