/** Loads the rows of the objects of a partition as one relation: in memory, or for large objects in a Parquet file. */
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { CryptodlError } from '../model/errors.js';
import { toCryptodlError } from '../model/errors.js';
import { bodySize } from '../http/fetch.js';
import type { Conversion, ObjectFacts } from './conversion.js';
import { inspectCsv } from './csv-input.js';
import type { Inspected, ReceivedObject, RowSink } from './csv-input.js';
import type { DuckDbSession } from './duckdb.js';
import { writeAllChunks } from '../files/disk.js';
import { createRows, stageRows, viewStaged } from './statements.js';
import type { CsvFile } from './published-csv.js';

export interface Input {
  readonly received: ReceivedObject;
  readonly inspected: Inspected;
}

/** Readable objects, and the files that contain their rows in the same order. */
export interface Gathered {
  readonly inputs: readonly Input[];
  readonly csvs: readonly CsvFile[];
}

/** The field of a manifest line for columns whose cells were left out. */
export function newColumnsOf({ newColumns }: Inspected): Pick<ObjectFacts, 'newColumns'> {
  return newColumns.length === 0 ? {} : { newColumns };
}

/** Whether the CSVs together are too large to be loaded into memory. */
export function isLarge(
  { memoryCsvBytes }: Pick<Conversion, 'memoryCsvBytes'>,
  objects: readonly ReceivedObject[],
): boolean {
  return objects.reduce((sum, { csv }) => sum + bodySize(csv), 0) > memoryCsvBytes;
}

/** Joins small CSVs to one file, because opening a file takes the reader longer than reading its few rows. */
export async function gatherSmall(
  conversion: Conversion,
  objects: readonly ReceivedObject[],
  failed: Map<string, CryptodlError>,
): Promise<Gathered> {
  const inputs: Input[] = [];
  const file = await open(conversion.csvPath, 'w');
  const sink = new GatheringSink(file);
  try {
    for (const received of objects) {
      const inspected = await inspectOrFail(conversion, received, failed, sink);
      if (inspected !== undefined) inputs.push({ received, inspected });
    }
    await sink.flush();
  } finally {
    await file.close();
  }
  return { inputs, csvs: [{ path: conversion.csvPath, headerLines: 0 }] };
}

const WRITE_BYTES = 4 * 1024 * 1024;

/** Buffers dozens of small CSVs for one write, because each write is a round trip to the thread pool. */
class GatheringSink implements RowSink {
  readonly #file: FileHandle;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #written = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async appendFile(chunk: Buffer | string): Promise<void> {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
    if (this.#bytes >= WRITE_BYTES) await this.flush();
  }

  async flush(): Promise<void> {
    const chunks = this.#chunks;
    const from = this.#written;
    this.#chunks = [];
    this.#written += this.#bytes;
    this.#bytes = 0;
    await writeAllChunks(this.#file, chunks, from);
  }
}

/** Plain CSVs in files are read directly; all others are written to new files first. */
export async function gatherLarge(
  conversion: Conversion,
  objects: readonly ReceivedObject[],
  failed: Map<string, CryptodlError>,
): Promise<Gathered> {
  const inputs: Input[] = [];
  const csvs: CsvFile[] = [];
  for (const [index, received] of objects.entries()) {
    const inspected = await inspectOrFail(conversion, received, failed);
    if (inspected === undefined) continue;
    inputs.push({ received, inspected });
    if (received.csv.kind === 'file' && inspected.isPlain) {
      csvs.push({ path: received.csv.path, headerLines: inspected.headerLines });
      continue;
    }
    const path = `${conversion.csvPath}-${index}`;
    const file = await open(path, 'w');
    try {
      await inspectCsv(received, conversion.spec, conversion.series.symbol, file);
    } finally {
      await file.close();
    }
    csvs.push({ path, headerLines: 0 });
  }
  return { inputs, csvs };
}

/** Undefined for an invalid file, whose error is added to `failed`. */
async function inspectOrFail(
  { spec, series }: Conversion,
  received: ReceivedObject,
  failed: Map<string, CryptodlError>,
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
  session: DuckDbSession,
  conversion: Conversion,
  { inputs, csvs }: Gathered,
  how: { ordinals: readonly number[]; isLarge: boolean },
): Promise<string | undefined> {
  const origin = { rowCounts: inputs.map(({ inspected }) => inspected.rows), ordinals: how.ordinals };
  const [csv] = csvs;
  if (!how.isLarge && csv !== undefined) {
    await session.run(createRows(conversion, csv, origin));
    return undefined;
  }
  const path = stagedPath(conversion);
  const metadata = conversion.metadata(inputs.map(({ received }) => received));
  await session.run(stageRows(conversion, csvs, { path, metadata }));
  await session.run(viewStaged(conversion, path, origin));
  return path;
}

/** The path of the Parquet file of `rows`, in the folder of the target, so that the file can become the target by a rename. */
export function stagedPath({ targetPath }: Conversion): string {
  return `${targetPath}.rows`;
}
