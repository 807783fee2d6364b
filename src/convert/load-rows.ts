/** Loads the rows of the objects of a partition as one relation: in memory, or for large objects in a Parquet file. */
import { rm } from 'node:fs/promises';
import { withFile, writeAllChunks } from '../files/disk.js';
import { toCryptodlError } from '../model/errors.js';
import { bodySize } from '../model/fetch.js';
import type { Conversion, ObjectFacts } from './conversion.js';
import { inspectCsv, type ReceivedObject, type Inspected, type RowSink } from './csv-input.js';
import type { Row } from './duckdb.js';
import { type CsvFile, createRows, stageRows, viewStaged } from './statements.js';

export async function removeScratch(conversion: Conversion): Promise<void> {
  const parts = conversion.received.map((_, index) => `${conversion.csvPath}-${index}`);
  const ofLarge = isLarge(conversion, conversion.received) ? [...parts, stagedPath(conversion)] : [];
  await Promise.all([conversion.csvPath, ...ofLarge].map((path) => rm(path, { force: true })));
}

export interface Input {
  readonly received: ReceivedObject;
  readonly inspected: Inspected;
}

/** `row`: that of the object in the result of `statsQuery`. */
export interface LoadedInput extends Input {
  readonly row: Row;
}

/** Readable objects, and the files that contain their rows in the same order. */
export interface Gathered {
  readonly inputs: readonly Input[];
  readonly csvs: readonly CsvFile[];
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
export async function gatherLarge(
  conversion: Conversion,
  objects: readonly ReceivedObject[],
): Promise<Gathered> {
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
export async function loadRows(
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
