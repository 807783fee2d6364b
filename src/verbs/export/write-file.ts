/** Writes one file of an export: a SELECT over the relations of the catalogue, as Parquet, CSV or a zip with one member. */
import { constants, createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import yazl from 'yazl';
import { UnreadableFile, unreadableFile } from '../../lake/catalogue/file-digests.js';
import type { DuckDb, VerbEngine } from '../../convert/duckdb.js';
import { quoteText } from '../../convert/sql.js';
import { bringIn } from '../../files/backing.js';
import { openRegularFile } from '../../files/path-checks.js';
import type { Lock } from '../../lake/lock.js';
import { CryptodlError } from '../../model/errors.js';
import { seriesName } from '../../model/task.js';
import { listText } from '../../model/units.js';
import { refuseInLake } from '../../plan/select/held-series.js';
import { MACROS, lakeFilesOf, type ExportFile } from './export-file.js';
import { Output, provenanceOf, type Provenance } from './output.js';
import type { ExportSelection } from './select-export.js';
import type { DayRange } from '../../lake/catalogue/spans.js';

/** What the files of one export have in common. */
export interface ExportContext extends ExportSelection {
  readonly target: string;
  readonly database: VerbEngine;
  readonly lock: Lock | undefined;
}

export async function exportFile(file: ExportFile, context: ExportContext): Promise<ExportedFile> {
  const { request, root, target } = context;
  const { force, dryRun } = request.resolved.options;
  const unwritten = { file: file.path, rows: 0, bytes: 0 };
  // The lake may be below the target.
  await refuseInLake(join(target, dirname(file.path)), request.exchange.name);
  try {
    request.signal.throwIfAborted();
    const output = await Output.open(target, file.path);
    const { state } = output;
    const widenedFile = widened(
      file,
      force || state === undefined || state.rows === 0 ? undefined : state.range,
    );
    const provenance = provenanceOf(widenedFile, context);
    if (!force && state !== undefined && (await output.isMadeBy(provenance.recipe))) {
      const { rows, bytes } = state;
      return { ...unwritten, rows, bytes, outcome: rows === 0 ? 'empty' : 'unchanged' };
    }
    if (dryRun) {
      await output.refuseForeign(force);
      return { ...unwritten, outcome: 'planned' };
    }
    const { rows, bytes } = await write(widenedFile, { output, provenance }, context);
    return { ...unwritten, rows, bytes, outcome: rows === 0 ? 'empty' : 'written' };
  } catch (error) {
    const fault = faultOf(error, root);
    if (fault === undefined) throw error;
    return { ...unwritten, ...fault };
  }
}

/** Rejects with `partition-incomplete` if files of the lake change meanwhile: a run could have replaced some of them. */
async function write(
  { sources, select, form }: ExportFile,
  { output, provenance }: { readonly output: Output; readonly provenance: Provenance },
  { request, catalogue, database, lock }: ExportContext,
): Promise<{ rows: number; bytes: number }> {
  const duckdb = await database.connect();
  try {
    // Comparing a time with and without a zone depends on it.
    await duckdb.run(`SET TimeZone = 'UTC'; ${MACROS}`);
    const paths = sources.flatMap(({ files }) => files.map(({ path }) => path));
    await bringIn(...paths);
    const before = await statesOf(paths);
    const relations: string[] = [];
    for (const [at, source] of sources.entries()) {
      const relation = await catalogue.relation([source], source.range);
      if (relation === undefined) throw new CryptodlError('bug', `${seriesName(source.series)}: no files`);
      relations.push(`r${at} AS NOT MATERIALIZED (${relation.sql})`);
    }
    return await output.staging(async (folder) => {
      const staged = await writeRows(duckdb, `WITH ${relations.join(', ')} ${select}`, form, folder);
      if ((await statesOf(paths)) !== before) {
        const names = sources.map(({ series }) => seriesName(series));
        throw new CryptodlError(
          'partition-incomplete',
          `${listText(names, 1)}: files of the lake changed during the export`,
          { hint: 'run the export again when no run writes to the lake' },
        );
      }
      request.signal.throwIfAborted();
      await lock?.confirm();
      await output.refuseForeign(request.resolved.options.force);
      return { rows: staged.rows, bytes: await output.publish(staged, provenance) };
    });
  } finally {
    duckdb.close();
  }
}

async function statesOf(paths: readonly string[]): Promise<string> {
  const states = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)));
  return JSON.stringify(states.map((entry) => entry && [entry.size, entry.mtimeMs, entry.ino]));
}

/** The failure of one file. Undefined for an error that ends the export. */
function faultOf(error: unknown, root: string): Pick<ExportedFile, 'outcome' | 'text'> | undefined {
  if (error instanceof CryptodlError && !(error instanceof UnreadableFile)) {
    const text = [error.message, error.hint].filter(Boolean).join('; ');
    if (error.code === 'partition-incomplete') return { outcome: 'failed', text };
    return error.code === 'usage' || error.code === 'disk' ? { outcome: 'foreign', text } : undefined;
  }
  const unreadable = unreadableFile(error, root);
  return unreadable && { outcome: 'unreadable', text: unreadable.message };
}

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

/** The file with the days that it has already (`before`), too. Its sources have only the files that may have rows of these days. */
function widened(file: ExportFile, before: Partial<DayRange> | undefined): ExportFile {
  const sources = file.sources.map((source) => {
    const range = before === undefined ? source.range : union(source.range, before);
    return { ...source, range, files: lakeFilesOf({ ...source, range }) };
  });
  return { ...file, sources };
}

function union(range: Partial<DayRange>, other: Partial<DayRange>): Partial<DayRange> {
  return {
    ...(range.from === undefined || other.from === undefined
      ? {}
      : { from: Math.min(range.from, other.from) }),
    ...(range.to === undefined || other.to === undefined ? {} : { to: Math.max(range.to, other.to) }),
  };
}

/** Writes the rows of a SELECT to a file in `folder`. Resolves with its path, and the number of rows. */
async function writeRows(
  duckdb: DuckDb,
  select: string,
  { copy, utc, member }: ExportFile['form'],
  folder: string,
): Promise<{ rows: number; path: string }> {
  const file = join(folder, 'rows');
  const [copied] = await duckdb.rows(`COPY (${select}) TO ${quoteText(file)} (${copy})`);
  const rows = Number(copied?.['Count']);
  if (utc !== undefined) await markAsUtc(file, utc);
  if (member === undefined) return { rows, path: file };
  const zip = join(folder, 'zip');
  await writeZip(file, member, zip);
  return { rows, path: zip };
}

/** The time of the member is that of the format's first day, so that equal rows give equal zips. */
async function writeZip(csv: string, member: string, path: string): Promise<void> {
  const zip = new yazl.ZipFile();
  zip.addReadStream(createReadStream(csv), member, {
    mtime: new Date(1980, 0, 1),
    // Without it, yazl also writes the time in UTC, which depends on the local time zone.
    forceDosTimestamp: true,
    mode: 0o100644,
  });
  zip.end();
  await pipeline(zip.outputStream, createWriteStream(path, { flags: 'wx' }));
}

/** A file ends with the length of its footer in 4 bytes, and `PAR1`. */
const TAIL_BYTES = 8;

/** The logical type of a column in the footer (thrift compact protocol): TIMESTAMP, not adjusted to UTC (its third byte), in nanoseconds. */
const NANOSECONDS = [0x6c, 0x8c, 0x12, 0x1c, 0x3c, 0x00, 0x00, 0x00];
const IS_ADJUSTED = { at: 2, yes: 0x11 };

/**
 * Changes one byte of the footer: the column's times become UTC. DuckDB has no type for nanoseconds with a time zone, and readers need both.
 * Rejects with `bug` for a file without exactly one such column.
 */
async function markAsUtc(path: string, column: string): Promise<void> {
  const file = await openRegularFile(path, constants.O_RDWR);
  try {
    const { size } = await file.stat();
    const tail = Buffer.alloc(TAIL_BYTES);
    await file.read(tail, 0, TAIL_BYTES, size - TAIL_BYTES);
    const length = tail.readUInt32LE(0);
    const start = size - TAIL_BYTES - length;
    const footer = Buffer.alloc(length);
    await file.read(footer, 0, length, start);
    const name = Buffer.from(column);
    const wanted = Buffer.concat([Buffer.of(name.length), name, Buffer.from(NANOSECONDS)]);
    const found = footer.indexOf(wanted);
    if (found < 0 || footer.includes(wanted, found + 1))
      throw new CryptodlError(
        'bug',
        `the footer of ${path} does not have one column ${column} in nanoseconds`,
      );
    const at = start + found + 1 + name.length + IS_ADJUSTED.at;
    await file.write(Buffer.of(IS_ADJUSTED.yes), 0, 1, at);
  } finally {
    await file.close();
  }
}
