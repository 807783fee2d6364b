/**
 * Converts the objects of a usual file in one statement: the times of all rows, read in JavaScript, tell order, duplicates, gaps and bars, and
 * one COPY checks the cells, sorts and writes. All other files take the way of convert.ts, whose results are the same.
 */
import { rm } from 'node:fs/promises';
import type { ColumnSpec } from '../exchange/facts.js';
import { isWithinPeriod, hasShorterBars } from './expected-rows.js';
import type { Conversion, ConversionResult, ObjectFacts } from './conversion.js';
import { timeFacts } from './row-times.js';
import { orderOf, readTimes, type RowTimes, type TimeOrder } from './read-times.js';
import { isContentError } from './load-duckdb.js';
import { gatherSmall, isLarge, newColumnsOf, type Gathered, type Input } from './read-objects.js';
import { copyPublished } from './statements.js';
import { soundExpression } from './values.js';

/** Undefined for an unusual file, and for an unusual or invalid row: then no target file exists. Rejects with errors other than those of the content. */
export async function copyDirectly(conversion: Conversion): Promise<ConversionResult | undefined> {
  const key = timeKey(conversion);
  if (key === undefined) return undefined;
  const gathered = await gatherSmall(conversion, conversion.received);
  if (conversion.failed.size > 0 || gathered.inputs.some(({ inspected }) => inspected.needsCheck))
    return undefined;
  const times: RowTimes[] = [];
  for (const { received, inspected } of gathered.inputs) {
    if (received.csv.kind !== 'memory') return undefined;
    const { bytes } = received.csv;
    const fromByte = inspected.headerLines === 0 ? 0 : bytes.indexOf('\n') + 1;
    const own = readTimes(bytes, key, { fromByte, rows: inspected.rows });
    if (own === undefined) return undefined;
    times.push(own);
  }
  const order = orderOf(times);
  if (order.hasDuplicates) return undefined;
  const written = describeObjects(conversion, gathered.inputs, order);
  if (written === undefined) return undefined;
  const rows = times.reduce((sum, { length }) => sum + length, 0);
  if (!(await copy(conversion, gathered, { key, isOrdered: order.isOrdered, rows }))) return undefined;
  return { written, failed: conversion.failed, rows, duplicatesAcross: 0, lacked: new Map() };
}

/** The first column, if it is a time that alone sorts and identifies the rows; undefined for any other dataset, and for an unusual file. */
function timeKey(conversion: Conversion): ColumnSpec | undefined {
  const { spec, settings, received, existing } = conversion;
  const [key] = spec.columns;
  const isUsual =
    existing === undefined &&
    settings.format === 'parquet' &&
    !settings.asPublished &&
    spec.values?.constant === undefined &&
    received.every(({ csv }) => csv.kind === 'memory') &&
    !isLarge(conversion, received);
  const isKey = spec.sort.length === 1 && spec.sort[0] === key?.name && spec.hoursSinceLast === undefined;
  return isUsual && isKey && (key?.type === 'time' || key?.type === 'datetime') ? key : undefined;
}

/** Undefined if an object has rows outside its period, or bars of a shorter interval. */
function describeObjects(
  { spec, series }: Conversion,
  inputs: readonly Input[],
  { sorted }: TimeOrder,
): Map<string, ObjectFacts> | undefined {
  const written = new Map<string, ObjectFacts>();
  for (const [index, { received, inspected }] of inputs.entries()) {
    const { object } = received;
    const own = sorted[index] ?? new Float64Array();
    const { first, last, gaps, extraBars } = timeFacts(own, { spec, series, object });
    const isValid =
      !hasShorterBars(spec, series, object, own.length) &&
      isWithinPeriod(spec, series.interval, object.period, { first, last });
    if (!isValid) return undefined;
    written.set(object.key, {
      rows: own.length,
      first,
      last,
      duplicates: 0,
      ...newColumnsOf(inspected),
      ...(extraBars === 0 ? {} : { idConflicts: extraBars }),
      ...(gaps.length === 0 ? {} : { gaps }),
    });
  }
  return written;
}

/** Whether the statement accepted every cell and wrote as many rows as there are lines. */
async function copy(
  conversion: Conversion,
  { inputs, csvs }: Gathered,
  { key, isOrdered, rows }: { key: ColumnSpec; isOrdered: boolean; rows: number },
): Promise<boolean> {
  const [csv] = csvs;
  const metadata = conversion.metadata(inputs.map(({ received }) => received));
  if (csv === undefined) return false;
  try {
    const sound = soundExpression(conversion);
    const sql = copyPublished(conversion, csv, metadata, { key, isOrdered, sound });
    const [copied] = await conversion.duckdb.rows(sql);
    if (Number(copied?.['Count']) === rows) return true;
  } catch (error) {
    if (!isContentError(error)) throw error;
  }
  await rm(conversion.targetPath, { force: true });
  return false;
}
