/** The rows of a partition's objects as one relation: small ones in memory, large ones in a Parquet file at once. */
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { CryptodlError } from '../model/errors.js';
import { toCryptodlError } from '../model/errors.js';
import { bodySize } from '../http/fetch.js';
import type { Conversion } from './conversion.js';
import { inspectCsv } from './csv-input.js';
import type { Inspected, ReceivedObject, RowSink } from './csv-input.js';
import type { DuckDbSession } from './duckdb.js';
import { writeAllChunks } from '../files/whole-write.js';
import { createRows, stageRows, viewStaged } from './statements.js';
import type { CsvFile } from './statements.js';

export interface Input {
  readonly received: ReceivedObject;
  readonly inspected: Inspected;
}

/** Objects that can be read, and the files in which their rows come one after the other. */
export interface Gathered {
  readonly inputs: readonly Input[];
  readonly csvs: readonly CsvFile[];
}

export function isLarge(
  { memoryCsvBytes }: Pick<Conversion, 'memoryCsvBytes'>,
  objects: readonly ReceivedObject[],
): boolean {
  return objects.reduce((sum, { csv }) => sum + bodySize(csv), 0) > memoryCsvBytes;
}

/** Many small CSVs become one, because a file more costs a reader more than its rows do. */
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

/** Dozens of small CSVs in one call: each is a trip to the thread pool. */
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

/** Large CSVs are read where they are, unless the fast reader must not see them as they are. */
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

/** Undefined, and named in `failed`, when the file as a whole is not what it should be. */
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

/** Makes the relation `rows`; the path of the Parquet file that it lies in, when it is not in memory. */
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
  const provenance = conversion.provenance(inputs.map(({ received }) => received));
  await session.run(stageRows(conversion, csvs, { path, provenance }));
  await session.run(viewStaged(path, origin));
  return path;
}

/** Beside the target, so that it can become it. */
export function stagedPath({ targetPath }: Conversion): string {
  return `${targetPath}.rows`;
}
