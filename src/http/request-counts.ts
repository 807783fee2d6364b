/** Counts the requests to a host that is no host of the exchange, for example to the bucket of a lake. */
import { Counters } from '../model/counters.js';
import type { Counts } from '../model/counters.js';
import type { ErrorCode } from '../model/errors.js';
import { CryptodlError } from '../model/errors.js';
import type { Observer, RetryEvent } from '../model/observer.js';
import { bodySize, hostOf } from './fetch.js';
import type { AttemptEnd, FetchRequest, FetchResponse } from './fetch.js';
import type { RequestFigures } from './stack.js';
import type { RequestFollower } from './transport/measure.js';

export interface RequestCount {
  /** Host and port. */
  readonly host: string;
  /** Ended attempts by method. `LIST`: a GET of a listing. */
  readonly requests: Readonly<Record<string, number>>;
  /** Ended attempts by HTTP status; `none` for those without an answer. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Repeated attempts by the error of the attempt before, also those after a refusal. */
  readonly retries: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Failed attempts by code. */
  readonly errors: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Bytes of the bodies of answered attempts, and of their answers. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

type Watcher = Pick<Observer, 'attempt' | 'retry'>;

export class RequestCounts implements RequestFigures, RequestFollower {
  #host = '';
  readonly #counts = new Counters();
  /** The counts when the last run ended. */
  #base: Counts = {};
  readonly #watchers = new Set<Watcher>();

  /** The requests since the end of the last run, also those before this call. `watcher` learns of attempts and retries until `end`: the run has ended. */
  follow(watcher: Watcher): { readonly figures: () => RequestCount; readonly end: () => void } {
    const base = this.#base;
    this.#watchers.add(watcher);
    return {
      figures: () => this.#since(base),
      end: () => {
        this.#base = this.#counts.all;
        this.#watchers.delete(watcher);
      },
    };
  }

  #since(base: Counts): RequestCount {
    const before = Object.entries(base).map(([name, count = 0]) => [name, -count]);
    const counts = new Counters(this.#counts.all, Object.fromEntries(before));
    return {
      host: this.#host,
      requests: counts.by('requests'),
      statuses: counts.by('statuses'),
      retries: counts.by('retries'),
      errors: counts.by('errors'),
      sentBytes: counts.of('sentBytes'),
      receivedBytes: counts.of('receivedBytes'),
    };
  }

  ended(attempt: AttemptEnd): void {
    const { request, status, error } = attempt;
    this.#host = hostOf(request.url);
    this.#counts.add(`requests.${methodOf(request)}`);
    this.#counts.add(`statuses.${status ?? 'none'}`);
    if (error instanceof CryptodlError) this.#counts.add(`errors.${error.code}`);
    if (status !== undefined && request.sends !== undefined)
      this.#counts.add('sentBytes', request.sends.length);
    for (const watcher of this.#watchers) watcher.attempt(attempt);
  }

  onRetry(event: RetryEvent): void {
    this.#counts.add(`retries.${event.error.code}`);
    for (const watcher of this.#watchers) watcher.retry(event);
  }

  onRequest(): (response?: FetchResponse) => void {
    return (response) => {
      if (response !== undefined) this.#counts.add('receivedBytes', bodySize(response.body));
    };
  }
}

function methodOf({ method = 'GET', url }: FetchRequest): string {
  return method === 'GET' && /[?&]list-type=/.test(url) ? 'LIST' : method;
}
