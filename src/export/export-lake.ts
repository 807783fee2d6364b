/** Writes the files of an engine from the lake: reads the series group by group, and writes several files at once. */
import { createHash } from 'node:crypto';
import { rm, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { filesOfRange, openCatalogue } from '../catalogue/catalogue.js';
import type { Catalogue, DayRange } from '../catalogue/catalogue.js';
import { UnreadableFile } from '../catalogue/file-digests.js';
import { isFileError } from '../convert/duckdb-errors.js';
import { verbEngine } from '../convert/duckdb.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { bringIn, releaseBacked } from '../lake/backing.js';
import { seriesFolder } from '../lake/layout.js';
import type { Lock } from '../lake/lock.js';
import { fileFacts } from '../lake/publish.js';
import { CryptodlError } from '../model/errors.js';
import { cores, memoryLimitBytes, withinOpenFiles } from '../model/machine.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import { listText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
import type { VerbRequest } from '../options/verb-request.js';
import { refuseInLake } from '../select/refuse-in-lake.js';
import { absolutePath, lakeFlag } from '../text/printable.js';
import { oneForEachPath } from './export-file.js';
import type { Engine, EngineSettings, ExportFile, Refused, RowSource } from './export-file.js';
import { lockTarget, Output } from './export-target.js';
import { groupsOf } from './select-export.js';
import { writeRows } from './write-rows.js';

/**
 * `unchanged`: made from the same sources, and still there. `empty`: the sources have no rows for it, and there is no file. `planned`: a dry run
 * would write it. The others are failures. `foreign`: the place has a file that export did not write, or that has changed since. `unreadable`:
 * a file of the lake is damaged, or has a number that does not fit. `failed`: files of the lake changed during the export.
 */
export type FileOutcome = 'written' | 'unchanged' | 'empty' | 'planned' | 'foreign' | 'unreadable' | 'failed';

export interface ExportedFile {
  /** Relative to the target. */
  readonly file: string;
  readonly outcome: FileOutcome;
  readonly rows: number;
  readonly bytes: number;
  /** Why it failed. */
  readonly text?: string;
}

export interface ExportRequest {
  readonly request: VerbRequest;
  readonly engine: Engine;
  readonly settings: EngineSettings;
  readonly selected: readonly Series[];
  readonly range: Partial<DayRange>;
  /** Absolute. */
  readonly target: string;
  readonly onFile: (file: ExportedFile) => void;
  readonly onRefused: (refused: Refused) => void;
}

/** Resolves when all files are written. Rejects with `locked` while another export writes to the target, and with errors of disk, memory or interruption. */
export async function exportLake(given: ExportRequest): Promise<void> {
  const { request, target } = given;
  const stop = new AbortController();
  const onLost = (error: CryptodlError): void => {
    stop.abort(error);
  };
  const { dryRun } = request.resolved.options;
  const lock = dryRun ? undefined : await lockTarget(target, { clock: request.clock, onLost });
  try {
    await new Exporter(given, lock, AbortSignal.any([request.signal, stop.signal])).run();
  } finally {
    await lock?.release();
  }
}

/** The series that can be read as row sources, or the reason why not. A series with a file that cannot be read would have a hole that nothing shows. */
export async function* readSources(
  catalogue: Catalogue,
  selected: readonly Series[],
  range: Partial<DayRange>,
): AsyncGenerator<RowSource | Refused> {
  for await (const { series, spec, files, fault } of catalogue.series(selected)) {
    const none = files.length === 0 ? 'the lake has no Parquet or CSV files of it' : undefined;
    const reason =
      spec === undefined ? 'this version of cryptodl does not know the dataset' : (fault ?? none);
    if (spec === undefined || reason !== undefined) yield { series, reason: reason ?? '', isFault: true };
    else yield { series, spec, files: filesOfRange({ series, files }, spec, range), range };
  }
}

/** Whether the lake holds any day of the range. */
export function isHeld({ files, range: { from = -Infinity, to = Infinity } }: RowSource): boolean {
  return files.some(({ days }) => days.from < to && days.to > from);
}

class Exporter {
  readonly #given: ExportRequest;
  readonly #lock: Lock | undefined;
  readonly #signal: AbortSignal;
  readonly #catalogue: Catalogue;
  readonly #seen = new Set<string>();
  /** Folders of files that are not in the lake. */
  readonly #folders = new Set<string>();

  constructor(given: ExportRequest, lock: Lock | undefined, signal: AbortSignal) {
    this.#given = given;
    this.#lock = lock;
    this.#signal = signal;
    const { resolved, source, surroundings } = given.request;
    this.#catalogue = openCatalogue(absolutePath(resolved.options.out, surroundings.home), source, signal);
  }

  async run(): Promise<void> {
    const { request, onFile } = this.#given;
    const signal = this.#signal;
    const engine = verbEngine('export', { ...request, signal }, memoryLimitBytes() / 4);
    const files = this.#files();
    const work = async (): Promise<void> => {
      let session: DuckDbSession | undefined;
      try {
        for (;;) {
          signal.throwIfAborted();
          const next = await files.next();
          if (next.done === true) return;
          session ??= await engine.session();
          // Comparing a time with and without a zone depends on it.
          await session.run("SET TimeZone = 'UTC'");
          onFile(await this.#export(next.value, session));
        }
      } finally {
        session?.close();
      }
    };
    try {
      const workers = request.resolved.options.dryRun ? 1 : withinOpenFiles(cores());
      // All end before the lock is released.
      const results = await Promise.allSettled(Array.from({ length: workers }, work));
      // An interrupted statement does not tell why: a lost lock, or Ctrl-C.
      signal.throwIfAborted();
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    } finally {
      await engine.end();
    }
  }

  async *#files(): AsyncGenerator<ExportFile, void> {
    const { engine, range, request, selected, settings, onRefused } = this.#given;
    const { source: venue } = request;
    for (const group of groupsOf(selected, engine.groupBy)) {
      const sources: RowSource[] = [];
      for await (const read of readSources(this.#catalogue, group, range))
        if ('reason' in read) onRefused(read);
        else if (isHeld(read)) sources.push(read);
      const { files: all, refused } = engine.files({ venue, sources, settings });
      const { files, refused: others } = oneForEachPath(all);
      for (const one of [...refused, ...others]) onRefused(one);
      for (const file of files) {
        const [{ series } = {}] = file.sources;
        // Two symbols can have one name in a layout.
        if (this.#seen.has(file.path) && series !== undefined) {
          onRefused({ series, reason: 'another symbol has files with the same names' });
          continue;
        }
        this.#seen.add(file.path);
        await this.#refuseInLake(dirname(file.path));
        yield file;
      }
      const folders = group.map((series) => join(this.#catalogue.root, seriesFolder(venue.name, series)));
      await releaseBacked(...folders);
    }
  }

  /** Throws a usage error if a folder of the target lies in the lake: the lake may be below the target. */
  async #refuseInLake(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return;
    this.#folders.add(folder);
    await refuseInLake(
      join(this.#given.target, folder),
      this.#catalogue.root,
      this.#given.request.source.name,
    );
  }

  async #export(file: ExportFile, session: DuckDbSession): Promise<ExportedFile> {
    const { target, request } = this.#given;
    const { force, dryRun } = request.resolved.options;
    const of = { file: file.path, rows: 0, bytes: 0 };
    const sources = this.#sourcesOf(file);
    const recipe = recipeOf(file, sources);
    try {
      const output = await Output.open(target, file.path);
      if (!force && (await output.isMadeBy(recipe))) {
        const { rows = 0, bytes = 0 } = output.state ?? {};
        return { ...of, outcome: rows === 0 ? 'empty' : 'unchanged', rows, bytes };
      }
      await output.refuseForeign(force);
      if (dryRun) return { ...of, outcome: 'planned' };
      return await this.#write(file, output, { session, recipe, sources });
    } catch (error) {
      const fault = faultOf(error, this.#catalogue.root);
      if (fault === undefined) throw error;
      return { ...of, ...fault };
    }
  }

  async #write(
    file: ExportFile,
    output: Output,
    { session, recipe, sources }: Made & { readonly session: DuckDbSession },
  ): Promise<ExportedFile> {
    const { engine, request } = this.#given;
    const staged = [await output.stagedPath(), await output.stagedPath()] as const;
    try {
      const { rows, path } = await this.#stage(file, session, staged);
      const { bytes, sha256 } = await fileFacts(path);
      const { mtimeMs } = await stat(path);
      this.#signal.throwIfAborted();
      await this.#lock?.confirm();
      // A file of another program may have appeared since the rows were read.
      await output.refuseForeign(request.resolved.options.force);
      await output.publish(path, {
        v: 1,
        engine: engine.name,
        recipe,
        sources,
        rows,
        bytes: rows === 0 ? 0 : bytes,
        sha256,
        modifiedAt: mtimeMs,
        at: new Date(request.clock.now()).toISOString(),
        tool: `cryptodl ${TOOL_VERSION}`,
      });
      return {
        file: file.path,
        outcome: rows === 0 ? 'empty' : 'written',
        rows,
        bytes: rows === 0 ? 0 : bytes,
      };
    } finally {
      for (const path of staged) await rm(path, { force: true });
    }
  }

  /** Rejects with `partition-incomplete` if files of the lake change meanwhile: a run could have replaced some of them. */
  async #stage(
    file: ExportFile,
    session: DuckDbSession,
    staged: readonly [string, string],
  ): Promise<{ rows: number; path: string }> {
    const paths = file.sources.flatMap(({ files }) => files.map(({ path }) => path));
    await bringIn(paths);
    const before = await statesOf(paths);
    const relations: string[] = [];
    for (const source of file.sources) {
      const some = await this.#catalogue.relation([source], source.range);
      const { sql = '' } = some ?? (await this.#catalogue.relation([source])) ?? {};
      relations.push(some === undefined ? `SELECT * FROM (${sql}) WHERE false` : sql);
    }
    const written = await writeRows(session, file.select(relations), file.form, staged);
    if ((await statesOf(paths)) === before) return written;
    const names = file.sources.map(({ series }) => seriesName(series));
    throw new CryptodlError(
      'partition-incomplete',
      `${listText(names, 1)}: files of the lake changed during the export`,
      { hint: 'run the export again when no run writes to the lake' },
    );
  }

  /** The files of the lake that the rows come from, relative to the lake. */
  #sourcesOf(file: ExportFile): Made['sources'] {
    const { root } = this.#catalogue;
    return file.sources.flatMap(({ files }) =>
      files.map(({ path, sha256 }) => ({ file: relative(root, path).split(sep).join('/'), sha256 })),
    );
  }
}

interface Made {
  readonly recipe: string;
  readonly sources: readonly { readonly file: string; readonly sha256: string }[];
}

/** The digest of everything that decides the content of a file. */
function recipeOf({ sources, select, form }: ExportFile, files: Made['sources']): string {
  const names = sources.map((_, at) => `$${at}`);
  const parts = sources.map(({ series, range }) => [series, range]);
  return createHash('sha256')
    .update(JSON.stringify([select(names), form, parts, files]))
    .digest('hex');
}

/** Size, time of change and inode of each file. */
async function statesOf(paths: readonly string[]): Promise<string> {
  const states = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)));
  return JSON.stringify(states.map((entry) => entry && [entry.size, entry.mtimeMs, entry.ino]));
}

/** The failure of one file. Undefined for an error that ends the export. */
function faultOf(error: unknown, root: string): Pick<ExportedFile, 'outcome' | 'text'> | undefined {
  if (error instanceof UnreadableFile) return { outcome: 'unreadable', text: error.message };
  if (error instanceof CryptodlError) {
    const text = [error.message, ...(error.hint === undefined ? [] : [error.hint])].join('; ');
    if (error.code === 'partition-incomplete') return { outcome: 'failed', text };
    return error.code === 'usage' || error.code === 'disk' ? { outcome: 'foreign', text } : undefined;
  }
  if (!isFileError(error)) return undefined;
  const [reason = ''] = error instanceof Error ? error.message.split('\n') : [];
  return {
    outcome: 'unreadable',
    text: `${reason}; cryptodl verify --deep${lakeFlag(root)} finds damaged files`,
  };
}
