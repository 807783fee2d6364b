/** Reads received objects into the relation `rows`, checks every cell, and finds the first invalid line of each invalid object. */
import { periodText } from '../model/calendar.js';
import type { Row } from './duckdb.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import { findFirstError } from './check-rows.js';
import type { Conversion } from './conversion.js';
import { knownCells, receivedColumns, rowLines } from './csv-input.js';
import { isoInstant } from './row-times.js';
import { expectedRows, hasShorterBars, isWithinPeriod } from './expected-rows.js';
import { statsQuery } from './object-stats-sql.js';
import { isLarge, gatherLarge, gatherSmall, loadRows } from './load-rows.js';
import type { LoadedInput, Input, Gathered } from './load-rows.js';

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
    const known = toCryptodlError(error);
    // Errors of DuckDB about content have no code of their own and become `bug`. Only `assertStats` throws `row-malformed`.
    // Errors with any other code do not concern the content.
    if (known.code !== 'bug' && known.code !== 'row-malformed') throw error;
    if (await findWrongLines(conversion, inputs)) return undefined;
    // Every single line is valid, but the files cannot be read: all objects fail.
    const [text = ''] = known.message.split('\n');
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
function assertStats(stats: readonly Row[], inputs: readonly Input[]): void {
  const isRight =
    stats.length === inputs.length &&
    inputs.every(
      ({ inspected }, index) =>
        Number(stats[index]?.['rows']) === inspected.rows && Number(stats[index]?.['wrong']) === 0,
    );
  if (!isRight) throw new CryptodlError('row-malformed', 'a cell does not match the type of its column');
}
