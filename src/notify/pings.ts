/** `--ping`: reports the start and the end of a run to the address of a monitoring service. */
import type { Pools } from '../http/transport/pool.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { closePools, isAccepted, openPools, send } from './send.js';
import type { NotifyOptions, SendOptions } from './send.js';

/** Limit of one ping, because the end of a run waits for it. */
const TIMEOUT_MS = 5000;

/** Reports the start without delaying the run, then the end. Failed pings cause one warning. */
export class Pings {
  readonly #options: NotifyOptions;
  readonly #pools: readonly Pools[];
  readonly #started: Promise<void>;
  #hasWarned = false;

  /** Throws a usage error for a --ca-file that cannot be read. */
  constructor(options: NotifyOptions) {
    this.#options = options;
    this.#pools = openPools(options);
    this.#started = this.#tell('/start');
  }

  /** Resolves after the ping for the end, even if that fails. */
  async end(code: ExitCode): Promise<void> {
    await this.#started;
    await this.#tell(code === 0 ? '' : '/fail');
    await closePools(this.#pools);
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

/** One GET request to a monitoring service such as healthchecks.io. Resolves for any 2xx. */
export async function ping(options: SendOptions, url: string): Promise<void> {
  const status = await send(options, url);
  if (!isAccepted(status)) throw new CryptodlError('http-refused', `${new URL(url).host} answered ${status}`);
}
