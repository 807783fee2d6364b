/** The debug dumps of a command: on SIGUSR2, with a CPU profile of the next ten seconds, and at its end with --debug-dump. */
import { fstatSync, readdirSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import type { Profiler } from 'node:inspector';
import { dirname, join } from 'node:path';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import { beginsWith, refuseForeignFile, writeOwnFile, type OwnFile } from '../../files/own-file.js';
import { Counters, type Counts } from '../../model/counters.js';
import { toCryptodlError } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import { TOOL_VERSION } from '../../model/version.js';
import { stateFolder, type Surroundings } from '../../files/environment.js';
import type { Options } from '../../plan/options/flags.js';
import { absolutePath, jsonText, printLines, shownPath } from '../../text/printable.js';
import type { RunIdentity } from './run-history.js';
import type { LiveRun } from '../report/live-run.js';
import type { Reporter } from '../report/reporter.js';

type DebugOutput = Pick<Reporter, 'note' | 'warn'>;

export type Command = Pick<Io, 'clock' | 'onDebugSignal' | 'startedAtMs' | 'stderr'> & {
  readonly surroundings: Surroundings;
};

const PROFILE_MS = 10_000;
/** Debug files that the state folder keeps, at most. */
const MOST_FILES = 20;
/** For a run with ten thousand pieces of work, a list of all would be no help. */
const MOST_PIECES = 500;
const NAME = /^debug-\d{8}T\d{9}Z-\d+\.(?:json|cpuprofile)$/;
/** The first characters of each dump. */
const DUMP_START = '{\n  "cryptodlDebugDump": 1,';

/** Rejects with a usage error if --debug-dump would replace a file of another kind. */
export async function openDebugDumps(
  options: Options<'debug-dump' | 'state-dir'>,
  command: Command,
): Promise<DebugDumps> {
  const { debugDump } = options;
  const path = debugDump === undefined ? undefined : absolutePath(debugDump, command.surroundings.home);
  if (path !== undefined) await refuseForeignFile(dumpAt(path, 'debug-dump'));
  return new DebugDumps(path, () => join(stateFolder(options, command.surroundings), 'debug'), command);
}

/** `flag`: the one that names the file or its folder. */
function dumpAt(path: string, flag: 'debug-dump' | 'state-dir'): OwnFile {
  return { flag, path, what: 'a debug dump', isOwn: beginsWith(DUMP_START), takesStreams: true };
}

export class DebugDumps {
  readonly #runs: { readonly run: RunIdentity; readonly live: LiveRun }[] = [];
  readonly #closed = new AbortController();
  #release: (() => void) | undefined;
  #output: DebugOutput;
  #spaces: Readonly<Record<string, number>> | undefined;
  /** The dump and the profile that are being written. Further signals are ignored until they are. */
  #pending: Promise<void> | undefined;

  /** `file`: of --debug-dump. `folder`: of the dumps on a signal. */
  constructor(
    private readonly file: string | undefined,
    private readonly folder: () => string,
    private readonly command: Command,
  ) {
    this.#output = {
      note: (line) => printLines(command.stderr, [line]),
      warn: (message) => printLines(command.stderr, [`warning: ${message}`]),
    };
  }

  /** Listens to SIGUSR2 from now on. The lines of dumps go to `output` from now on. */
  follow(run: RunIdentity, live: LiveRun, output: DebugOutput): void {
    this.#output = output;
    this.#release ??= this.command.onDebugSignal(() => {
      this.#pending ??= this.#onSignal().finally(() => {
        this.#pending = undefined;
      });
    });
    this.#runs.push({ run, live });
  }

  /** Ends the CPU profile, and writes the dump of --debug-dump. Later calls do nothing. */
  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.#release?.();
    await this.#pending;
    if (this.file !== undefined) await this.#write('debug dump', this.file, this.#text('end'));
  }

  async #onSignal(): Promise<void> {
    // The state at the signal, before anything waits.
    const text = this.#text('SIGUSR2');
    const time = new Date(this.command.clock.now()).toISOString().replaceAll(/[-:.]/g, '');
    const path = join(this.folder(), `debug-${time}-${process.pid}`);
    await this.#write('debug dump', `${path}.json`, text);
    await this.#write('CPU profile', `${path}.cpuprofile`, this.#profile());
  }

  /** A dump never harms a run: its errors are warnings. */
  async #write(what: string, path: string, text: string | Promise<string>): Promise<void> {
    const isGiven = path === this.file;
    try {
      const content = await text;
      await writeOwnFile(dumpAt(path, isGiven ? 'debug-dump' : 'state-dir'), (staged) =>
        writeFile(staged, content),
      );
      this.#output.note(`${what}: ${shownPath(path)}`);
      if (!isGiven) await pruneDebugFiles(dirname(path));
    } catch (error) {
      this.#output.warn(`the ${what} cannot be written: ${toCryptodlError(error).message}`, false);
    }
  }

  /** Resolves with the text of a `.cpuprofile` file. Rejects if this Node was built without its inspector. */
  async #profile(): Promise<string> {
    const { Session } = await import('node:inspector/promises');
    const session = new Session();
    session.connect();
    try {
      await session.post('Profiler.enable');
      await session.post('Profiler.start');
      await this.command.clock.sleep(PROFILE_MS, this.#closed.signal).catch(() => undefined);
      const { profile }: Profiler.StopReturnType = await session.post('Profiler.stop');
      return JSON.stringify(profile);
    } finally {
      session.disconnect();
    }
  }

  #text(reason: 'SIGUSR2' | 'end'): string {
    const { clock, startedAtMs } = this.command;
    const spaces = heapSpaces();
    const before = this.#spaces;
    this.#spaces = spaces;
    const dump = {
      cryptodlDebugDump: 1,
      reason,
      at: new Date(clock.now()).toISOString(),
      elapsedMs: Math.round(clock.monotonic() - startedAtMs),
      version: TOOL_VERSION,
      node: process.versions.node,
      platform: `${process.platform} ${process.arch}`,
      pid: process.pid,
      runs: this.#runs.map(({ run, live }) => runState(run, live)),
      memory: memoryState(),
      heapSpacesBytes: spaces,
      heapGrowthBytes:
        before &&
        Object.fromEntries(Object.entries(spaces).map(([name, now]) => [name, now - (before[name] ?? 0)])),
      openFiles: openDescriptors(),
    };
    return `${jsonText(dump, 2)}\n`;
  }
}

/** Plain data for JSON. */
function runState({ verb, job, options }: RunIdentity, live: LiveRun): object {
  const { pieces, progress, objects, active } = live;
  const network = live.network?.();
  const queue = progress && {
    plannedObjects: objects.planned,
    outcomes: progress.tally.outcomes,
    failedBy: progress.tally.failedBy,
    objectsWithoutOutcome: objects.undone,
    concurrencyLimit: network?.concurrency,
    ...(live.phase.phase === 'working' && { ...progress.state(), stages: active }),
  };
  return {
    verb,
    job,
    ...live.phase,
    options,
    queue,
    workInProgress: pieces.slice(0, MOST_PIECES),
    moreWorkInProgress: Math.max(0, pieces.length - MOST_PIECES),
    ...live.hosts?.(),
    network,
    exitCode: live.end?.exitCode,
  };
}

function memoryState(): object {
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
  const heap = getHeapStatistics();
  return {
    residentBytes: rss,
    heapUsedBytes: heapUsed,
    heapTotalBytes: heapTotal,
    heapLimitBytes: heap.heap_size_limit,
    externalBytes: external,
    arrayBuffersBytes: arrayBuffers,
    // More than 0 is a sign of a leak.
    detachedContexts: heap.number_of_detached_contexts,
  };
}

/** The used bytes by space, for example `old_space`. */
function heapSpaces(): Readonly<Record<string, number>> {
  return Object.fromEntries(
    getHeapSpaceStatistics().map(({ space_name: name, space_used_size: bytes }) => [name, bytes]),
  );
}

/** The number of open descriptors by kind. Systems without /proc count the resources of Node. */
export function openDescriptors(): Counts {
  try {
    return counted(readdirSync('/proc/self/fd').flatMap((name) => kindOfDescriptor(name) ?? []));
  } catch {
    return counted(process.getActiveResourcesInfo());
  }
}

function kindOfDescriptor(name: string): string | undefined {
  try {
    const facts = fstatSync(Number(name));
    if (facts.isSocket()) return 'sockets';
    if (facts.isFile()) return 'files';
    if (facts.isFIFO()) return 'pipes';
    if (facts.isDirectory()) return 'folders';
    if (facts.isCharacterDevice()) return 'devices';
    return 'others';
  } catch {
    // The descriptor of the listing itself is closed by now.
    return undefined;
  }
}

function counted(kinds: readonly string[]): Counts {
  return new Counters(...kinds.map((kind) => ({ [kind]: 1 }))).all;
}

/** Removes the oldest debug files. Other files, folders and links stay. */
async function pruneDebugFiles(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  const own = entries.filter((entry) => entry.isFile() && NAME.test(entry.name)).map(({ name }) => name);
  for (const name of own.sort().slice(0, -MOST_FILES)) await rm(join(folder, name), { force: true });
}
