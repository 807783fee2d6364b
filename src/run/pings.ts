/** `--ping`: tells an address that watches over runs how this one goes. */
import type { Clock } from '../clock.js';
import { toCryptodlError } from '../errors.js';
import type { ExitCode } from '../exit-code.js';
import type { Options } from '../options/flags.js';
import { proxiesOf } from '../options/surroundings.js';
import type { Surroundings } from '../options/surroundings.js';
import { ping } from '../transport/ping.js';
import { createPools } from '../transport/pool.js';
import type { Pools } from '../transport/pool.js';
import { authoritiesOf } from './sockets.js';

/** An end is not held up for long by whoever only watches. */
const TIMEOUT_MS = 5000;

export interface PingsOptions {
  readonly url: string;
  readonly options: Options;
  readonly surroundings: Surroundings;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** Tells the beginning, which holds up nothing, and then the end. A ping that fails is one warning. */
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
      keepAliveMs: flags['keep-alive'],
      connectTimeoutMs: flags['connect-timeout'],
      http2: false,
      authorities: authoritiesOf(flags['ca-file']),
      proxies: proxiesOf(flags.proxy, surroundings),
      clock,
    });
    this.#started = this.#tell('/start');
  }

  /** Resolves when the end was told, or could not be. */
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

/** The query stays behind the path: `…/uuid/fail?rid=1`. */
function addressOf(text: string, what: string): string {
  const url = new URL(text);
  if (what !== '') url.pathname = url.pathname.replace(/\/*$/, what);
  return url.href;
}
