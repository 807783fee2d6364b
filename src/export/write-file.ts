/** Writes one file of an export: rows from the lake to a staged file, then its line in the record, then its name. */
import { createHash, randomUUID } from 'node:crypto';
import { constants, createReadStream, createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import yazl from 'yazl';
import { instantExpression } from '../convert/columns.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { quoteText, timestampLiteral } from '../convert/sql.js';
import { bringIn } from '../lake/backing.js';
import { openRegularFile } from '../lake/path-checks.js';
import { CryptodlError } from '../model/errors.js';
import { startOfDay } from '../model/calendar.js';
import { seriesName } from '../model/task.js';
import type { FileDigests } from '../catalogue/file-digests.js';
import { rowsQuery } from '../catalogue/views.js';
import type { ExportFile, FileForm, RowSource } from './export-file.js';

export interface StagedFile {
  readonly path: string;
  readonly rows: number;
  /** Rows that were left out, because the row before had the same time. */
  readonly repeated: number;
}

/**
 * Writes the rows into a new file in `staging`. Rejects with `partition-incomplete` if a file of the lake has changed since the manifests were
 * read, with `UnreadableFile`, and with errors of disk, memory or interruption.
 */
export async function stageFile(
  session: DuckDbSession,
  file: ExportFile,
  { staging, digests }: { readonly staging: string; readonly digests: FileDigests },
): Promise<StagedFile> {
  const paths = file.sources.flatMap(({ files }) => files.map(({ path }) => path));
  await bringIn(paths);
  const before = await statesOf(paths);
  for (const { files } of file.sources) await digests.refuseDamaged(files);
  const relations: string[] = [];
  for (const source of file.sources) relations.push(await relationOf(source));
  const staged = join(staging, `${randomUUID()}.partial`);
  const written = await copyRows(session, file, { select: file.select(relations), path: staged });
  // A run that replaced a file of the lake in the meantime could have mixed old and new rows.
  if ((await statesOf(paths)) !== before) throw changed(file.sources[0]);
  if (file.form.kind === 'parquet' && file.form.utc !== undefined) await markAsUtc(staged, file.form.utc);
  if (file.form.kind !== 'zip' || written.rows === 0) return { path: staged, ...written };
  const zip = `${staged}.zip`;
  await writeZip(staged, file.form.member, zip);
  await rm(staged, { force: true });
  return { path: zip, ...written };
}

async function copyRows(
  session: DuckDbSession,
  { form, order, isUnique }: ExportFile,
  { select, path }: { readonly select: string; readonly path: string },
): Promise<Omit<StagedFile, 'path'>> {
  let ordered = select;
  let repeated = 0;
  if (order.length > 0 && !(await isOrdered(session, select, { order, isUnique }))) {
    const keys = order.join(', ');
    ordered = `SELECT ${isUnique ? `DISTINCT ON (${keys}) ` : ''}* FROM (${select}) ORDER BY ${keys}`;
    if (isUnique) {
      const [counts] = await session.rows(
        `SELECT count(*) - count(DISTINCT ${keyOf(order)}) AS n FROM (${select})`,
      );
      repeated = Number(counts?.['n']);
    }
  }
  const [copied] = await session.rows(`COPY (${ordered}) TO ${quoteText(path)} (${formatOf(form)})`);
  return { rows: Number(copied?.['Count']), repeated };
}

/** Reads only the columns of the order. Files of the lake are nearly always ordered, and sorting takes longer than this. */
async function isOrdered(
  session: DuckDbSession,
  select: string,
  { order, isUnique }: Pick<ExportFile, 'order' | 'isUnique'>,
): Promise<boolean> {
  const [found] = await session.rows(
    `SELECT count_if(key ${isUnique ? '<=' : '<'} previous) AS n FROM (SELECT key, lag(key) OVER () AS previous FROM (SELECT ${keyOf(order)} AS key FROM (${select})))`,
  );
  return Number(found?.['n']) === 0;
}

function keyOf(order: readonly string[]): string {
  return order.length === 1 ? (order[0] ?? '') : `row(${order.join(', ')})`;
}

function formatOf(form: FileForm): string {
  if (form.kind === 'parquet') return 'FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1';
  const { hasHeader, delimiter, isCompressed } =
    form.kind === 'csv' ? form : { hasHeader: false, delimiter: ',', isCompressed: false };
  return `FORMAT csv, HEADER ${hasHeader}, DELIMITER ${quoteText(delimiter)}, COMPRESSION ${isCompressed ? 'gzip' : 'none'}`;
}

/** The SELECT of the rows of a source. */
async function relationOf({ series, spec, files, within }: RowSource): Promise<string> {
  const { market, dataset, interval } = series;
  const all = await rowsQuery({ market, dataset, hasInterval: interval !== undefined, files }, spec);
  if (within === undefined) return all;
  const instant = instantExpression(spec);
  const [from = '', to = ''] = [within.from, within.to].map((day) => timestampLiteral(startOfDay(day, spec)));
  return `SELECT * FROM (${all}) WHERE ${instant} >= ${from} AND ${instant} < ${to}`;
}

/** Size, time of change and inode of each file. */
async function statesOf(paths: readonly string[]): Promise<string> {
  const states = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)));
  return JSON.stringify(states.map((entry) => entry && [entry.size, entry.mtimeMs, entry.ino]));
}

/** The error of an export during which files of the lake have changed. */
function changed(source: RowSource | undefined): CryptodlError {
  const name = source === undefined ? 'the lake' : seriesName(source.series);
  return new CryptodlError('partition-incomplete', `${name}: files of the lake changed during the export`, {
    hint: 'run the export again when no run writes to the lake',
  });
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

/** The digest of everything that decides the content of a file. `root`: the lake. */
export function madeFrom(
  file: ExportFile,
  sources: readonly { readonly file: string; readonly sha256: string }[],
): string {
  const names = file.sources.map((_, at) => `$${at}`);
  const parts = file.sources.map(({ series, within }) => [series, within]);
  const rule = [file.select(names), file.order, file.isUnique, file.form, parts, sources];
  return createHash('sha256').update(JSON.stringify(rule)).digest('hex');
}

/** A file ends with the length of its footer in 4 bytes, and `PAR1`. */
const TAIL_BYTES = 8;

/**
 * The logical type of a column in the footer (thrift compact protocol): a TIMESTAMP with `isAdjustedToUTC` false, in nanoseconds. The third
 * byte is the boolean.
 */
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
