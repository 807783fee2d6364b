/** The debug dumps of a command: on SIGUSR2, and at its end with --debug-dump. A second signal records a CPU profile. */
import { dirname } from 'node:path';
import { lakePaths } from '../lake/layout.js';
import type { Timer } from '../model/clock.js';
import { toCryptodlError } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { TOOL_VERSION } from '../model/version.js';
import { durationText } from '../model/units.js';
import { absolutePath, jsonText, printLines, shownPath } from '../text/printable.js';
import {
  isDevice,
  pathBeside,
  pathInLake,
  pruneDebugFiles,
  refuseBadDump,
  writeWhole,
} from './debug-files.js';
import { DebuggedRun } from './debugged-run.js';
import type { DebuggedRunOptions } from './debugged-run.js';
import { heapGrowth, heapSpaces, memoryState, openFiles } from './process-state.js';
import type { HeapSpaces } from './process-state.js';
import { startCpuProfile, writeHeapSnapshot } from './recordings.js';
import { RequestNotes } from './request-notes.js';

export interface DebugOptions {
  /** The lake of the command. */
  readonly out: string;
  readonly dryRun: boolean;
  readonly debugDump: string | undefined;
  readonly heapSnapshotOnSignal: boolean;
}

/** Prints lines of a run without damage to its progress line. */
export interface DebugOutput {
  note(line: string): void;
  warn(message: string): void;
}

type Command = Pick<Io, 'clock' | 'onDebugSignal' | 'startedAt' | 'stderr'> & {
  readonly home: string | undefined;
};

/** A second signal within this time begins a CPU profile, which takes as long. */
const AGAIN_MS = 10_000;
const PROFILE_MS = 10_000;

/** Rejects with a usage error if --debug-dump cannot be written. */
export async function openDebugDumps(options: DebugOptions, command: Command): Promise<DebugDumps> {
  const { debugDump } = options;
  const file = debugDump === undefined ? undefined : absolutePath(debugDump, command.home);
  if (file !== undefined) await refuseBadDump(file);
  return new DebugDumps({ ...options, file }, command);
}

interface DumpOptions extends Omit<DebugOptions, 'debugDump'> {
  /** Absolute path of --debug-dump. */
  readonly file: string | undefined;
}

export class DebugDumps {
  readonly #options: DumpOptions;
  readonly #command: Command;
  readonly #notes: RequestNotes;
  readonly #runs: DebuggedRun[] = [];
  #release: (() => void) | undefined;
  readonly #pending = new Set<Promise<void>>();
  #output: DebugOutput;
  #dumpedAt = Number.NEGATIVE_INFINITY;
  /** The path of the last dump without its ending. */
  #lastPath: string | undefined;
  #spaces: HeapSpaces | undefined;
  /** Ends the CPU profile that is being recorded. */
  #endProfile: (() => void) | undefined;
  #hasSaidThatItRecords = false;
  #isClosed = false;

  constructor(options: DumpOptions, command: Command) {
    this.#options = options;
    this.#command = command;
    this.#notes = new RequestNotes(command.clock);
    this.#output = {
      note: (line) => {
        printLines(command.stderr, [line]);
      },
      warn: (message) => {
        printLines(command.stderr, [`warning: ${message}`]);
      },
    };
  }

  /** Listens to SIGUSR2 from now on. The lines of dumps go to `output` from now on. */
  follow(run: Pick<DebuggedRunOptions, 'verb' | 'job' | 'options'>, output: DebugOutput): DebuggedRun {
    this.#output = output;
    this.#release ??= this.#command.onDebugSignal(() => {
      this.#onSignal();
    });
    const followed = new DebuggedRun({ ...run, clock: this.#command.clock, notes: this.#notes });
    this.#runs.push(followed);
    return followed;
  }

  /** Ends recordings, and writes the dump of --debug-dump. Later calls do nothing. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#release?.();
    this.#endProfile?.();
    await Promise.all(this.#pending);
    const { file } = this.#options;
    if (file !== undefined)
      await this.#during('the debug dump', () => this.#write(file, 'debug dump', this.#text('end')));
  }

  #onSignal(): void {
    const now = this.#command.clock.monotonic();
    if (this.#endProfile !== undefined) this.#sayThatItRecords();
    else if (now - this.#dumpedAt <= AGAIN_MS) this.#begin('the CPU profile', () => this.#profile());
    else {
      this.#dumpedAt = now;
      this.#begin('the debug dump', () => this.#dump());
    }
  }

  #sayThatItRecords(): void {
    // Many signals in a row get one line.
    if (!this.#hasSaidThatItRecords)
      this.#output.note('a CPU profile is being recorded: SIGUSR2 is ignored until it ends');
    this.#hasSaidThatItRecords = true;
  }

  #begin(what: string, act: () => Promise<void>): void {
    const pending = this.#during(what, act);
    this.#pending.add(pending);
    void pending.finally(() => this.#pending.delete(pending));
  }

  /** A dump never harms a run: its errors are warnings. */
  async #during(what: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.#output.warn(`${what} cannot be written: ${toCryptodlError(error).message}`);
    }
  }

  async #dump(): Promise<void> {
    // The state at the signal, before anything waits.
    const text = this.#text('SIGUSR2');
    const path = await this.#newPath();
    this.#lastPath = path;
    await this.#write(`${path}.json`, 'debug dump', text);
    if (!this.#options.heapSnapshotOnSignal) return;
    // The memory may hold passwords, so other users may not read it.
    await writeWhole(`${path}.heapsnapshot`, writeHeapSnapshot, { mode: 0o600 });
    this.#output.note(`heap snapshot: ${shownPath(`${path}.heapsnapshot`)} (it may hold secrets)`);
    await this.#prune(path);
  }

  async #profile(): Promise<void> {
    let timer: Timer | undefined;
    const { clock } = this.#command;
    const isOver = new Promise<void>((resolve) => {
      this.#endProfile = resolve;
      timer = clock.timer(PROFILE_MS, resolve);
      if (this.#isClosed) resolve();
    });
    try {
      const profile = await startCpuProfile();
      this.#output.note(`recording a CPU profile for ${durationText(PROFILE_MS)}`);
      await isOver;
      const text = await profile.stop();
      const path = this.#lastPath ?? (await this.#newPath());
      await this.#write(`${path}.cpuprofile`, 'CPU profile', text);
    } finally {
      timer?.cancel();
      this.#endProfile = undefined;
      this.#hasSaidThatItRecords = false;
      this.#dumpedAt = Number.NEGATIVE_INFINITY;
    }
  }

  async #write(path: string, what: string, text: string): Promise<void> {
    await writeWhole(path, (file) => file.writeFile(text));
    this.#output.note(`${what}: ${shownPath(path)}`);
    await this.#prune(path);
  }

  /** In the lake, or beside the file of --debug-dump. Without ending. */
  async #newPath(): Promise<string> {
    const { file, dryRun, out } = this.#options;
    const nowMs = this.#command.clock.now();
    if (file !== undefined && !(await isDevice(file))) return pathBeside(file, nowMs);
    if (dryRun) throw new Error('a dry run writes nothing into the lake; give --debug-dump FILE');
    return pathInLake(lakePaths(absolutePath(out, this.#command.home)), nowMs);
  }

  async #prune(path: string): Promise<void> {
    const { internal } = lakePaths(absolutePath(this.#options.out, this.#command.home));
    if (dirname(path) === internal) await pruneDebugFiles(internal);
  }

  #text(reason: 'SIGUSR2' | 'end'): string {
    const { clock, startedAt } = this.#command;
    const spaces = heapSpaces();
    const before = this.#spaces;
    this.#spaces = spaces;
    const dump = {
      cryptodlDebugDump: 1,
      reason,
      at: new Date(clock.now()).toISOString(),
      elapsedMs: Math.round(clock.monotonic() - startedAt),
      version: TOOL_VERSION,
      node: process.versions.node,
      platform: `${process.platform} ${process.arch}`,
      pid: process.pid,
      runs: this.#runs.map(({ state }) => state),
      slowestRequests: this.#notes.slowest,
      lastErrors: this.#notes.errors,
      memory: memoryState(),
      heapSpaces: spaces,
      heapGrowthBytes: before === undefined ? undefined : heapGrowth(before, spaces),
      openFiles: openFiles(),
    };
    return `${jsonText(dump, 2)}\n`;
  }
}
