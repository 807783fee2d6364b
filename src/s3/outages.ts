/** Waits for a bucket that has answered before, because its server may restart and its network may fail for a while. */
import type { Clock } from '../model/clock.js';
import { CryptodlError } from '../model/errors.js';
import { durationText } from '../model/units.js';

interface OutageOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** `s3://bucket/prefix`, for messages. */
  readonly address: string;
  /** Longest wait of one request in milliseconds. */
  readonly longestMs: number;
  /** The first delay before a request is repeated; the later ones are longer. */
  readonly firstDelayMs: number;
  readonly warn: (message: string) => void;
}

const LONGEST_DELAY_MS = 15_000;

export class Outages {
  readonly #options: OutageOptions;
  #hasAnswered = false;
  #isTold = false;

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  /** Repeats a request that ends with `lake-unreachable`. A bucket that has never answered is not waited for, because its address may be wrong. */
  async outlast<T>(request: () => Promise<T>): Promise<T> {
    const { clock, signal, longestMs, firstDelayMs } = this.#options;
    const until = clock.monotonic() + longestMs;
    for (let delayMs = firstDelayMs; ; delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)) {
      try {
        const answer = await request();
        this.#hasAnswered = true;
        this.#isTold = false;
        return answer;
      } catch (error) {
        const isOutage = error instanceof CryptodlError && error.code === 'lake-unreachable';
        if (!isOutage || !this.#hasAnswered || clock.monotonic() + delayMs > until) throw error;
        this.#tell();
        await clock.sleep(delayMs / 2 + (clock.random() * delayMs) / 2, signal);
      }
    }
  }

  #tell(): void {
    if (this.#isTold) return;
    this.#isTold = true;
    const { address, longestMs, warn } = this.#options;
    warn(`${address} does not answer: requests are repeated for up to ${durationText(longestMs)}`);
  }
}
