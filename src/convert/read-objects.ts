/** Received objects → the relation `rows`, cell by cell what their columns declare; wrong objects are named with their line. */
import { rm } from 'node:fs/promises';
import { periodText } from '../model/calendar.js';
import type { Row, DuckDbSession } from './duckdb.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import { findFirstError } from './check-rows.js';
import type { Conversion } from './conversion.js';
import { receivedColumns, rowLines } from './csv-input.js';
import { expectedRows, hasShorterBars, isoInstant } from './gaps.js';
import { gatherLarge, gatherSmall, isLarge, loadRows, stagedPath } from './load-rows.js';
import type { Gathered, Input } from './load-rows.js';
import { isWithinPeriod } from './columns.js';
import { statsQuery } from './statements.js';

export interface ReadObjects {
  /** Those that are right. */
  readonly inputs: readonly Input[];
  /** One row per object. */
  readonly stats: readonly Row[];
  /** Where the rows lie, when they are not in memory. */
  readonly staged: string | undefined;
}

export interface ReadOptions {
  /** Gets what is wrong, by key. */
  readonly failed: Map<string, CryptodlError>;
  /** By position of the input: how its rows are told from those of the others. */
  readonly ordinalsOf: (inputs: readonly Input[]) => readonly number[];
}

/** Undefined when no object is right. Rejects on disk errors and bugs. */
export async function readObjects(
  session: DuckDbSession,
  conversion: Conversion,
  { failed, ordinalsOf }: ReadOptions,
): Promise<ReadObjects | undefined> {
  for (;;) {
    const remaining = conversion.received.filter(({ object }) => !failed.has(object.key));
    const large = isLarge(conversion, remaining);
    const gathered = await (large ? gatherLarge : gatherSmall)(conversion, remaining, failed);
    const { inputs } = gathered;
    await checkSuspicious(conversion, inputs, failed);
    if (inputs.length === 0) return undefined;
    if (inputs.some(({ received }) => failed.has(received.object.key))) continue;
    if (inputs.length < remaining.length) continue;
    const how = { ordinals: ordinalsOf(inputs), isLarge: large };
    const rows = await readRows(session, conversion, gathered, how, failed);
    if (rows !== undefined) return { inputs, ...rows };
  }
}

/** Files that were made on the way. */
export async function removeScratch(conversion: Conversion): Promise<void> {
  const parts = conversion.received.map((_, index) => `${conversion.csvPath}-${index}`);
  const ofLarge = isLarge(conversion, conversion.received) ? [...parts, stagedPath(conversion)] : [];
  await Promise.all([conversion.csvPath, ...ofLarge].map((path) => rm(path, { force: true })));
}

/** Undefined when some objects were found wrong and put into `failed`. */
async function readRows(
  session: DuckDbSession,
  conversion: Conversion,
  gathered: Gathered,
  how: { ordinals: readonly number[]; isLarge: boolean },
  failed: Map<string, CryptodlError>,
): Promise<Omit<ReadObjects, 'inputs'> | undefined> {
  const { inputs } = gathered;
  try {
    const staged = await loadRows(session, conversion, gathered, how);
    const stats = await session.rows(statsQuery(conversion));
    assertStats(stats, inputs);
    return rejectOutsidePeriod(conversion, inputs, stats, failed) ? undefined : { stats, staged };
  } catch (error) {
    const known = toCryptodlError(error);
    // DuckDB's complaints about content are unknown to us; everything known is about something else.
    if (known.code !== 'bug' && known.code !== 'row-malformed') throw error;
    if (await findWrongLines(conversion, inputs, failed)) return undefined;
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

/** Whether rows were found that are not of the period of their object, or bars of a shorter interval. */
function rejectOutsidePeriod(
  { spec, series }: Conversion,
  inputs: readonly Input[],
  stats: readonly Row[],
  failed: Map<string, CryptodlError>,
): boolean {
  let found = false;
  for (const [index, { received }] of inputs.entries()) {
    const row = stats[index] ?? {};
    const [first, last] = [isoInstant(row, 'first'), isoInstant(row, 'last')];
    const { period, key } = received.object;
    const [rows, unordered] = [Number(row['rows']), Number(row['unordered'])];
    // Duplicates come out of order; the first row of an object may also follow a later object.
    if (unordered <= 1 && hasShorterBars(spec, series, received.object, rows - unordered)) {
      const expected = expectedRows(spec, series, received.object) ?? 0;
      const text = `${received.name}: ${rows} rows, its period has ${expected} of ${series.interval ?? ''}`;
      failed.set(key, new CryptodlError('row-malformed', text));
      found = true;
      continue;
    }
    if (isWithinPeriod(spec, series.interval, period, { first, last })) continue;
    const text = `${received.name}: its rows are of ${first} … ${last}, its period is ${periodText(period)}`;
    failed.set(key, new CryptodlError('rows-outside-period', text));
    found = true;
  }
  return found;
}

async function checkSuspicious(
  conversion: Conversion,
  inputs: readonly Input[],
  failed: Map<string, CryptodlError>,
): Promise<void> {
  const suspicious = inputs.filter(({ inspected }) => inspected.needsCheck);
  if (suspicious.length > 0) await findWrongLines(conversion, suspicious, failed);
}

/** Whether a wrong line was found. */
async function findWrongLines(
  conversion: Conversion,
  inputs: readonly Input[],
  failed: Map<string, CryptodlError>,
): Promise<boolean> {
  let found = false;
  for (const { received, inspected } of inputs) {
    const { headerLines } = inspected;
    const file = { name: received.name, symbol: conversion.series.symbol, headerLines };
    const columns = receivedColumns(received, conversion.spec);
    const wrong = await findFirstError(columns, file, rowLines(received, headerLines));
    if (wrong === undefined) continue;
    failed.set(received.object.key, wrong);
    found = true;
  }
  return found;
}

/** The line counts must agree as well: a reader that skips a blank line is not trusted to have seen the rest. */
function assertStats(stats: readonly Row[], inputs: readonly Input[]): void {
  const isRight =
    stats.length === inputs.length &&
    inputs.every(
      ({ inspected }, index) =>
        Number(stats[index]?.['rows']) === inspected.rows && Number(stats[index]?.['wrong']) === 0,
    );
  if (!isRight) throw new CryptodlError('row-malformed', 'a cell is not what its column declares');
}
