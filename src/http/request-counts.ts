/** Counts the requests to a host that is no host of the exchange, for example to the bucket of a lake. */
import type { ErrorCode } from '../model/errors.js';
import { CryptodlError } from '../model/errors.js';
import type { RetryEvent } from '../model/observer.js';
import { bodySize, hostOf } from './fetch.js';
import type { AttemptEnd, FetchRequest, Layer } from './fetch.js';
import type { RequestCosts, RequestFigures } from './stack.js';

type Counts = Readonly<Record<string, number>>;

export interface RequestCount {
  /** Host and port. */
  readonly host: string;
  /** Ended attempts by method. `LIST`: a GET of a listing. */
  readonly requests: Counts;
  /** Ended attempts by HTTP status; `none` for those without an answer. */
  readonly statuses: Counts;
  /** Repeated attempts by the error of the attempt before, also those after a refusal. */
  readonly retries: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Failed attempts by code. */
  readonly errors: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Bytes of the bodies of answered attempts, and of their answers. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

export interface RequestWatcher {
  readonly attempt: (attempt: AttemptEnd) => void;
  readonly retry: (event: RetryEvent) => void;
}

export class RequestCounts implements RequestFigures {
  #host = '';
  #sentBytes = 0;
  #receivedBytes = 0;
  readonly #requests: Record<string, number> = {};
  readonly #statuses: Record<string, number> = {};
  readonly #retries: Partial<Record<ErrorCode, number>> = {};
  readonly #errors: Partial<Record<ErrorCode, number>> = {};
  readonly #watchers = new Set<RequestWatcher>();

  /** Tells each attempt and each retry, until the returned function is called. */
  watch(watcher: RequestWatcher): () => void {
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
    };
  }

  get figures(): RequestCount {
    return {
      host: this.#host,
      requests: { ...this.#requests },
      statuses: { ...this.#statuses },
      retries: { ...this.#retries },
      errors: { ...this.#errors },
      sentBytes: this.#sentBytes,
      receivedBytes: this.#receivedBytes,
    };
  }

  /** The figures when the last run ended; zeros before. */
  base: RequestCount = this.figures;

  ended(attempt: AttemptEnd): void {
    const { request, status, error } = attempt;
    this.#host = hostOf(request.url);
    add(this.#requests, methodOf(request));
    add(this.#statuses, String(status ?? 'none'));
    if (error instanceof CryptodlError) add(this.#errors, error.code);
    if (status !== undefined && request.sends !== undefined) this.#sentBytes += bodySize(request.sends);
    for (const watcher of this.#watchers) watcher.attempt(attempt);
  }

  onRetry(event: RetryEvent): void {
    add(this.#retries, event.error.code);
    for (const watcher of this.#watchers) watcher.retry(event);
  }

  /** Counts the received bytes. The time of these requests is no cost of the exchange. */
  readonly costs: RequestCosts = {
    layer:
      (next): ReturnType<Layer> =>
      async (request, context) => {
        const response = await next(request, context);
        this.#receivedBytes += bodySize(response.body);
        return response;
      },
    wire: (next) => next,
  };
}

/** The requests of a part of the time. */
export function countsSince(now: RequestCount, then: RequestCount): RequestCount {
  return {
    host: now.host,
    requests: minus(now.requests, then.requests),
    statuses: minus(now.statuses, then.statuses),
    retries: minus(now.retries, then.retries),
    errors: minus(now.errors, then.errors),
    sentBytes: now.sentBytes - then.sentBytes,
    receivedBytes: now.receivedBytes - then.receivedBytes,
  };
}

/** Objects have no query. */
function methodOf({ method = 'GET', url }: FetchRequest): string {
  return method === 'GET' && url.includes('?') ? 'LIST' : method;
}

function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

function minus(now: Counts, then: Counts): Counts {
  const entries = Object.entries(now).map(([name, count]) => [name, count - (then[name] ?? 0)] as const);
  return Object.fromEntries(entries.filter(([, count]) => count > 0));
}
