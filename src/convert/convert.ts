/**
 * Converts the objects of a partition to one Parquet or CSV file: checks every cell, sorts the rows, and removes exact duplicates within an
 * object. With `asPublished`, rows keep their order and duplicates stay.
 */
import { dayText, startOfDay } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { isFromRest, type ObjectLine } from '../model/manifest-line.js';
import type { Conversion, ConversionResult, ObjectFacts } from './conversion.js';
import { copyDirectly } from './direct-copy.js';
import { countText } from '../model/units.js';
import { barSeconds, expectedRows } from './expected-rows.js';
import { newColumnsOf, readObjects, removeScratch } from './read-objects.js';
import type { Input, LoadedInput, ReadObjects } from './read-objects.js';
import { compareOverlap, countChangedRows } from './overlap.js';
import { createKept } from './statements.js';
import { writeTarget, areOrdered } from './write-target.js';
import { rowSeconds } from '../exchange/exchange-spec.js';
import type { SourceObject } from '../model/task.js';
import { timesQuery } from './object-stats-sql.js';
import { isoInstant, timeFacts, longestGaps, type TimeFacts } from './row-times.js';
import { sequenceOf, silencesOf } from './sequences.js';
import { findSuspicious } from './values.js';

/**
 * Writes all valid objects to `targetPath`. Invalid objects are left out; `failed` has their errors. Without a valid object, or if
 * the monthly object may not replace held days, no file is written and `rows` is 0. Rejects with `partition-incomplete`, and with
 * errors that do not concern the content of the objects (disk, memory, interruption, bugs).
 */
export async function convert(conversion: Conversion): Promise<ConversionResult> {
  const isFromArchive = conversion.received.every(({ verified }) => verified !== 'rest');
  try {
    const copied = isFromArchive ? await copyDirectly(conversion) : undefined;
    return copied ?? (await convertInSteps(conversion));
  } finally {
    await removeScratch(conversion);
  }
}

/** Converts with SQL statements, also what `copyDirectly` refuses. */
export async function convertInSteps(conversion: Conversion): Promise<ConversionResult> {
  const { failed, existing: { kept = [], days = [] } = {} } = conversion;
  const read = await readObjects(conversion, (inputs) => ordinalsOf(inputs, kept).received);
  const nothing = { written: new Map(), failed, rows: 0, duplicatesAcross: 0, lacked: new Map() };
  if (read === undefined) return nothing;
  const refusal = days.length === 0 ? undefined : await monthRefusal(conversion, days);
  if (refusal !== undefined) {
    for (const { received } of read.inputs) failed.set(received.object.key, refusal);
    return nothing;
  }
  return writeRows(conversion, read);
}

/** The error if the monthly object lacks rows of the held days or adds none; undefined if it may replace them. */
async function monthRefusal(
  conversion: Conversion,
  days: readonly ObjectLine[],
): Promise<CryptodlError | undefined> {
  const { lost, gained } = await countChangedRows(conversion, days);
  // Rows of REST only stand in for those of the archive.
  if (lost === 0 && (gained > 0 || days.some(isFromRest))) return undefined;
  const why = lost > 0 ? `it lacks ${countText(lost, 'row')} of held days` : 'it has no additional rows';
  return new CryptodlError('month-incomplete', `${why}: the held days were not changed`);
}

async function writeRows(conversion: Conversion, read: ReadObjects): Promise<ConversionResult> {
  const { inputs } = read;
  const { kept = [], compared = [], revised = [] } = conversion.existing ?? {};
  const overlap = compared.length === 0 ? {} : { overlap: await compareOverlap(conversion, compared) };
  const lacked = new Map<string, number>();
  for (const line of revised) lacked.set(line.key, (await countChangedRows(conversion, [line])).lost);
  if (kept.length > 0) await viewKept(conversion, ordinalsOf(inputs, kept).kept);
  const described = await describeRows(conversion, inputs);
  const counts = await writeTarget(conversion, read);
  const written = new Map<string, ObjectFacts>();
  const hasBars = barSeconds(conversion.spec, conversion.series) !== undefined;
  for (const { key, ordinal, published, first, last, extraBars, more } of described) {
    const rows = counts.ofObject?.get(ordinal) ?? published;
    const idConflicts = hasBars ? extraBars : (counts.conflicts?.get(ordinal) ?? 0);
    const conflicts = idConflicts === 0 ? {} : { idConflicts };
    written.set(key, { rows, first, last, duplicates: published - rows, ...more, ...conflicts });
  }
  const own = [...written.values()].reduce((sum, facts) => sum + facts.rows, 0);
  const { rows = own, across: duplicatesAcross = 0 } = counts;
  return { written, failed: conversion.failed, rows, duplicatesAcross, lacked, ...overlap };
}

/** Creates the relation `kept`. If objects are replaced and the number of its rows differs from the manifest, rejects with `partition-incomplete`. */
async function viewKept(conversion: Conversion, ordinals: readonly number[]): Promise<void> {
  const { file = '', kept = [], replaced = [] } = conversion.existing ?? {};
  await conversion.duckdb.run(createKept(conversion, ordinals));
  if (replaced.length === 0) return;
  const [counted] = await conversion.duckdb.rows('SELECT count(*) AS rows FROM kept');
  const expected = kept.reduce((sum, line) => sum + (line.rows ?? 0), 0);
  if (Number(counted?.['rows']) === expected) return;
  throw new CryptodlError(
    'partition-incomplete',
    `${file} has ${String(counted?.['rows'])} rows of other periods; its manifest lists ${expected}`,
  );
}

/** Positions of all objects of the file, in period order. */
function ordinalsOf(
  inputs: readonly Input[],
  lines: readonly ObjectLine[],
): { received: number[]; kept: number[] } {
  const starts = [
    ...inputs.map(({ received }) => dayText(received.object.period.from)),
    ...lines.map((line) => (line.cadence === 'daily' ? line.period : `${line.period}-01`)),
  ];
  const order = starts.map((start, index) => ({ start, index })).sort((a, b) => (a.start < b.start ? -1 : 1));
  const ordinals: number[] = [];
  for (const [position, { index }] of order.entries()) ordinals[index] = position;
  return { received: ordinals.slice(0, inputs.length), kept: ordinals.slice(inputs.length) };
}

/** What the relation `rows` tells of each object, in their order. `published`: its rows, of which the file may have fewer. */
async function describeRows(conversion: Conversion, inputs: readonly LoadedInput[]) {
  const irregular = await findIrregular(conversion, inputs);
  const suspicious = await findSuspicious(conversion);
  const described = [];
  for (const { received, inspected, row } of inputs) {
    const ordinal = Number(row['ord']);
    const { gaps: times = [], extraBars = 0, expected, ids: scheduleMinutes } = irregular.get(ordinal) ?? {};
    // Rows of a schedule have minutes since 1970 in place of ids, see `IdFacts`.
    const { ids = scheduleMinutes, gaps: places } = await sequenceOf(conversion, row);
    const { silent, gaps: silences = [] } = await silencesOf(conversion, received.object, row);
    const gaps = addPlaces(addPlaces(times, places), silences);
    const doubtful = suspicious.get(ordinal);
    described.push({
      key: received.object.key,
      ordinal,
      published: Number(row['rows']),
      first: isoInstant(row, 'first'),
      last: isoInstant(row, 'last'),
      extraBars,
      more: {
        ...newColumnsOf(inspected),
        ...(ids === undefined ? {} : { ids: { ...ids, ...(silent === undefined ? {} : { silent }) } }),
        ...(expected === undefined ? {} : { expectedRows: expected }),
        ...(doubtful === undefined ? {} : { suspicious: doubtful }),
        ...(gaps.length === 0 ? {} : { gaps }),
      },
    });
  }
  return described;
}

/** Gaps and extra rows by ordinal: of objects with an unexpected row count, order or time grid, or rows outside of their period, of months of irregular times, and of scheduled rows. */
async function findIrregular(
  conversion: Conversion,
  inputs: readonly LoadedInput[],
): Promise<ReadonlyMap<number, TimeFacts>> {
  const { spec, series } = conversion;
  const isRegular = rowSeconds(spec, series.interval) !== undefined;
  const isOrdered = areOrdered(inputs);
  const sought = new Map<number, SourceObject>();
  for (const { received, row } of inputs) {
    const rows = Number(row['rows']);
    const { from, to } = received.object.period;
    const isExpected =
      rows === (expectedRows(spec, series, received.object) ?? rows) &&
      Date.parse(isoInstant(row, 'first')) >= startOfDay(from, spec) &&
      Date.parse(isoInstant(row, 'last')) < startOfDay(to, spec);
    const isSought = isRegular
      ? !isOrdered || !isExpected || Number(row['off_grid']) > 0
      : spec.hoursSinceLast !== undefined || received.object.period.cadence === 'monthly';
    if (isSought) sought.set(Number(row['ord']), received.object);
  }
  if (sought.size === 0) return new Map();
  const ordinals = [...sought.keys()];
  const read = new Map(
    ordinals.map((ordinal) => [ordinal, { times: [] as number[], hours: [] as number[] }]),
  );
  // In batches, because a month of seconds has millions of rows.
  const found = await conversion.duckdb.select(timesQuery(conversion, ordinals, isOrdered));
  for await (const rows of found?.batches ?? [])
    for (const [ordinal, us, sinceLast] of rows) {
      read.get(Number(ordinal))?.times.push(Number(us));
      if (sinceLast !== undefined) read.get(Number(ordinal))?.hours.push(Number(sinceLast));
    }
  const facts = new Map<number, TimeFacts>();
  for (const [ordinal, object] of sought) {
    const { times = [], hours = [] } = read.get(ordinal) ?? {};
    facts.set(ordinal, timeFacts(Float64Array.from(times).sort(), { spec, series, object, hours }));
  }
  return facts;
}

/** Adds the places of missing ids, or silences, to gaps, except those that overlap one of the gaps. All are in order of time. */
function addPlaces(gaps: TimeFacts['gaps'], places: TimeFacts['gaps']): TimeFacts['gaps'] {
  const others = places.filter(([from, to]) => !gaps.some(([since, until]) => from < until && since < to));
  return longestGaps([...gaps, ...others].sort(([a], [b]) => (a < b ? -1 : 1)));
}
