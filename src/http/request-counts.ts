/** Counts the requests to a host that is no host of the exchange, for example to the bucket of a lake. */
import { Counters, type Counts } from '../model/counters.js';
import { CryptodlError } from '../model/errors.js';
import type { FollowedRequests, Observer, RequestCount, RetryEvent } from '../model/observer.js';
import { bodySize, hostOf, type AttemptEnd, type FetchRequest, type FetchResponse } from '../model/fetch.js';
import type { RequestFigures } from './stack-options.js';
import type { RequestFollower } from './transport/measure.js';

type Watcher = Pick<Observer, 'attempt' | 'retry'>;

export class RequestCounts implements FollowedRequests, RequestFigures, RequestFollower {
  #host = '';
  readonly #counts = new Counters();
  /** The counts when the last run ended. */
  #base: Counts = {};
  readonly #watchers = new Set<Watcher>();

  follow(watcher: Watcher): ReturnType<FollowedRequests['follow']> {
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
