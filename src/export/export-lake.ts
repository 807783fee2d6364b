/** Writes the files of an engine from the lake: reads the series group by group, and writes several files at once. */
import { isFileError } from '../convert/duckdb-errors.js';
import { reasonOf } from '../text/path-faults.js';
import { acquireLock } from '../lake/lock.js';
import { makeFolder } from '../files/disk.js';
import { rm, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { verbEngine } from '../convert/duckdb.js';
import type { DuckDbSession, Engine as DuckDbEngine } from '../convert/duckdb.js';
import { releaseBacked } from '../lake/backing.js';
import { seriesFolder } from '../lake/layout.js';
import type { Lock } from '../lake/lock.js';
import { checkedFolder } from '../lake/path-checks.js';
import { fileFacts, publish } from '../lake/publish.js';
import { dayText } from '../model/calendar.js';
import { CryptodlError, errnoOf, usage } from '../model/errors.js';
import { cores, memoryLimitBytes, withinOpenFiles } from '../model/machine.js';
import type { Series } from '../model/task.js';
import { TOOL_VERSION } from '../model/version.js';
import type { VerbRequest } from '../options/verb-request.js';
import { FileDigests, UnreadableFile } from '../catalogue/file-digests.js';
import { refuseInLake } from '../select/refuse-in-lake.js';
import { absolutePath, shownPath, lakeFlag } from '../text/printable.js';
import type { Days, Engine, EngineSettings, ExportFile, Refused } from './export-file.js';
import { emptyStaging, Provenance, removeStaging, EXPORT_FOLDER } from './provenance.js';
import type { FileLine } from './provenance.js';
import { readSeries } from './read-series.js';
import { groupsOf } from './select-export.js';
import { madeFrom, stageFile } from './write-file.js';

/**
 * `unchanged`: made from the same sources, and still there. `empty`: the sources have no rows for it, and there is no file. `planned`: a dry run
 * would write it. The others are failures. `foreign`: the place has a file that export did not write, or that has changed since. `narrower`: the
 * present file covers more days or symbols. `unreadable`: a file of the lake is damaged, or has a number that does not fit. `failed`: files of the lake changed during the export.
 */
export type FileOutcome =
  'written' | 'unchanged' | 'empty' | 'planned' | 'foreign' | 'narrower' | 'unreadable' | 'failed';

export interface ExportedFile {
  /** Relative to the target. */
  readonly file: string;
  readonly outcome: FileOutcome;
  readonly rows: number;
  readonly bytes: number;
  /** Rows that were left out, because the row before had the same time. */
  readonly repeated: number;
  /** Why it failed. */
  readonly text?: string;
}

export interface ExportRequest {
  readonly request: VerbRequest;
  readonly engine: Engine;
  readonly settings: EngineSettings;
  readonly selected: readonly Series[];
  readonly range: Partial<Days>;
  /** Absolute. */
  readonly target: string;
  readonly onFile: (file: ExportedFile) => void;
  readonly onRefused: (refused: Refused) => void;
}

/** Resolves when all files are written. Rejects with `locked` while another export writes to the target, and with errors of disk, memory or interruption. */
export async function exportLake(given: ExportRequest): Promise<void> {
  const { request, target } = given;
  const { dryRun } = request.resolved.options;
  const { clock, observer } = request;
  const stop = new AbortController();
  const lock = dryRun ? undefined : await lockTarget(target, { clock, stop });
  try {
    const staging = dryRun ? '' : await emptyStaging(target);
    const record = await Provenance.open(target, {
      isWritten: !dryRun,
      warn: (message) => {
        observer.warn(message);
      },
    });
    const signal = AbortSignal.any([request.signal, stop.signal]);
    const exporter = new Exporter(given, { record, staging, lock, signal });
    await exporter.run();
    if (!dryRun) await record.compact();
  } finally {
    // The lock proves that the staged files are those of this export.
    if (lock?.isLost === false) await removeStaging(target);
    await lock?.release();
  }
}

interface Surroundings {
  readonly record: Provenance;
  readonly staging: string;
  readonly lock: Lock | undefined;
  readonly signal: AbortSignal;
}

class Exporter {
  readonly #given: ExportRequest;
  readonly #around: Surroundings;
  readonly #root: string;
  /** Lines of the record are appended one after the other. */
  #appended: Promise<void> = Promise.resolve();
  readonly #seen = new Set<string>();
  /** Folders of files that are not in the lake. */
  readonly #folders = new Set<string>();
  readonly #digests: FileDigests;

  constructor(given: ExportRequest, around: Surroundings) {
    this.#given = given;
    this.#around = around;
    const { resolved, surroundings } = given.request;
    this.#root = absolutePath(resolved.options.out, surroundings.home);
    this.#digests = new FileDigests(this.#root, around.signal);
  }

  async run(): Promise<void> {
    const { request } = this.#given;
    const { dryRun: isPlan } = request.resolved.options;
    const { signal } = this.#around;
    const engine = verbEngine('export', { ...request, signal }, memoryLimitBytes() / 4);
    const files = this.#files();
    const work = async (): Promise<void> => {
      let session: DuckDbSession | undefined;
      try {
        for (;;) {
          signal.throwIfAborted();
          const next = await files.next();
          if (next.done === true) return;
          session ??= await openSession(engine);
          this.#given.onFile(await this.#export(next.value, session));
        }
      } finally {
        session?.close();
      }
    };
    try {
      await allOrFirstError(Array.from({ length: isPlan ? 1 : withinOpenFiles(cores()) }, work));
    } catch (error) {
      // An interrupted statement does not tell why: a lost lock, or Ctrl-C.
      signal.throwIfAborted();
      throw error;
    } finally {
      await engine.end();
    }
  }

  async *#files(): AsyncGenerator<ExportFile, void> {
    const { engine, range, request, selected, settings } = this.#given;
    const venue = request.source;
    for (const group of groupsOf(selected, engine.groupBy)) {
      const read = await Promise.all(group.map((series) => readSeries(this.#root, venue, series)));
      const held = read.filter((one) => 'files' in one);
      const symbol = group[0]?.symbol ?? '';
      const { files, refused } = engine.files({ venue, symbol, held, range, settings });
      for (const one of [...read.filter((each) => 'reason' in each), ...refused]) this.#given.onRefused(one);
      for (const file of files) {
        // Two symbols can have one name in a layout.
        if (this.#seen.has(file.path)) {
          for (const { series } of file.sources.slice(0, 1))
            this.#given.onRefused({ series, reason: 'another symbol has files with the same names' });
          continue;
        }
        this.#seen.add(file.path);
        await this.#refuseInLake(dirname(file.path));
        yield file;
      }
      await releaseBacked(...group.map((series) => join(this.#root, seriesFolder(venue.name, series))));
    }
  }

  /** Throws a usage error if a folder of the target lies in the lake: the lake may be below the target. */
  async #refuseInLake(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return;
    this.#folders.add(folder);
    await refuseInLake(join(this.#given.target, folder), this.#root, this.#given.request.source.name);
  }

  async #export(file: ExportFile, session: DuckDbSession): Promise<ExportedFile> {
    const { record } = this.#around;
    const { force, dryRun } = this.#given.request.resolved.options;
    const of = { file: file.path, rows: 0, bytes: 0, repeated: 0 };
    const sources = this.#sourcesOf(file);
    const digest = madeFrom(file, sources);
    const present = force ? undefined : await record.presentOf(file.path);
    if (present?.madeFrom === digest) {
      const { rows, bytes } = present;
      return { ...of, outcome: rows === 0 ? 'empty' : 'unchanged', rows, bytes };
    }
    const lost = present === undefined ? undefined : lostText(present, file.days, sources);
    if (lost !== undefined) return { ...of, outcome: 'narrower', text: lost };
    const foreign = await record.problemOf(file.path, force);
    if (foreign !== undefined) return { ...of, outcome: 'foreign', text: foreign };
    if (dryRun) return { ...of, outcome: 'planned' };
    try {
      return await this.#write(file, session, { madeFrom: digest, sources });
    } catch (error) {
      const fault = writeFault(error, this.#root);
      if (fault === undefined) throw error;
      return { ...of, ...fault };
    }
  }

  async #write(
    file: ExportFile,
    session: DuckDbSession,
    facts: Pick<FileLine, 'madeFrom' | 'sources'>,
  ): Promise<ExportedFile> {
    const { engine, target, request } = this.#given;
    const { record, lock, staging, signal } = this.#around;
    const staged = await stageFile(session, file, { staging, digests: this.#digests });
    const { rows, repeated } = staged;
    const { bytes, sha256 } = await fileFacts(staged.path);
    const { mtimeMs } = await stat(staged.path);
    const folder = await checkedFolder(target, dirname(file.path));
    const path = join(folder, basename(file.path));
    signal.throwIfAborted();
    await lock?.confirm();
    // A file of another program may have appeared since the rows were read.
    const foreign = await record.problemOf(file.path, request.resolved.options.force);
    if (foreign !== undefined) {
      await rm(staged.path, { force: true });
      return { file: file.path, outcome: 'foreign', rows: 0, bytes: 0, repeated: 0, text: foreign };
    }
    const line: FileLine = {
      v: 1,
      engine: engine.name,
      file: file.path,
      ...facts,
      from: dayText(file.days.from),
      to: dayText(file.days.to),
      rows,
      bytes: rows === 0 ? 0 : bytes,
      sha256,
      modifiedAt: mtimeMs,
      at: new Date(request.clock.now()).toISOString(),
      tool: `cryptodl ${TOOL_VERSION}`,
    };
    const append = this.#appended.then(() => record.append(line));
    this.#appended = append.catch(() => undefined);
    await append;
    const of = { file: file.path, rows, bytes: line.bytes, repeated };
    if (rows > 0) {
      await publish(staged.path, path);
      return { ...of, outcome: 'written' };
    }
    await rm(staged.path, { force: true });
    await rm(path, { force: true });
    return { ...of, outcome: 'empty' };
  }

  /** The files of the lake that the rows come from, relative to the lake. */
  #sourcesOf(file: ExportFile): FileLine['sources'] {
    return file.sources.flatMap(({ files }) =>
      files.map(({ path, sha256 }) => ({ file: relative(this.#root, path).split(sep).join('/'), sha256 })),
    );
  }
}

/** A session whose times are UTC: comparing a time with and without a zone depends on it. */
async function openSession(engine: DuckDbEngine): Promise<DuckDbSession> {
  const session = await engine.session();
  await session.run("SET TimeZone = 'UTC'");
  return session;
}

/** Waits for all, then rejects with the first error: a worker must not write while the lock is released. */
async function allOrFirstError(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** Makes the target if it is missing. Rejects with `locked`, with a usage error for a place that cannot be written, and with `disk` for a symbolic link. */
async function lockTarget(
  target: string,
  { clock, stop }: { readonly clock: VerbRequest['clock']; readonly stop: AbortController },
): Promise<Lock> {
  try {
    await makeFolder(target);
    return await acquireLock(await checkedFolder(target, EXPORT_FOLDER), {
      command: 'cryptodl export',
      clock,
      onLost: (error) => {
        stop.abort(error);
      },
    });
  } catch (error) {
    if (error instanceof CryptodlError && error.code === 'locked')
      throw new CryptodlError('locked', `another export is writing to ${shownPath(target)}`, {
        cause: error,
        hint: 'wait until it has ended, or choose another --target',
      });
    if (error instanceof CryptodlError) throw error;
    throw usage(
      `--target ${shownPath(target)} cannot be written (${reasonOf(errnoOf(error))})`,
      'choose another --target',
    );
  }
}

interface WriteFault {
  /** `unreadable`: a file of the lake is damaged. `failed`: files of the lake changed during the export. */
  readonly outcome: 'unreadable' | 'failed';
  readonly text: string;
}

/** Undefined for an error that ends the export. */
function writeFault(error: unknown, root: string): WriteFault | undefined {
  if (error instanceof CryptodlError && error.code === 'partition-incomplete')
    return { outcome: 'failed', text: `${error.message}; ${error.hint ?? ''}` };
  if (error instanceof UnreadableFile) return { outcome: 'unreadable', text: error.message };
  if (error instanceof CryptodlError || !isFileError(error)) return undefined;
  const [reason = ''] = error instanceof Error ? error.message.split('\n') : [];
  return {
    outcome: 'unreadable',
    text: `${reason}; cryptodl verify --deep${lakeFlag(root)} finds damaged files`,
  };
}

/** Which days or symbols a new file would lose; undefined if it has all of the present one. `days`: its first day and its exclusive end. */
function lostText(present: FileLine, days: Days, sources: FileLine['sources']): string | undefined {
  if (present.rows === 0) return undefined;
  const own = symbolsOf(sources);
  const symbols = [...symbolsOf(present.sources)].filter((symbol) => !own.has(symbol));
  const isShorter = dayText(days.from) > present.from || dayText(days.to) < present.to;
  if (!isShorter && symbols.length === 0) return undefined;
  const lost = isShorter
    ? 'days: leave out the range'
    : `symbols, for example ${symbols[0] ?? ''}: select them too`;
  return `the file has more ${lost}, or add --force`;
}

function symbolsOf(sources: FileLine['sources']): ReadonlySet<string> {
  return new Set(sources.map(({ file }) => basename(dirname(file)).replace(/^symbol=/, '')));
}
