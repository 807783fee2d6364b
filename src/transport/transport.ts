/** One attempt on the wire: the innermost Fetch. */
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.js';
import { CryptodlError } from '../errors.js';
import type { Fetch, FetchContext, FetchRequest, FetchResponse } from '../fetch.js';
import { mapWireError, statusError } from './error-map.js';
import type { Pools } from './pool.js';
import { Sink } from './sink.js';

/** Bodies above this go to the spool path, when there is one. */
const SPOOL_ABOVE_BYTES = 8 * 1024 * 1024;
/** Answers that are not the object asked for are read this far, for the message. */
const ERROR_BODY_BYTES = 64 * 1024;

const USER_AGENT = 'cryptodl/0.1 (+bulk market data downloader)';

/**
 * Resolves with a complete body of status 200 or with a 404; rejects with a typed error for every other status,
 * for a cut, oversized or encoded body, and with the signal's reason when it aborts. The socket of an attempt
 * that did not end by itself is closed.
 */
export function createTransport(pools: Pools, clock: Pick<Clock, 'now'>): Fetch {
  return (request, context) =>
    new Promise((resolve, reject) => {
      context.signal.throwIfAborted();
      const exchange = new Exchange(clock, request, context, resolve, reject);
      const { pathname, search } = new URL(request.url);
      pools
        .of(request.url)
        .dispatch({ method: 'GET', path: pathname + search, headers: headersOf(request) }, exchange);
    });
}

function headersOf(request: FetchRequest): Record<string, string> {
  const caches = request.bypassCache === true ? { 'cache-control': 'no-cache', pragma: 'no-cache' } : {};
  return { 'accept-encoding': 'identity', 'user-agent': USER_AGENT, ...caches };
}

/** The state of one request: an undici DispatchHandler that settles exactly once. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #request: FetchRequest;
  readonly #context: FetchContext;
  readonly #sink: Sink;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: Record<string, string> = {};
  #settled = false;
  readonly #resolve: (response: FetchResponse) => void;
  readonly #reject: (error: unknown) => void;
  readonly #onAbort = (): void => {
    this.#fail(this.#context.signal.reason);
  };

  constructor(
    clock: Pick<Clock, 'now'>,
    request: FetchRequest,
    context: FetchContext,
    resolve: (response: FetchResponse) => void,
    reject: (error: unknown) => void,
  ) {
    this.#clock = clock;
    this.#request = request;
    this.#context = context;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#sink = new Sink({
      ...(request.spoolPath === undefined ? {} : { spoolPath: request.spoolPath }),
      spoolAboveBytes: request.spoolAboveBytes ?? SPOOL_ABOVE_BYTES,
      md5: request.expect?.md5 !== undefined,
    });
    context.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // Aborted while it waited for a socket: undici knows nothing of our signal until here.
    if (this.#settled) controller.abort(new Error('aborted before it was sent'));
    else this.#context.onActivity?.('sent');
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#context.onActivity?.('headers');
    this.#status = status;
    this.#headers = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(', ') : (value ?? ''),
      ]),
    );
    const encoding = this.#headers['content-encoding'] ?? 'identity';
    if (status === 200 && encoding !== 'identity') {
      this.#fail(
        new CryptodlError(
          'body-encoded',
          `${this.#host()} sent Content-Encoding ${encoding}, which nobody asked for`,
        ),
      );
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return;
    this.#context.onActivity?.('bytes', chunk.length);
    if (this.#status !== 200 && this.#sink.size > ERROR_BODY_BYTES) return;
    const mayContinue = this.#sink.write(chunk);
    if (this.#request.maxBytes !== undefined && this.#sink.size > this.#request.maxBytes) {
      this.#fail(
        new CryptodlError(
          'length-mismatch',
          `${this.#host()} sent more than ${this.#request.maxBytes} bytes`,
        ),
      );
      return;
    }
    if (mayContinue === undefined) return;
    controller.pause();
    this.#context.onActivity?.('paused');
    mayContinue.then(
      () => {
        this.#context.onActivity?.('resumed');
        controller.resume();
      },
      (error: unknown) => {
        this.#fail(error);
      },
    );
  }

  onResponseEnd(): void {
    if (this.#settled) return;
    this.#sink.end().then(
      (received) => {
        this.#finish(received);
      },
      (error: unknown) => {
        this.#fail(error);
      },
    );
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    // Errors of the disk come by another way: a socket's EACCES is not a file's.
    this.#fail(mapWireError(error, this.#request.url));
  }

  #finish(received: Awaited<ReturnType<Sink['end']>>): void {
    if (this.#settled) return;
    const head =
      this.#status === 200 || received.body.kind === 'file' ? '' : received.body.bytes.toString('latin1');
    const refusal = statusError(
      { status: this.#status, headers: this.#headers, head, receivedAt: this.#clock.now() },
      this.#request.url,
    );
    if (refusal !== undefined) {
      this.#fail(refusal);
      return;
    }
    this.#settle();
    this.#resolve({ status: this.#status === 404 ? 404 : 200, headers: this.#headers, ...received });
  }

  #fail(error: unknown): void {
    if (this.#settled) return;
    this.#settle();
    this.#controller?.abort(error instanceof Error ? error : new Error('aborted'));
    const reject = (): void => {
      this.#reject(error);
    };
    void this.#sink.discard().then(reject, reject);
  }

  #settle(): void {
    this.#settled = true;
    this.#context.signal.removeEventListener('abort', this.#onAbort);
  }

  #host(): string {
    return new URL(this.#request.url).host;
  }
}
