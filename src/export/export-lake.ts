/** Writes the files of an engine: a SELECT over the relations of the catalogue for each of them, several at once. */
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { filesOfRange, openCatalogue } from '../catalogue/catalogue.js';
import type { Catalogue } from '../catalogue/catalogue.js';
import type { DayRange } from '../catalogue/spans.js';
import { UnreadableFile } from '../catalogue/file-digests.js';
import type { LakeFile } from '../catalogue/lake-tables.js';
import { isFileError } from '../convert/duckdb-errors.js';
import { verbEngine } from '../convert/duckdb.js';
import type { Engine as Database } from '../convert/duckdb.js';
import { bringIn, releaseBacked } from '../lake/backing.js';
import { seriesFolder } from '../lake/layout.js';
import type { Lock } from '../lake/lock.js';
import { startOfDay } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { cores, memoryLimitBytes, withinOpenFiles } from '../model/machine.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import { listText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
import type { VerbRequest } from '../options/verb-request.js';
import { mapOrdered } from '../queue/in-order.js';
import { refuseInLake } from '../select/refuse-in-lake.js';
import type { DatasetSpec } from '../source/venue.js';
import { lakeFlag } from '../text/printable.js';
import { oneForEachPath } from './export-file.js';
import type { Engine, EngineSettings, ExportFile, Refused, RowSource } from './export-file.js';
import { groupsOf } from './select-export.js';
import type { ExportSelection } from './select-export.js';
import { lockTarget, Output } from './target.js';
import type { Origin } from './target.js';
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

export interface ExportRequest extends Pick<ExportSelection, 'root' | 'selected' | 'range'> {
  readonly request: VerbRequest;
  readonly engine: Engine;
  readonly settings: EngineSettings;
}

/**
 * Yields the files of the selected series, group by group, and the series that are left out. A series with a file that cannot be read would
 * have a hole that nothing shows, so it is left out. `atEnd` is called after each group.
 */
export async function* exportFiles(
  { request, engine, settings, selected, range }: ExportRequest,
  catalogue: Catalogue,
  atEnd: (group: readonly Series[]) => Promise<void> = () => Promise.resolve(),
): AsyncGenerator<ExportFile | Refused, void> {
  const taken = new Set<string>();
  for (const group of groupsOf(selected, engine.groupBy)) {
    const sources: RowSource[] = [];
    for await (const { series, spec, files, fault } of catalogue.series(group)) {
      const none = files.length === 0 ? 'the lake has no Parquet or CSV files of it' : undefined;
      const unknown = spec === undefined ? 'this version of cryptodl does not know the dataset' : undefined;
      const reason = unknown ?? fault ?? none;
      if (spec === undefined || reason !== undefined) yield { series, reason: reason ?? '', isFault: true };
      else if (files.some((file) => isWithin(file, range, spec)))
        sources.push({ series, spec, files, range });
    }
    yield* oneForEachPath(engine.files({ venue: request.source, sources, settings }), taken);
    await atEnd(group);
  }
}

/** Whether an object of the file or a row of it lies on the days: the last row of a day of metrics lies on the next one. */
function isWithin(
  { days, first = '', last = '' }: LakeFile,
  { from = -Infinity, to = Infinity }: Partial<DayRange>,
  spec: DatasetSpec,
): boolean {
  const [start, end] = [Date.parse(first), Date.parse(last)];
  return (
    (days.from < to && days.to > from) || (start < startOfDay(to, spec) && end >= startOfDay(from, spec))
  );
}

/** The files of the lake that may have rows of a source. */
function partOf(source: RowSource): LakeFile[] {
  return filesOfRange(source, source.spec, source.range);
}

/** What the files of one export have in common. */
interface Work {
  readonly given: ExportRequest;
  readonly target: string;
  readonly catalogue: Catalogue;
  readonly database: Database;
  readonly lock: Lock | undefined;
  readonly signal: AbortSignal;
}

/** Sessions of DuckDB are as many as cores. So many files wait for them or for the disk, so that a long one does not stop the others. */
const FILES_PER_CORE = 4;

/**
 * Yields each file after it is written, and the series that are left out. `target`: its absolute path. Rejects with `locked` while another export
 * writes to the target, and with errors of disk, memory or interruption.
 */
export async function* exportLake(
  given: ExportRequest,
  target: string,
): AsyncGenerator<ExportedFile | Refused, void> {
  const { request, root } = given;
  const { source, clock } = request;
  const stop = new AbortController();
  const onLost = (error: CryptodlError): void => {
    stop.abort(error);
  };
  const lock = request.resolved.options.dryRun ? undefined : await lockTarget(target, { clock, onLost });
  const signal = AbortSignal.any([request.signal, stop.signal]);
  const database = verbEngine('export', { ...request, signal }, memoryLimitBytes() / 4);
  const catalogue = openCatalogue(root, source, signal);
  const work: Work = { given, target, catalogue, database, lock, signal };
  const running = new Set<Promise<unknown>>();
  const folders = new Set<string>();
  const release = async (group: readonly Series[]): Promise<void> => {
    await Promise.allSettled(running);
    await releaseBacked(...group.map((series) => join(root, seriesFolder(source.name, series))));
  };
  try {
    const files = exportFiles(given, catalogue, release);
    yield* mapOrdered(files, withinOpenFiles(cores()) * FILES_PER_CORE, async (file) => {
      if ('reason' in file) return file;
      const folder = join(target, dirname(file.path));
      // The lake may be below the target.
      if (!folders.has(folder)) await refuseInLake(folder, root, source.name);
      folders.add(folder);
      const exported = exportFile(file, work);
      running.add(exported);
      return exported.finally(() => running.delete(exported));
    });
  } catch (error) {
    // An interrupted statement does not tell why: a lost lock, or Ctrl-C.
    signal.throwIfAborted();
    throw error;
  } finally {
    database.interrupt();
    await Promise.allSettled(running);
    await database.end();
    await lock?.release();
  }
}

async function exportFile(asked: ExportFile, work: Work): Promise<ExportedFile> {
  const { given, target, signal } = work;
  const { force, dryRun } = given.request.resolved.options;
  const of = { file: asked.path, rows: 0, bytes: 0 };
  try {
    signal.throwIfAborted();
    const output = await Output.open(target, asked.path);
    const { state } = output;
    const file = force || state === undefined || state.rows === 0 ? asked : widened(asked, state.range);
    const origin = originOf(file, given);
    if (!force && (await output.isMadeBy(origin.recipe))) {
      const { rows = 0, bytes = 0 } = state ?? {};
      return { ...of, outcome: rows === 0 ? 'empty' : 'unchanged', rows, bytes };
    }
    if (dryRun) {
      await output.refuseForeign(force);
      return { ...of, outcome: 'planned' };
    }
    const { rows, bytes } = await write(file, { output, origin }, work);
    return { ...of, outcome: rows === 0 ? 'empty' : 'written', rows, bytes };
  } catch (error) {
    const fault = faultOf(error, given.root);
    if (fault === undefined) throw error;
    return { ...of, ...fault };
  }
}

/** The file with the days that it has already, too. */
function widened(file: ExportFile, { from, to }: Partial<DayRange>): ExportFile {
  const sources = file.sources.map((source) => {
    const { range } = source;
    const first = from === undefined || range.from === undefined ? {} : { from: Math.min(from, range.from) };
    const end = to === undefined || range.to === undefined ? {} : { to: Math.max(to, range.to) };
    return { ...source, range: { ...first, ...end } };
  });
  return { ...file, sources };
}

/** Everything that decides the content of a file. */
function originOf({ sources, select, form }: ExportFile, { request, engine, root }: ExportRequest): Origin {
  const files = sources.flatMap((source) =>
    partOf(source).map(({ path, sha256 }) => ({ file: relative(root, path).split(sep).join('/'), sha256 })),
  );
  const names = sources.map((_, at) => `$${at}`);
  const parts = sources.map(({ series, range: { from, to } }) => [series, from, to]);
  return {
    engine: engine.name,
    recipe: createHash('sha256')
      .update(JSON.stringify([select(names), form, parts, files]))
      .digest('hex'),
    range: sources[0]?.range ?? {},
    sources: files,
    at: new Date(request.clock.now()).toISOString(),
    tool: `cryptodl ${TOOL_VERSION}`,
  };
}

/** Rejects with `partition-incomplete` if files of the lake change meanwhile: a run could have replaced some of them. */
async function write(
  { sources, select, form }: ExportFile,
  { output, origin }: { readonly output: Output; readonly origin: Origin },
  { given, catalogue, database, lock, signal }: Work,
): Promise<{ rows: number; bytes: number }> {
  const session = await database.session();
  try {
    // Comparing a time with and without a zone depends on it.
    await session.run("SET TimeZone = 'UTC'");
    const paths = sources.flatMap((source) => partOf(source).map(({ path }) => path));
    await bringIn(paths);
    const before = await statesOf(paths);
    const relations: string[] = [];
    for (const source of sources) {
      const relation = await catalogue.relation([source], source.range);
      if (relation === undefined) throw new CryptodlError('bug', `${seriesName(source.series)}: no files`);
      relations.push(relation.sql);
    }
    return await output.staging(async (folder) => {
      const { rows, path } = await writeRows(session, select(relations), form, folder);
      const name = listText(
        sources.map(({ series }) => seriesName(series)),
        1,
      );
      if ((await statesOf(paths)) !== before)
        throw new CryptodlError(
          'partition-incomplete',
          `${name}: files of the lake changed during the export`,
          {
            hint: 'run the export again when no run writes to the lake',
          },
        );
      signal.throwIfAborted();
      await lock?.confirm();
      await output.refuseForeign(given.request.resolved.options.force);
      return { rows, bytes: await output.publish(path, rows, origin) };
    });
  } finally {
    session.close();
  }
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
