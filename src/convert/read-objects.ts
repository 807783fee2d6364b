/** Reads received objects into the relation `rows`, checks every cell, and finds the first invalid line of each invalid object. */
import { rm } from 'node:fs/promises';
import { withFile, writeAllChunks } from '../files/disk.js';
import { bodySize } from '../model/fetch.js';
import { periodText } from '../model/calendar.js';
import type { ResultRow } from './duckdb.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import { findFirstError } from './check-rows.js';
import type { Conversion, ObjectFacts } from './conversion.js';
import { inspectCsv, knownCells, receivedColumns, rowLines } from './csv-input.js';
import type { Inspected, ReceivedObject, RowSink } from './csv-input.js';
import { isContentError } from './load-duckdb.js';
import { isoInstant } from './row-times.js';
import { expectedRows, hasShorterBars, isWithinPeriod } from './expected-rows.js';
import { statsQuery } from './object-stats-sql.js';
import { type CsvFile, createRows, stageRows, viewStaged } from './statements.js';

/** An object with what the first reading of its CSV has found. */
export interface Input {
  readonly received: ReceivedObject;
  readonly inspected: Inspected;
}

/** `row`: that of the object in the result of `statsQuery`. */
export interface LoadedInput extends Input {
  readonly row: ResultRow;
}

/** Readable objects, and the files that contain their rows in the same order. */
export interface Gathered {
  readonly inputs: readonly Input[];
  readonly csvs: readonly CsvFile[];
}

export interface ReadObjects {
  /** The valid objects. */
  readonly inputs: readonly LoadedInput[];
  /** Path of the file with the rows; undefined when they are in memory. */
  readonly staged: string | undefined;
}

/**
 * Reads the objects until all remaining ones are valid. Undefined when none is. Rejects with errors that do not concern the content.
 * `ordinalsOf`: each row gets the ordinal of its object.
 */
export async function readObjects(
  conversion: Conversion,
  ordinalsOf: (inputs: readonly Input[]) => readonly number[],
): Promise<ReadObjects | undefined> {
  for (;;) {
    const remaining = conversion.received.filter(({ object }) => !conversion.failed.has(object.key));
    const gather = isLarge(conversion, remaining) ? gatherLarge : gatherSmall;
    const gathered = await gather(conversion, remaining);
    const { inputs } = gathered;
    const suspicious = inputs.filter(({ inspected }) => inspected.needsCheck);
    const hasWrong = await findWrongLines(conversion, suspicious);
    if (inputs.length === 0) return undefined;
    if (hasWrong || inputs.length < remaining.length) continue;
    const read = await readRows(conversion, gathered, ordinalsOf(inputs));
    if (read !== undefined) return read;
  }
}

/** Undefined when some objects are invalid and were added to `failed`. */
async function readRows(
  conversion: Conversion,
  gathered: Gathered,
  ordinals: readonly number[],
): Promise<ReadObjects | undefined> {
  const { inputs } = gathered;
  try {
    const staged = await loadRows(conversion, gathered, ordinals);
    const stats = await conversion.duckdb.rows(statsQuery(conversion));
    assertStats(stats, inputs);
    const loaded = inputs.map((input, index) => ({ ...input, row: stats[index] ?? {} }));
    return rejectOutsidePeriod(conversion, loaded) ? undefined : { inputs: loaded, staged };
  } catch (error) {
    // Only `assertStats` throws `row-malformed`.
    const isMalformed = error instanceof CryptodlError && error.code === 'row-malformed';
    if (!isMalformed && !isContentError(error)) throw error;
    if (await findWrongLines(conversion, inputs)) return undefined;
    // Every single line is valid, but the files cannot be read: all objects fail.
    const [text = ''] = toCryptodlError(error).message.split('\n');
    for (const { received } of inputs) {
      const refusal = `${received.name} cannot be read: ${text}`;
      const unreadable = new CryptodlError('row-malformed', refusal, { cause: error });
      conversion.failed.set(received.object.key, unreadable);
    }
    return undefined;
  }
}

/** Fails objects with rows outside their period, or with bars of a shorter interval. Returns whether there were any. */
function rejectOutsidePeriod({ spec, series, failed }: Conversion, inputs: readonly LoadedInput[]): boolean {
  let found = false;
  for (const { received, row } of inputs) {
    const [first, last] = [isoInstant(row, 'first'), isoInstant(row, 'last')];
    const { period, key } = received.object;
    const [rows, unordered] = [Number(row['rows']), Number(row['unordered'])];
    // `unordered` counts duplicates, and the first row of an object if the rows before it belong to a later object.
    if (unordered <= 1 && hasShorterBars(spec, series, received.object, rows - unordered)) {
      const expected = expectedRows(spec, series, received.object) ?? 0;
      const text = `${received.name}: ${rows} rows, expected ${expected} for interval ${series.interval ?? ''}`;
      failed.set(key, new CryptodlError('row-malformed', text));
      found = true;
      continue;
    }
    if (isWithinPeriod(spec, series.interval, period, { first, last })) continue;
    const text = `${received.name}: its rows are from ${first} … ${last}, its period is ${periodText(period)}`;
    failed.set(key, new CryptodlError('rows-outside-period', text));
    found = true;
  }
  return found;
}

/** Adds the first invalid line of each object to `failed`. Resolves to true if an object has one. */
async function findWrongLines(conversion: Conversion, inputs: readonly Input[]): Promise<boolean> {
  let found = false;
  for (const { received, inspected } of inputs) {
    const { headerLines, newColumns } = inspected;
    const file = { name: received.name, symbol: conversion.series.symbol, headerLines };
    const columns = receivedColumns(received, conversion.spec);
    const cut = (line: string): string => knownCells(line, columns.length, newColumns.length);
    const wrong = await findFirstError(columns, file, rowLines(received, headerLines, cut));
    if (wrong === undefined) continue;
    conversion.failed.set(received.object.key, wrong);
    found = true;
  }
  return found;
}

/** Throws for invalid cells, and when the row counts of the reader and of the inspection differ. */
function assertStats(stats: readonly ResultRow[], inputs: readonly Input[]): void {
  const isRight =
    stats.length === inputs.length &&
    inputs.every(
      ({ inspected }, index) =>
        Number(stats[index]?.['rows']) === inspected.rows && Number(stats[index]?.['wrong']) === 0,
    );
  if (!isRight) throw new CryptodlError('row-malformed', 'a cell does not match the type of its column');
}

/** Removes the temporary files of a conversion. */
export async function removeScratch(conversion: Conversion): Promise<void> {
  const parts = conversion.received.map((_, index) => `${conversion.csvPath}-${index}`);
  const ofLarge = isLarge(conversion, conversion.received) ? [...parts, stagedPath(conversion)] : [];
  await Promise.all([conversion.csvPath, ...ofLarge].map((path) => rm(path, { force: true })));
}

/** The field of a manifest line for columns whose cells were left out. */
export const newColumnsOf = ({ newColumns }: Inspected): Pick<ObjectFacts, 'newColumns'> =>
  newColumns.length === 0 ? {} : { newColumns };

/** Whether the CSVs together are too large to be loaded into memory. */
export const isLarge = (
  { memoryCsvBytes }: Pick<Conversion, 'memoryCsvBytes'>,
  objects: readonly ReceivedObject[],
): boolean => objects.reduce((sum, { csv }) => sum + bodySize(csv), 0) > memoryCsvBytes;

/** Joins small CSVs to one file, because opening a file takes the reader longer than reading its few rows. */
export async function gatherSmall(
  conversion: Conversion,
  objects: readonly ReceivedObject[],
): Promise<Gathered> {
  const inputs: Input[] = [];
  const chunks: Buffer[] = [];
  for (const received of objects) {
    const inspected = await inspectOrFail(conversion, received, (rows) => {
      chunks.push(received.csv.kind === 'file' ? Buffer.from(rows) : rows);
      return Promise.resolve();
    });
    if (inspected !== undefined) inputs.push({ received, inspected });
  }
  // One write for dozens of CSVs, because each write is a round trip to the thread pool.
  await withFile(conversion.csvPath, 'w', (file) => writeAllChunks(file, chunks, 0));
  return { inputs, csvs: [{ path: conversion.csvPath, headerLines: 0 }] };
}

/** Plain CSVs in files are read directly; all others are written to new files first. */
async function gatherLarge(conversion: Conversion, objects: readonly ReceivedObject[]): Promise<Gathered> {
  const inputs: Input[] = [];
  const csvs: CsvFile[] = [];
  for (const [index, received] of objects.entries()) {
    const inspected = await inspectOrFail(conversion, received);
    if (inspected === undefined) continue;
    inputs.push({ received, inspected });
    if (received.csv.kind === 'file' && inspected.isPlain) {
      csvs.push({ path: received.csv.path, headerLines: inspected.headerLines });
      continue;
    }
    const path = `${conversion.csvPath}-${index}`;
    const { spec, series } = conversion;
    await withFile(path, 'w', (file) =>
      inspectCsv(received, spec, series.symbol, (rows) => file.appendFile(rows)),
    );
    csvs.push({ path, headerLines: 0 });
  }
  return { inputs, csvs };
}

/** Undefined for an invalid file, whose error is added to `failed`. */
async function inspectOrFail(
  { spec, series, failed }: Conversion,
  received: ReceivedObject,
  sink?: RowSink,
): Promise<Inspected | undefined> {
  try {
    return await inspectCsv(received, spec, series.symbol, sink);
  } catch (error) {
    const known = toCryptodlError(error);
    if (known.fatal) throw error;
    failed.set(received.object.key, known);
    return undefined;
  }
}

/** Creates the relation `rows`. Resolves with the path of its Parquet file, or undefined when it is in memory. */
async function loadRows(
  conversion: Conversion,
  { inputs, csvs }: Gathered,
  ordinals: readonly number[],
): Promise<string | undefined> {
  const origin = { rowCounts: inputs.map(({ inspected }) => inspected.rows), ordinals };
  const [csv] = csvs;
  const received = inputs.map((input) => input.received);
  if (!isLarge(conversion, received) && csv !== undefined) {
    await conversion.duckdb.run(createRows(conversion, csv, origin));
    return undefined;
  }
  const path = stagedPath(conversion);
  const metadata = conversion.metadata(received);
  await conversion.duckdb.run(stageRows(conversion, csvs, { path, metadata }));
  await conversion.duckdb.run(viewStaged(conversion, path, origin));
  return path;
}

/** The path of the Parquet file of `rows`, in the folder of the target, so that the file can become the target by a rename. */
const stagedPath = ({ targetPath }: Conversion): string => `${targetPath}.rows`;
