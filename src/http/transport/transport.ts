/** One attempt: the innermost Fetch. */
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../model/clock.js';
import { CryptodlError, hostError } from '../../model/errors.js';
import { hostOf } from '../../model/fetch.js';
import type { Fetch, FetchContext, FetchRequest, FetchResponse, PartialBody } from '../../model/fetch.js';
import type { Bandwidth } from './bandwidth.js';
import { mapWireError, statusError, type ReadRefusal } from './error-map.js';
import type { Pools } from './pool.js';
import { Sink, refuseRange, strongEtag, type ReceivedBody } from './sink.js';
import { headersOf, sentChunks } from './sent-headers.js';

/** After so many bytes, further chunks of a body that is no object are ignored: an error message needs no more. */
const ERROR_BODY_BYTES = 64 * 1024;
/** Statuses that are answers to a write, besides those of a GET. 501: the server has no conditional writes. */
const WRITE_ANSWERS = [412, 501] as const;

export interface TransportOptions {
  readonly pools: Pools;
  readonly clock: Pick<Clock, 'now'>;
  readonly bandwidth: Bandwidth;
  readonly readRefusal: ReadRefusal;
}

/**
 * Resolves with a complete body (status 200), with a 404, or if it is no GET with any status below 300, a 412 or a 501. Rejects with a typed error for any other status and for a cut, oversized or encoded body, and with the reason of the
 * signal when it aborts. An unfinished attempt closes its socket. The received part of a large body stays in the spool file for the
 * next attempt.
 */
export function createTransport(options: TransportOptions): Fetch {
  const send = (request: FetchRequest, context: FetchContext, held?: Held): Promise<FetchResponse> =>
    new Promise((resolve, reject) => {
      const handler = new AttemptHandler(options, request, context, held, resolve, reject);
      const { origin, pathname, search } = new URL(request.url);
      const { method = 'GET', sends } = request;
      const headers = headersOf(request, held?.partial);
      const body = sends === undefined ? null : handler.upload(sends);
      const sent = { origin, method, path: pathname + search, headers, body };
      options.pools.of(origin).dispatch(sent, handler);
    });
  return (request, context) => {
    const { partial } = request;
    if (partial === undefined) return send(request, context);
    return Sink.resume(request, partial.bytes).then((sink) =>
      send(request, context, sink && { sink, partial }),
    );
  };
}

/** The part of the body that is already on disk. */
interface Held {
  readonly sink: Sink;
  readonly partial: PartialBody;
}

/** The state of one attempt: an undici DispatchHandler that settles exactly once. */
class AttemptHandler implements Dispatcher.DispatchHandler {
  readonly #tell: NonNullable<FetchContext['onActivity']>;
  #sink: Sink;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: Record<string, string> = {};
  #settled = false;
  #isTooLong = false;
  /** Bytes of the body that this attempt received. */
  #received = 0;
  /** Waits after chunks that did not pause the parser. The body is complete after them. */
  #lastWait: Waiting;
  #waits = 0;

  constructor(
    private readonly options: TransportOptions,
    private readonly request: FetchRequest,
    { expiry, onActivity }: FetchContext,
    private held: Held | undefined,
    private readonly resolve: (response: FetchResponse) => void,
    private readonly reject: (error: unknown) => void,
  ) {
    this.#sink = new Sink(request);
    if (expiry === undefined || onActivity === undefined)
      throw new CryptodlError('bug', 'an attempt without the layer of timeouts has no end');
    this.#tell = onActivity;
    expiry.onOver((reason) => this.#fail(reason));
  }

  upload(body: Buffer): Readable {
    return Readable.from(sentChunks(body, this.options.bandwidth, this.#tell), { objectMode: false });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // If the attempt was aborted while it waited for a socket, undici learns it only here.
    if (this.#settled) controller.abort(new Error('aborted before it was sent'));
    else this.#tell('sent');
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#tell('headers', status);
    this.#status = status;
    this.#headers = {};
    for (const name in headers) {
      const value = headers[name];
      this.#headers[name] = Array.isArray(value) ? value.join(', ') : (value ?? '');
    }
    const refusal = this.#refuseBody();
    if (refusal !== undefined) this.#fail(refusal);
  }

  #refuseBody(): CryptodlError | undefined {
    const encoding = this.#headers['content-encoding'] ?? 'identity';
    if (this.#hasObject() && encoding !== 'identity') {
      const fault = `sent Content-Encoding ${encoding}, which was not requested`;
      return hostError('body-encoded', this.#host(), fault);
    }
    if (this.#status === 200 && Number(this.#headers['content-length']) > this.#maxBytes)
      return this.#tooLong();
    if (this.#status !== 206) return undefined;
    if (this.held === undefined)
      return hostError('http-protocol', this.#host(), 'answered 206 to a request for the whole body');
    const refusal = refuseRange(this.request.url, this.held.partial, this.#headers);
    if (refusal !== undefined) return refusal;
    this.#sink = this.held.sink;
    this.held = undefined;
    return undefined;
  }

  get #maxBytes(): number {
    const { method, maxBytes = Number.POSITIVE_INFINITY } = this.request;
    // The length in an answer to HEAD is that of a body that does not come.
    return method === 'HEAD' ? Number.POSITIVE_INFINITY : maxBytes;
  }

  #tooLong(): CryptodlError {
    this.#isTooLong = true;
    const listed = this.request.expect?.bytes;
    const expected = listed === undefined ? '' : `, the listing says ${listed}`;
    return hostError('length-mismatch', this.#host(), `sent more than ${this.#maxBytes} bytes${expected}`);
  }

  #hasObject(): boolean {
    return this.#status === 200 || this.#status === 206;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return;
    this.#tell('bytes', chunk.length);
    this.#received += chunk.length;
    if (!this.#hasObject() && this.#sink.size > ERROR_BODY_BYTES) return;
    const isWritten = this.#sink.write(chunk);
    if (this.#hasObject() && this.#sink.size > this.#maxBytes) {
      this.#fail(this.#tooLong());
      return;
    }
    // `take` must follow the return above. Otherwise its promise has no handler, and is an unhandled rejection when the run ends.
    const mayContinue = bothOf(isWritten, this.options.bandwidth.take(chunk.length));
    if (mayContinue === undefined) return;
    if (this.#mayPause()) controller.pause();
    else this.#lastWait = bothOf(this.#lastWait, mayContinue);
    this.#waits += 1;
    if (this.#waits === 1) this.#tell('paused');
    mayContinue.then(
      () => {
        this.#waits -= 1;
        // After an abort, this sign would start the timers of an ended attempt again.
        if (this.#settled || this.#waits > 0) return;
        this.#tell('resumed');
        controller.resume();
      },
      (error: unknown) => this.#fail(error),
    );
  }

  /**
   * Whether the parser may be paused after the present chunk. A parser that is paused after the last byte has not seen the end of the
   * body: if the server closes the connection then, undici takes the body for cut. If the end of the connection ends the body, each
   * chunk may be the last one, and undici even throws an AssertionError outside of the attempt (7.30.2, `finish` in client-h1.js).
   */
  #mayPause(): boolean {
    const { 'content-length': length, 'transfer-encoding': encoding, connection } = this.#headers;
    const isUntilClose = (length ?? encoding) === undefined || /close/i.test(connection ?? '');
    return !isUntilClose && this.#received !== Number(length);
  }

  onResponseEnd(): void {
    if (this.#settled) return;
    const ended = this.#lastWait?.then(() => this.#sink.end()) ?? this.#sink.end();
    if (ended instanceof Promise) ended.then(this.#finish.bind(this), this.#fail.bind(this));
    else this.#finish(ended);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    // Errors of the disk reject the promises of the sink, so an EACCES here is that of a socket.
    const { url } = this.request;
    this.#fail(mapWireError(error, url, this.options.pools.proxyOf(url)));
  }

  #finish(received: ReceivedBody): void {
    if (this.#settled) return;
    const answer = {
      status: this.#status,
      headers: this.#headers,
      head: this.#hasObject() ? '' : this.#sink.text,
      receivedAtMs: this.options.clock.now(),
    };
    const known = this.#knownStatus();
    const status = known ?? (this.#status === 404 ? 404 : 200);
    const refusal =
      known === undefined ? statusError(answer, this.request.url, this.options.readRefusal) : undefined;
    if (refusal !== undefined) {
      this.#fail(refusal);
      return;
    }
    this.#settled = true;
    void this.held?.sink.discard();
    this.resolve({ status, headers: this.#headers, ...received });
  }

  /** The status of an answer to another method than GET; undefined for all others. */
  #knownStatus(): FetchResponse['status'] | undefined {
    if ((this.request.method ?? 'GET') === 'GET') return undefined;
    if (this.#status < 300) return 200;
    return WRITE_ANSWERS.find((status) => status === this.#status);
  }

  #fail(error: unknown): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#controller?.abort(error instanceof Error ? error : new Error('aborted'));
    void this.#keep(error).then(this.reject, this.reject);
  }

  /** Adds the number of bytes of a large body on disk to the error, so that the next attempt continues there. */
  async #keep(error: unknown): Promise<unknown> {
    await this.held?.sink.discard();
    const bytes = await this.#sink.discard();
    if (!(error instanceof CryptodlError) || !error.retryable) return error;
    // Too many bytes are not the beginning of the object, so the next attempt starts again.
    if (this.#isTooLong) return error;
    const etag = strongEtag(this.#headers);
    // After another status than 416, the kept part is still valid, because the status says nothing about the object.
    if (!this.#hasObject())
      return error.with({ partial: this.#status === 416 ? undefined : this.request.partial });
    return bytes > 0 && etag !== undefined ? error.with({ partial: { bytes, etag } }) : error;
  }

  #host(): string {
    return hostOf(this.request.url);
  }
}

type Waiting = Promise<unknown> | undefined;

function bothOf(one: Waiting, other: Waiting): Waiting {
  if (one === undefined) return other;
  return Promise.all([one, other]);
}
