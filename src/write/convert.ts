/** The rows of a partition's objects → one Parquet or CSV file, checked cell by cell, sorted, without duplicates. */
import { rename, rm } from 'node:fs/promises';
import { CryptodlError, toCryptodlError } from '../errors.js';
import type { ObjectLine } from '../lake/manifest.js';
import { firstWrongLine } from './check-rows.js';
import { rowLines } from './csv-input.js';
import type { Conversion } from './conversion.js';
import type { Row, Session } from './duckdb.js';
import { gatherLarge, gatherSmall, isLarge, loadRows, stagedPath } from './load-rows.js';
import type { Gathered, Input } from './load-rows.js';
import {
  copyStatement,
  countQuery,
  createKept,
  distinctQuery,
  statsQuery,
  totalsQuery,
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

/**
 * Writes `targetPath` from every object that is right; a wrong one is left out and named in `failed` with its line.
 * When nothing is right there is no file and `rows` is 0. Rejects on disk errors and bugs.
 */
export async function convert(session: Session, conversion: Conversion): Promise<ConversionResult> {
  const scratch = conversion.received.map((_, index) => `${conversion.csvPath}-${index}`);
  try {
    return await convertRight(session, conversion);
  } finally {
    const left = [conversion.csvPath, ...scratch, stagedPath(conversion)];
    await Promise.all(left.map((path) => rm(path, { force: true })));
  }
}

async function convertRight(session: Session, conversion: Conversion): Promise<ConversionResult> {
  const failed = new Map<string, CryptodlError>();
  for (;;) {
    const remaining = conversion.received.filter(({ object }) => !failed.has(object.key));
    const large = isLarge(conversion, remaining);
    const gathered = await (large ? gatherLarge : gatherSmall)(conversion, remaining, failed);
    const { inputs } = gathered;
    await failSuspicious(conversion, inputs, failed);
    if (inputs.length === 0) return { written: new Map(), failed, rows: 0, duplicatesAcross: 0 };
    if (inputs.some(({ received }) => failed.has(received.object.key))) continue;
    if (inputs.length < remaining.length) continue;
    const ordinals = ordinalsOf(inputs, conversion.kept?.lines ?? []);
    const how = { ordinals: ordinals.received, isLarge: large };
    const rows = await readRows(session, conversion, gathered, how, failed);
    if (rows !== undefined)
      return { ...(await writeRows(session, conversion, inputs, rows, ordinals.kept)), failed };
  }
}

interface ReadRows {
  /** One row per object. */
  readonly stats: readonly Row[];
  /** Where the rows lie, when they are not in memory. */
  readonly staged: string | undefined;
}

/** Undefined when some objects were found wrong and put into `failed`. */
async function readRows(
  session: Session,
  conversion: Conversion,
  gathered: Gathered,
  how: { ordinals: readonly number[]; isLarge: boolean },
  failed: Map<string, CryptodlError>,
): Promise<ReadRows | undefined> {
  const { inputs } = gathered;
  try {
    const staged = await loadRows(session, conversion, gathered, how);
    const stats = await session.rows(statsQuery(conversion));
    refuseWrong(stats, inputs);
    return { stats, staged };
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

async function failSuspicious(
  conversion: Conversion,
  inputs: readonly Input[],
  failed: Map<string, CryptodlError>,
): Promise<void> {
  const suspicious = inputs.filter(({ inspected }) => inspected.needsCheck);
  if (suspicious.length > 0) await locate(conversion, suspicious, failed);
}

/** Whether a wrong line was found. */
async function locate(
  conversion: Conversion,
  inputs: readonly Input[],
  failed: Map<string, CryptodlError>,
): Promise<boolean> {
  let found = false;
  for (const { received, inspected } of inputs) {
    const { headerLines } = inspected;
    const file = { name: received.name, symbol: conversion.series.symbol, headerLines };
    const wrong = await firstWrongLine(conversion.spec, file, rowLines(received, headerLines));
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
  { stats, staged }: ReadRows,
  keptOrdinals: readonly number[],
): Promise<Omit<ConversionResult, 'failed'>> {
  const { settings, kept, targetPath } = conversion;
  if (kept !== undefined) await session.run(createKept(conversion, kept, keptOrdinals));
  const isOrdered = kept === undefined && stats.every((row) => Number(row['unordered']) === 0);
  const provenance = conversion.provenance(inputs.map(({ received }) => received));
  if (isOrdered && staged !== undefined && settings.format === 'parquet') await rename(staged, targetPath);
  else await session.run(copyStatement(conversion, { isOrdered, provenance }));
  const isAlone = kept === undefined && inputs.length === 1;
  const keepsAll = isOrdered || settings.asPublished;
  // To find the duplicates of a large object a second time takes as long as to write it: its file is counted.
  const isCounted = !keepsAll && isAlone && staged !== undefined;
  const [whole] = isCounted ? await session.rows(countQuery(conversion)) : [];
  const unique = keepsAll || isCounted ? undefined : await distinctRows(session, conversion);
  const written = new Map<string, ObjectFacts>();
  for (const [index, { received }] of inputs.entries()) {
    const row = stats[index] ?? {};
    const rows = unique?.get(Number(row['ord'])) ?? Number((whole ?? row)['rows']);
    written.set(received.object.key, {
      rows,
      first: isoInstant(row['first']),
      last: isoInstant(row['last']),
      duplicates: Number(row['rows']) - rows,
    });
  }
  const [totals] =
    isOrdered || isAlone
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
      ({ inspected }, index) =>
        Number(stats[index]?.['rows']) === inspected.rows && Number(stats[index]?.['wrong']) === 0,
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
