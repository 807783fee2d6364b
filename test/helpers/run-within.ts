/** The built program within this process: `run(argv, io)` of dist/main.js with streams, environment and signals of the test. */
import { Socket } from 'node:net';
import { Readable, Writable } from 'node:stream';
import type { Worker } from 'node:worker_threads';
import type { LoadExchange } from '../../src/run/verb/verb.js';
import type { Io } from '../../src/model/io.js';
import { openFiles } from './folders.js';
import type { IdleClock } from './idle-clock.js';

export interface RunWithin {
  /** All of it: nothing of this process's own environment is passed on. */
  readonly environment: Readonly<Record<string, string>>;
  readonly stdin: string;
  readonly cwd: string | undefined;
  /** The time of the program in place of the real time: it moves only while the program has nothing to do. */
  readonly clock: IdleClock | undefined;
  /** Another exchange than Binance. */
  readonly loadExchange?: LoadExchange | undefined;
  /** How the program would be started, word by word. */
  readonly program: readonly string[];
}

export interface RanWithin {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process would wait for the last handle of a run: here it must be closed by then. Servers close idle sockets after 5 s. */
const CLOSED_MS = 10_000;

/** Bytes that the sockets of this process have sent and received. */
function socketBytes(): number {
  let bytes = 0;
  for (const handle of activeHandles())
    if (handle instanceof Socket) bytes += handle.bytesRead + handle.bytesWritten;
  return bytes;
}

let isUnderWay = false;

/** Rejects when the run leaves something open: see `refuseLeaks`. */
export async function runWithin(args: readonly string[], options: RunWithin): Promise<RanWithin> {
  if (isUnderWay) throw new Error('one run at a time in a process: the others need cryptodlProcess()');
  isUnderWay = true;
  const folder = process.cwd();
  try {
    process.chdir(options.cwd ?? folder);
    return await ran(args, options);
  } finally {
    process.chdir(folder);
    isUnderWay = false;
  }
}

async function ran(
  args: readonly string[],
  { environment, stdin, program, clock, loadExchange }: RunWithin,
): Promise<RanWithin> {
  const { run, systemClock } = await built();
  const stdout = new Collected();
  const stderr = new Collected();
  let listeners = 0;
  const io: Io = {
    stdout,
    stderr,
    isRead: () => true,
    clock: clock ?? systemClock,
    startedAtMs: (clock ?? systemClock).monotonic(),
    stdin: Readable.from(stdin === '' ? [] : [Buffer.from(stdin)]),
    program,
    environment,
    signal: new AbortController().signal,
    onSignal: () => {
      listeners += 1;
      return () => {
        listeners -= 1;
      };
    },
    onDebugSignal: () => {
      listeners += 1;
      return () => {
        listeners -= 1;
      };
    },
    kill: (signal) => {
      throw new Error(`the run ends its process by ${signal}: it needs cryptodlProcess()`);
    },
    exit: (code) => {
      throw new Error(`the run ends its process with ${code}: it needs cryptodlProcess()`);
    },
  };
  const progress = (): number => stdout.bytes + stderr.bytes + socketBytes();
  const code = await refuseLeaks(() => {
    const done = run(args, io, loadExchange);
    return clock?.drive(done, { progress, isVenueWithin: true }) ?? done;
  });
  if (listeners !== 0) throw new Error(`the run left ${listeners} listeners for signals behind`);
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** Loaded when first needed: `dist` is not there yet when the types are checked. */
async function built(): Promise<Pick<Modules, 'run' | 'systemClock'>> {
  const dist = new URL('../../dist/', import.meta.url);
  const load = async (file: string): Promise<unknown> => import(new URL(file, dist).href);
  const { run } = (await load('main.js')) as Modules;
  const { restrictUmask } = (await load('process.js')) as Modules;
  const { systemClock } = (await load('model/clock.js')) as Modules;
  restrictUmask();
  return { run, systemClock };
}

type Modules = typeof import('../../src/main.js') &
  typeof import('../../src/process.js') &
  typeof import('../../src/model/clock.js');

class Collected extends Writable {
  readonly #chunks: Buffer[] = [];
  bytes = 0;

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    this.bytes += chunk.length;
    done();
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}

/** Rejects when `act` leaves a timer, a socket, a thread, a listener for signals or (on Linux) an open file behind. */
async function refuseLeaks<T>(act: () => Promise<T>, closedMs = CLOSED_MS): Promise<T> {
  const threads = new Set<Worker>();
  const onWorker = (thread: Worker): void => {
    threads.add(thread);
    thread.once('exit', () => threads.delete(thread));
  };
  process.on('worker', onWorker);
  try {
    const before = openResources();
    const result = await act();
    await allClosed(before, threads, closedMs);
    return result;
  } finally {
    process.off('worker', onWorker);
  }
}

/** The number of open resources of each kind, without the connections that servers of the tests have accepted. */
function openResources(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const count = (kind: string, by: number): void => void counts.set(kind, (counts.get(kind) ?? 0) + by);
  for (const kind of process.getActiveResourcesInfo()) if (kind !== 'Immediate') count(kind, 1);
  for (const handle of activeHandles())
    if (handle instanceof Socket && 'server' in handle && handle.server !== null) count('TCPSocketWrap', -1);
  for (const path of process.platform === 'linux' ? openFiles('/') : []) count(path, 1);
  for (const signal of ['SIGINT', 'SIGTERM']) count(`listener of ${signal}`, process.listenerCount(signal));
  return counts;
}

/** Undocumented, and the only list of sockets that Node has. */
function activeHandles(): unknown[] {
  return (process as unknown as { _getActiveHandles: () => unknown[] })._getActiveHandles();
}

async function allClosed(
  before: ReadonlyMap<string, number>,
  threads: ReadonlySet<Worker>,
  closedMs: number,
): Promise<void> {
  const until = performance.now() + closedMs;
  for (;;) {
    const left = [...openResources(), ['worker thread', threads.size] as const].filter(
      ([kind, count]) => count > (before.get(kind) ?? 0),
    );
    if (left.length === 0) return;
    if (performance.now() > until) {
      const what = left.map(([kind, count]) => `${kind} ×${count - (before.get(kind) ?? 0)}`);
      throw new Error(`the run left behind: ${what.join(', ')}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
