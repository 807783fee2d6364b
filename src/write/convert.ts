/** The rows of a partition's objects → one Parquet or CSV file, checked cell by cell, sorted, without duplicates. */
import { open } from 'node:fs/promises';
import { CryptodlError, toCryptodlError } from '../errors.js';
import type { ObjectLine } from '../lake/manifest.js';
import { firstWrongLine } from './check-rows.js';
import { appendCsv, rowLines } from './csv-input.js';
import type { Appended, ReceivedObject } from './csv-input.js';
import type { Conversion } from './conversion.js';
import type { Row, Session } from './duckdb.js';
import {
  copyStatement,
  createKept,
  createRows,
  totalsQuery,
  distinctQuery,
  statsQuery,
} from './statements.js';

export interface ObjectFacts {
  /** Rows in the file. */
  readonly rows: number;
  readonly first: string;
  readonly last: string;
  /** Exact duplicates within the object that were dropped. */
  readonly duplicates: number;
}

export interface ConversionResult {
  readonly written: ReadonlyMap<string, ObjectFacts>;
  readonly failed: ReadonlyMap<string, CryptodlError>;
  /** Rows of the whole file. */
  readonly rows: number;
  /** Exact duplicates across objects, which are kept. */
  readonly duplicatesAcross: number;
}

interface Input {
  readonly received: ReceivedObject;
  readonly appended: Appended;
}

/**
 * Writes `targetPath` from every object that is right; a wrong one is left out and named in `failed` with its line.
 * When nothing is right there is no file and `rows` is 0. Rejects on disk errors and bugs.
 */
export async function convert(session: Session, conversion: Conversion): Promise<ConversionResult> {
  const failed = new Map<string, CryptodlError>();
  for (;;) {
    const remaining = conversion.received.filter(({ object }) => !failed.has(object.key));
    const inputs = await writeInput(conversion, remaining, failed);
    await failSuspicious(conversion, inputs, failed);
    if (inputs.length === 0) return { written: new Map(), failed, rows: 0, duplicatesAcross: 0 };
    if (inputs.some(({ received }) => failed.has(received.object.key))) continue;
    if (inputs.length < remaining.length) continue;
    const ordinals = ordinalsOf(inputs, conversion.kept?.lines ?? []);
    const stats = await readRows(session, conversion, inputs, ordinals.received, failed);
    if (stats !== undefined)
      return { ...(await writeRows(session, conversion, inputs, stats, ordinals.kept)), failed };
  }
}

/** Statistics of every object, or undefined when some were found wrong and put into `failed`. */
async function readRows(
  session: Session,
  conversion: Conversion,
  inputs: readonly Input[],
  ordinals: readonly number[],
  failed: Map<string, CryptodlError>,
): Promise<Row[] | undefined> {
  try {
    const counts = inputs.map(({ appended }) => appended.rows);
    await session.run(createRows(conversion, counts, ordinals));
    const stats = await session.rows(statsQuery(conversion));
    refuseWrong(stats, inputs);
    return stats;
  } catch (error) {
    const known = toCryptodlError(error);
    if (known.fatal && known.code !== 'bug') throw error;
    if (await locate(conversion, inputs, failed)) return undefined;
    // No line is wrong by itself, and yet they cannot be read: nobody may take them for right.
    const text = known.message.split('\n')[0] ?? '';
    for (const { received } of inputs) {
      const refusal = new CryptodlError('row-malformed', `${received.name} cannot be read: ${text}`, {
        cause: error,
      });
      failed.set(received.object.key, refusal);
    }
    return undefined;
  }
}

async function writeInput(
  conversion: Conversion,
  objects: readonly ReceivedObject[],
  failed: Map<string, CryptodlError>,
): Promise<Input[]> {
  const file = await open(conversion.csvPath, 'w');
  const inputs: Input[] = [];
  try {
    for (const received of objects) {
      try {
        inputs.push({
          received,
          appended: await appendCsv(file, received, conversion.spec, conversion.series.symbol),
        });
      } catch (error) {
        const known = toCryptodlError(error);
        if (known.fatal) throw error;
        failed.set(received.object.key, known);
      }
    }
  } finally {
    await file.close();
  }
  return inputs;
}

async function failSuspicious(
  conversion: Conversion,
  inputs: readonly Input[],
  failed: Map<string, CryptodlError>,
): Promise<void> {
  const suspicious = inputs.filter(({ appended }) => appended.needsCheck);
  if (suspicious.length > 0) await locate(conversion, suspicious, failed);
}

/** Whether a wrong line was found. */
async function locate(
  conversion: Conversion,
  inputs: readonly Input[],
  failed: Map<string, CryptodlError>,
): Promise<boolean> {
  let found = false;
  for (const { received, appended } of inputs) {
    const file = { name: received.name, symbol: conversion.series.symbol, headerLines: appended.headerLines };
    const wrong = await firstWrongLine(conversion.spec, file, rowLines(received, appended.headerLines));
    if (wrong === undefined) continue;
    failed.set(received.object.key, wrong);
    found = true;
  }
  return found;
}

async function writeRows(
  session: Session,
  conversion: Conversion,
  inputs: readonly Input[],
  stats: readonly Row[],
  keptOrdinals: readonly number[],
): Promise<Omit<ConversionResult, 'failed'>> {
  const { settings, kept } = conversion;
  if (kept !== undefined) await session.run(createKept(conversion, kept, keptOrdinals));
  const isOrdered = kept === undefined && stats.every((row) => Number(row['unordered']) === 0);
  const unique = isOrdered || settings.asPublished ? undefined : await distinctRows(session, conversion);
  const written = new Map<string, ObjectFacts>();
  for (const [index, { received }] of inputs.entries()) {
    const row = stats[index] ?? {};
    const rows = unique?.get(Number(row['ord'])) ?? Number(row['rows']);
    written.set(received.object.key, {
      rows,
      first: isoInstant(row['first']),
      last: isoInstant(row['last']),
      duplicates: Number(row['rows']) - rows,
    });
  }
  await session.run(
    copyStatement(conversion, {
      isOrdered,
      provenance: conversion.provenance(inputs.map(({ received }) => received)),
    }),
  );
  const [totals] = isOrdered
    ? [{ rows: [...written.values()].reduce((sum, facts) => sum + facts.rows, 0), across: 0 }]
    : await session.rows(totalsQuery(conversion));
  return { written, rows: Number(totals?.['rows']), duplicatesAcross: Number(totals?.['across']) };
}

/** Positions of all objects of the file in period order. */
function ordinalsOf(
  inputs: readonly Input[],
  lines: readonly ObjectLine[],
): { received: number[]; kept: number[] } {
  const starts = [
    ...inputs.map(({ received }) =>
      new Date(received.object.period.from * 86_400_000).toISOString().slice(0, 10),
    ),
    ...lines.map((line) => (line.cadence === 'daily' ? line.period : `${line.period}-01`)),
  ];
  const order = starts.map((start, index) => ({ start, index })).sort((a, b) => (a.start < b.start ? -1 : 1));
  const ordinals: number[] = [];
  for (const [position, { index }] of order.entries()) ordinals[index] = position;
  return { received: ordinals.slice(0, inputs.length), kept: ordinals.slice(inputs.length) };
}

/** The line counts must agree as well: a reader that skips a blank line is not trusted to have seen the rest. */
function refuseWrong(stats: readonly Row[], inputs: readonly Input[]): void {
  const isRight =
    stats.length === inputs.length &&
    inputs.every(
      ({ appended }, index) =>
        Number(stats[index]?.['rows']) === appended.rows && Number(stats[index]?.['wrong']) === 0,
    );
  if (!isRight) throw new CryptodlError('row-malformed', 'a cell is not what its column declares');
}

async function distinctRows(session: Session, conversion: Conversion): Promise<Map<number, number>> {
  const rows = await session.rows(distinctQuery(conversion));
  return new Map(rows.map((row) => [Number(row['ord']), Number(row['rows'])]));
}

/** `2024-01-01 00:00:00` as DuckDB prints it → ISO. */
function isoInstant(value: unknown): string {
  return `${String(value).replace(' ', 'T')}Z`;
}
