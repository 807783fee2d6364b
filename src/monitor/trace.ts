/** `--trace`: the work of a command as spans of OpenTelemetry. */
import { randomBytes } from 'node:crypto';
import type { AttemptEnd } from '../http/fetch.js';
import type { Clock } from '../model/clock.js';
import { toCryptodlError } from '../model/errors.js';
import type { ErrorCode } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Observer } from '../model/observer.js';
import type { Work } from '../model/work.js';
import type { RunMonitor, RunPhase } from '../report/run-monitor.js';
import { spanText } from './otlp.js';
import type { Attributes, Span, TraceParent } from './otlp.js';
import { SpanTree } from './span-tree.js';
import type { OpenSpan } from './span-tree.js';
import type { TraceFile } from './trace-file.js';

interface TraceOptions {
  readonly file: Pick<TraceFile, 'add' | 'isOpen'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** The start of the command on the monotonic clock. */
  readonly startedAt: number;
  /** The span of the program that started this one. */
  readonly parent?: TraceParent | undefined;
  /** The name of a span around several runs. Undefined: the command has one run. */
  readonly around?: string | undefined;
}

const [INTERNAL, CLIENT] = [1, 3] as const;
const MOST_MESSAGE = 500;

export class Trace {
  readonly #options: TraceOptions;
  readonly #traceId: string;
  readonly #aroundId: string | undefined;
  /** Added to times of the monotonic clock, it gives milliseconds since 1970. */
  readonly #offset: number;

  constructor(options: TraceOptions) {
    this.#options = options;
    const { clock, parent, around } = options;
    this.#traceId = parent?.traceId ?? randomBytes(16).toString('hex');
    this.#aroundId = around === undefined ? undefined : newId();
    this.#offset = clock.now() - clock.monotonic();
  }

  /** `name`: the job, or the verb of the only run. */
  follow(name: string): RunTrace {
    const { clock, startedAt, parent } = this.#options;
    const isOnly = this.#aroundId === undefined;
    return new RunTrace({
      name,
      startedAt: isOnly ? startedAt : clock.monotonic(),
      clock,
      offset: this.#offset,
      outerId: this.#aroundId ?? parent?.spanId,
      emit: this.#emit,
    });
  }

  /** Called after the last run. */
  end(): void {
    const { around, clock, startedAt, parent } = this.#options;
    if (around === undefined || this.#aroundId === undefined) return;
    this.#emit({
      id: this.#aroundId,
      parentId: parent?.spanId,
      name: around,
      kind: INTERNAL,
      from: startedAt + this.#offset,
      to: clock.monotonic() + this.#offset,
      attributes: {},
    });
  }

  readonly #emit = (span: Span): void => {
    const { file } = this.#options;
    if (file.isOpen) file.add(spanText(this.#traceId, span));
  };
}

interface RunTraceOptions {
  readonly name: string;
  readonly startedAt: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly offset: number;
  readonly outerId: string | undefined;
  readonly emit: (span: Span) => void;
}

export class RunTrace implements RunMonitor {
  readonly #options: RunTraceOptions;
  readonly #tree: SpanTree;
  readonly #run: OpenSpan;
  /** The parent of work that is not a part of other work. */
  #phase: OpenSpan | undefined;
  readonly #idStart = newId().slice(0, 8);
  #attempts = 0;

  constructor(options: RunTraceOptions) {
    this.#options = options;
    this.#tree = new SpanTree(options.emit, options.outerId);
    const from = options.startedAt + options.offset;
    const name = `cryptodl ${options.name}`;
    this.#run = this.#tree.begin({ id: newId(), name, kind: INTERNAL, from, attributes: {} });
  }

  readonly observer: Pick<Observer, 'attempt'> = {
    attempt: (attempt) => {
      this.#attempt(attempt);
    },
  };

  lakeAttempt(attempt: AttemptEnd): void {
    this.#attempt(attempt);
  }

  readonly work = (work: Work): ((error?: unknown) => void) => {
    const { id, stage, name } = work;
    const isWait = stage === 'wait';
    const from = this.#now();
    const span = {
      id,
      name: isWait ? `wait ${name}` : stage,
      kind: INTERNAL,
      from,
      attributes: factsOf(work),
    };
    const open = this.#tree.begin(span, this.#parentOf(work.parentId));
    return (error) => {
      this.#tree.end(open, { to: this.#now(), ...failureOf(error) });
    };
  };

  phase(phase: RunPhase): void {
    const now = this.#now();
    if (this.#phase !== undefined) this.#tree.end(this.#phase, { to: now });
    const span = { id: newId(), name: phase, kind: INTERNAL, from: now, attributes: {} };
    this.#phase = this.#tree.begin(span, this.#run.id);
  }

  /** Passes all open spans on. */
  ended(exitCode: ExitCode, error?: ErrorCode): void {
    const to = this.#now();
    const attributes = { 'cryptodl.exit_code': exitCode, 'error.type': error };
    const message = error ?? (exitCode === 0 ? undefined : `exit code ${exitCode}`);
    if (this.#phase !== undefined) this.#tree.end(this.#phase, { to });
    // The run ends first, so that it does not get the end of the spans that did not end themselves.
    this.#tree.end(this.#run, { to, error: message, attributes });
    this.#tree.endAll({ to, attributes: { 'cryptodl.unfinished': true } });
  }

  #parentOf(id: string | undefined): string | undefined {
    if (this.#tree.has(id)) return id;
    return (this.#phase ?? this.#run).id;
  }

  #attempt({ request, attemptId, workId, begunAt, sentAt, endedAt, ...end }: AttemptEnd): void {
    this.#attempts += 1;
    const id = this.#idStart + this.#attempts.toString(16).padStart(8, '0');
    const resent = Number(attemptId.split('/')[1] ?? 1) - 1;
    const { method = 'GET' } = request;
    const { host, port, address } = partsOf(request.url);
    const attributes: Attributes = {
      'http.request.method': method,
      'url.full': address,
      'server.address': host,
      'server.port': port,
      'http.response.status_code': end.status,
      'http.request.resend_count': resent > 0 ? resent : undefined,
      'cryptodl.bucket': request.bucket,
      'cryptodl.socket_wait_ms': whole(sentAt - begunAt),
      'cryptodl.first_byte_ms': end.firstByteMs === undefined ? undefined : whole(end.firstByteMs),
    };
    const { offset } = this.#options;
    const span = { id, name: method, kind: CLIENT, from: begunAt + offset, attributes };
    const open = this.#tree.begin(span, this.#parentOf(workId));
    this.#tree.end(open, { to: endedAt + offset, ...failureOf(end.error) });
  }

  #now(): number {
    return this.#options.clock.monotonic() + this.#options.offset;
  }
}

function newId(): string {
  return randomBytes(8).toString('hex');
}

function whole(ms: number): number {
  return Math.round(ms);
}

function factsOf({ stage, name, series }: Work): Attributes {
  const { market, dataset, interval, symbol } = series ?? {};
  return {
    [NAMED[stage]]: stage === 'request' ? partsOf(name).address : name,
    'cryptodl.market': market,
    'cryptodl.dataset': dataset,
    'cryptodl.interval': interval,
    'cryptodl.symbol': symbol,
  };
}

/** The attribute for the name of a piece of work. */
const NAMED: Readonly<Record<Work['stage'], string>> = {
  partition: 'cryptodl.period',
  download: 'cryptodl.object',
  request: 'url.full',
  wait: 'cryptodl.wait_reason',
  write: 'cryptodl.period',
  check: 'cryptodl.object',
  convert: 'cryptodl.period',
  commit: 'cryptodl.period',
};

function failureOf(error: unknown): { error?: string; attributes?: Attributes } {
  if (error === undefined) return {};
  const { code, message } = toCryptodlError(error);
  return { error: `${code}: ${message}`.slice(0, MOST_MESSAGE), attributes: { 'error.type': code } };
}

/** Values of these words in a query are secrets. */
const SECRET = /([?&][^=&]*(?:key|sig|signature|token|secret|password|credential)[^=&]*=)[^&]*/gi;

/** The address without secrets of its query. Options cannot hold addresses with a user, apart from that of a proxy. */
function partsOf(url: string): { address: string; host: string; port: number } {
  const { protocol, hostname, port } = new URL(url);
  return {
    address: url.replace(SECRET, '$1REDACTED'),
    host: hostname.replaceAll(/^\[|\]$/g, ''),
    port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
  };
}
