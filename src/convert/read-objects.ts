/** Reads received objects into the relation `rows`, checks every cell, and finds the first invalid line of each invalid object. */
import { rm } from 'node:fs/promises';
import { periodText } from '../model/calendar.js';
import type { Row, DuckDbSession } from './duckdb.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import { findFirstError } from './check-rows.js';
import type { Conversion } from './conversion.js';
import { knownCells, receivedColumns, rowLines } from './csv-input.js';
import { expectedRows, hasShorterBars, isoInstant } from './gaps.js';
import { gatherLarge, gatherSmall, isLarge, loadRows, stagedPath } from './load-rows.js';
import type { Gathered, Input } from './load-rows.js';
import { isWithinPeriod } from './columns.js';
import { statsQuery } from './statements.js';

export interface ReadObjects {
  /** The valid objects. */
  readonly inputs: readonly Input[];
  /** The result of `statsQuery`: one row per object. */
  readonly stats: readonly Row[];
  /** Path of the file with the rows; undefined when they are in memory. */
  readonly staged: string | undefined;
}

/**
 * Reads the objects until all remaining ones are valid. Undefined when none is. Rejects with errors that do not concern the content.
 * `failed` gets the errors of invalid objects, by key. `ordinalsOf`: each row gets the ordinal of its object.
 */
export async function readObjects(
  session: DuckDbSession,
  conversion: Conversion,
  failed: Map<string, CryptodlError>,
  ordinalsOf: (inputs: readonly Input[]) => readonly number[],
): Promise<ReadObjects | undefined> {
  for (;;) {
    const remaining = conversion.received.filter(({ object }) => !failed.has(object.key));
    const large = isLarge(conversion, remaining);
    const gathered = await (large ? gatherLarge : gatherSmall)(conversion, remaining, failed);
    const { inputs } = gathered;
    const suspicious = inputs.filter(({ inspected }) => inspected.needsCheck);
    const hasWrong = await findWrongLines(conversion, suspicious, failed);
    if (inputs.length === 0) return undefined;
    if (hasWrong || inputs.length < remaining.length) continue;
    const how = { ordinals: ordinalsOf(inputs), isLarge: large };
    const rows = await readRows(session, conversion, gathered, how, failed);
    if (rows !== undefined) return { inputs, ...rows };
  }
}

/** Removes the temporary files of a conversion. */
export async function removeScratch(conversion: Conversion): Promise<void> {
  const parts = conversion.received.map((_, index) => `${conversion.csvPath}-${index}`);
  const ofLarge = isLarge(conversion, conversion.received) ? [...parts, stagedPath(conversion)] : [];
  await Promise.all([conversion.csvPath, ...ofLarge].map((path) => rm(path, { force: true })));
}

/** Undefined when some objects are invalid and were added to `failed`. */
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
    // Errors of DuckDB about content have no code of their own and become `bug`. Only `assertStats` throws `row-malformed`.
    // Errors with any other code do not concern the content.
    if (known.code !== 'bug' && known.code !== 'row-malformed') throw error;
    if (await findWrongLines(conversion, inputs, failed)) return undefined;
    // Every single line is valid, but the files cannot be read: all objects fail.
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

/** Fails objects with rows outside their period, or with bars of a shorter interval. Returns whether there were any. */
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
async function findWrongLines(
  conversion: Conversion,
  inputs: readonly Input[],
  failed: Map<string, CryptodlError>,
): Promise<boolean> {
  let found = false;
  for (const { received, inspected } of inputs) {
    const { headerLines, newColumns } = inspected;
    const file = { name: received.name, symbol: conversion.series.symbol, headerLines };
    const columns = receivedColumns(received, conversion.spec);
    const cut = (line: string): string => knownCells(line, columns.length, newColumns.length);
    const wrong = await findFirstError(columns, file, rowLines(received, headerLines, cut));
    if (wrong === undefined) continue;
    failed.set(received.object.key, wrong);
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
