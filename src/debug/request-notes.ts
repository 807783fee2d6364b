/** The slowest attempts of requests, and the last errors. Both lists are short, also after millions of requests. */
import { hostOf } from '../http/fetch.js';
import type { AttemptEnd } from '../http/fetch.js';
import type { Clock } from '../model/clock.js';
import { toCryptodlError } from '../model/errors.js';
import type { TaskOutcome } from '../model/outcome.js';
import { TopList } from './top-list.js';

const MOST_REQUESTS = 20;
const MOST_ERRORS = 20;

interface NotedAttempt {
  /** The end of the attempt. */
  readonly at: string;
  readonly host: string;
  /** Path and query. */
  readonly path: string;
  readonly status: number | null;
  /** `<request>/<number of the attempt>`, as in the log. */
  readonly attempt: string;
  /** From the beginning to the sending: the wait for a socket. */
  readonly beforeSentMs: number;
  /** From the sending to the first byte of the answer. */
  readonly firstByteMs: number | null;
  /** From the beginning to the end of the attempt. */
  readonly totalMs: number;
  readonly error: string | null;
}

interface NotedError {
  readonly at: string;
  readonly code: string;
  readonly message: string;
  /** The failed attempt of a request, or the failed object. */
  readonly attempt?: Omit<NotedAttempt, 'at' | 'error'>;
  readonly object?: string;
}

export class RequestNotes {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #slowest = new TopList<NotedAttempt>(MOST_REQUESTS);
  readonly #errors: NotedError[] = [];

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  attempt(end: AttemptEnd): void {
    this.#slowest.add(end.endedAt - end.begunAt, () => this.#noted(end));
    if (end.error === undefined) return;
    const { at, error: _, ...attempt } = this.#noted(end);
    const { code, message } = toCryptodlError(end.error);
    this.#note({ at, code, message, attempt });
  }

  outcome(outcome: TaskOutcome): void {
    if (outcome.outcome !== 'failed') return;
    const { code, message, key } = outcome;
    this.#note({ at: this.#at, code, message, object: key });
  }

  get slowest(): readonly NotedAttempt[] {
    return this.#slowest.entries;
  }

  /** Newest first. */
  get errors(): readonly NotedError[] {
    return this.#errors.toReversed();
  }

  #note(error: NotedError): void {
    this.#errors.push(error);
    if (this.#errors.length > MOST_ERRORS) this.#errors.shift();
  }

  #noted({
    request,
    status,
    attemptId,
    begunAt,
    sentAt,
    endedAt,
    firstByteMs,
    error,
  }: AttemptEnd): NotedAttempt {
    const { pathname, search } = new URL(request.url);
    return {
      at: this.#at,
      host: hostOf(request.url),
      path: pathname + search,
      status: status ?? null,
      attempt: attemptId,
      beforeSentMs: Math.round(sentAt - begunAt),
      firstByteMs: firstByteMs === undefined ? null : Math.round(firstByteMs),
      totalMs: Math.round(endedAt - begunAt),
      error: error === undefined ? null : toCryptodlError(error).code,
    };
  }

  get #at(): string {
    return new Date(this.#clock.now()).toISOString();
  }
}
