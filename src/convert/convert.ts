/**
 * Converts the objects of a partition to one Parquet or CSV file: checks every cell, sorts the rows, and removes exact duplicates within an
 * object. With `asPublished`, rows keep their order and duplicates stay.
 */
import { dayText, startOfDay } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { isFromRest } from '../model/manifest-line.js';
import type { ObjectLine } from '../model/manifest-line.js';
import type { ArchiveObject } from '../model/task.js';
import { rowSeconds } from '../exchange/exchange-spec.js';
import type { Conversion, ConversionResult, FileMetadata, ObjectFacts } from './conversion.js';
import { copyDirectly } from './direct-copy.js';
import type { DuckDbSession, Row } from './duckdb.js';
import { countText } from '../model/units.js';
import { barSeconds, expectedRows, isoInstant, longestGaps, timeFacts } from './row-times.js';
import type { TimeFacts } from './row-times.js';
import { newColumnsOf, readObjects, removeScratch } from './read-objects.js';
import type { Input, ReadObjects } from './read-objects.js';
import { compareOverlap, countChangedRows } from './overlap.js';
import { sequenceOf, silencesOf } from './sequences.js';
import {
  conflictsQuery,
  copyByKey,
  copySorted,
  copyTo,
  createKept,
  keysQuery,
  sortRows,
  sortedCounts,
  timesQuery,
} from './statements.js';
import { findSuspicious } from './values.js';
import { rename, rm } from 'node:fs/promises';

/**
 * Writes all valid objects to `targetPath`. Invalid objects are left out; `failed` has their errors. Without a valid object, or if
 * the monthly object may not replace held days, no file is written and `rows` is 0. Rejects with `partition-incomplete`, and with
 * errors that do not concern the content of the objects (disk, memory, interruption, bugs).
 */
export async function convert(session: DuckDbSession, conversion: Conversion): Promise<ConversionResult> {
  try {
    return (await copyDirectly(session, conversion)) ?? (await convertInSteps(session, conversion));
  } finally {
    await removeScratch(conversion);
  }
}

/** Converts with SQL statements, also what `copyDirectly` refuses. */
export async function convertInSteps(
  session: DuckDbSession,
  conversion: Conversion,
): Promise<ConversionResult> {
  const failed = new Map<string, CryptodlError>();
  const { kept = [], days = [] } = conversion.existing ?? {};
  const read = await readObjects(session, conversion, failed, (inputs) => ordinalsOf(inputs, kept).received);
  const nothing = { written: new Map(), failed, rows: 0, duplicatesAcross: 0, lacked: new Map() };
  if (read === undefined) return nothing;
  const refusal = days.length === 0 ? undefined : await monthRefusal(session, conversion, days);
  if (refusal !== undefined) {
    for (const { received } of read.inputs) failed.set(received.object.key, refusal);
    return nothing;
  }
  const ordinals = ordinalsOf(read.inputs, kept).kept;
  return { ...(await writeRows(session, conversion, read, ordinals)), failed };
}

/** The error if the monthly object lacks rows of the held days or adds none; undefined if it may replace them. */
async function monthRefusal(
  session: DuckDbSession,
  conversion: Conversion,
  days: readonly ObjectLine[],
): Promise<CryptodlError | undefined> {
  const { lost, gained } = await countChangedRows(session, conversion, days);
  // Rows of REST only stand in for those of the archive.
  if (lost === 0 && (gained > 0 || days.some(isFromRest))) return undefined;
  const why = lost > 0 ? `it lacks ${countText(lost, 'row')} of held days` : 'it has no additional rows';
  return new CryptodlError('month-incomplete', `${why}: the held days were not changed`);
}

async function writeRows(
  session: DuckDbSession,
  conversion: Conversion,
  { inputs, stats, staged }: ReadObjects,
  keptOrdinals: readonly number[],
): Promise<Omit<ConversionResult, 'failed'>> {
  const { kept = [], compared = [], revised = [] } = conversion.existing ?? {};
  const overlap =
    compared.length === 0 ? {} : { overlap: await compareOverlap(session, conversion, compared) };
  const lacked = new Map<string, number>();
  for (const line of revised)
    lacked.set(line.key, (await countChangedRows(session, conversion, [line])).lost);
  if (kept.length > 0) await viewKept(session, conversion, keptOrdinals);
  const described = await describeRows(session, conversion, inputs, stats);
  const counts = await writeTarget(session, conversion, {
    staged,
    isOrdered: kept.length === 0 && stats.every((row) => Number(row['unordered']) === 0),
    metadata: conversion.metadata(inputs.map(({ received }) => received)),
  });
  const written = new Map<string, ObjectFacts>();
  for (const { key, ordinal, published, first, last, extraBars, more } of described) {
    const rows = counts.rowsOf(ordinal) ?? published;
    const idConflicts =
      barSeconds(conversion.spec, conversion.series) === undefined ? counts.conflictsOf(ordinal) : extraBars;
    written.set(key, {
      rows,
      first,
      last,
      duplicates: published - rows,
      ...more,
      ...(idConflicts === 0 ? {} : { idConflicts }),
    });
  }
  const own = [...written.values()].reduce((sum, facts) => sum + facts.rows, 0);
  return { written, rows: counts.rows ?? own, duplicatesAcross: counts.across, lacked, ...overlap };
}

/** What the relation `rows` tells of each object, in their order. `published`: its rows, of which the file may have fewer. */
async function describeRows(
  session: DuckDbSession,
  conversion: Conversion,
  inputs: readonly Input[],
  stats: readonly Row[],
) {
  const irregular = await findIrregular(session, conversion, inputs, stats);
  const suspicious = await findSuspicious(session, conversion);
  const described = [];
  for (const [index, { received, inspected }] of inputs.entries()) {
    const row = stats[index] ?? {};
    const ordinal = Number(row['ord']);
    const { gaps: times = [], extraBars = 0, expected, ids: scheduleMinutes } = irregular.get(ordinal) ?? {};
    // Rows of a schedule have minutes since 1970 in place of ids, see `IdFacts`.
    const { ids = scheduleMinutes, gaps: places } = await sequenceOf(session, conversion.spec, row);
    const { silent, gaps: silences = [] } = await silencesOf(session, conversion, received.object, row);
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
  session: DuckDbSession,
  conversion: Conversion,
  inputs: readonly Input[],
  stats: readonly Row[],
): Promise<ReadonlyMap<number, TimeFacts>> {
  const { spec, series } = conversion;
  const isRegular = rowSeconds(spec, series.interval) !== undefined;
  const isOrdered = stats.every((row) => Number(row['unordered']) === 0);
  const sought = new Map<number, ArchiveObject>();
  for (const [index, { received }] of inputs.entries()) {
    const row = stats[index] ?? {};
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
  const times = new Map(ordinals.map((ordinal) => [ordinal, new Array<number>()]));
  const hours = new Map(ordinals.map((ordinal) => [ordinal, new Array<number>()]));
  // In batches, because a month of seconds has millions of rows.
  const found = await session.select(timesQuery(conversion, ordinals, isOrdered));
  for await (const rows of found?.batches ?? [])
    for (const [ordinal, us, sinceLast] of rows) {
      times.get(Number(ordinal))?.push(Number(us));
      if (sinceLast !== undefined) hours.get(Number(ordinal))?.push(Number(sinceLast));
    }
  const facts = [...sought].map(([ordinal, object]) => {
    const sorted = Float64Array.from(times.get(ordinal) ?? []).sort();
    return [ordinal, timeFacts(sorted, { spec, series, object, hours: hours.get(ordinal) ?? [] })] as const;
  });
  return new Map(facts);
}

/** Adds the places of missing ids, or silences, to gaps, except those that overlap one of the gaps. All are in order of time. */
function addPlaces(gaps: TimeFacts['gaps'], places: TimeFacts['gaps']): TimeFacts['gaps'] {
  const others = places.filter(([from, to]) => !gaps.some(([since, until]) => from < until && since < to));
  return longestGaps([...gaps, ...others].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Creates the relation `kept`. If objects are replaced and the number of its rows differs from the manifest, rejects with `partition-incomplete`. */
async function viewKept(
  session: DuckDbSession,
  conversion: Conversion,
  ordinals: readonly number[],
): Promise<void> {
  const { file = '', kept = [], replaced = [] } = conversion.existing ?? {};
  await session.run(createKept(conversion, ordinals));
  if (replaced.length === 0) return;
  const [counted] = await session.rows('SELECT count(*) AS rows FROM kept');
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

// Writes the relations `rows` and `kept` to the target file: sorted and without exact duplicates within an object, except with `asPublished`.

interface Counts {
  /** Rows of an object by ordinal, without removed duplicates; undefined if the rows were not counted. */
  readonly rowsOf: (ordinal: number) => number | undefined;
  /** Rows of an object, by ordinal, that share the key of another row but differ in values; 0 for datasets without a key. */
  readonly conflictsOf: (ordinal: number) => number;
  /** Rows of the file; undefined if they were not counted. */
  readonly rows: number | undefined;
  /** Exact duplicates across objects, which the file contains; 0 with `asPublished`. */
  readonly across: number;
}

const NOT_COUNTED: Counts = { rowsOf: () => undefined, conflictsOf: () => 0, rows: undefined, across: 0 };

/** If rows are added to a larger file, sorting uses the disk. */
const MEMORY_KEPT_BYTES = 16 * 1024 * 1024;

/** Whether the existing file is too large for sorting in memory. `kept`: the lines of the file that stay. */
export function keptIsLarge(kept: readonly ObjectLine[]): boolean {
  return kept.some((line) => line.fileBytes > MEMORY_KEPT_BYTES);
}

/** Rows that are in order are written as they are, and not counted. `isOrdered`: every row is strictly after the previous one, and no rows are kept. */
async function writeTarget(
  session: DuckDbSession,
  conversion: Conversion,
  {
    staged,
    isOrdered,
    metadata,
  }: Pick<ReadObjects, 'staged'> & { isOrdered: boolean; metadata: FileMetadata },
): Promise<Counts> {
  const isLarge = staged !== undefined || keptIsLarge(conversion.existing?.kept ?? []);
  if (isOrdered) {
    if (staged !== undefined && conversion.settings.format === 'parquet')
      await rename(staged, conversion.targetPath);
    else await session.run(copyTo(conversion, 'rows', metadata));
    return NOT_COUNTED;
  }
  if (isLarge) return sortThrough(`${conversion.csvPath}.sorted`, session, conversion, metadata);
  // Usually days are added to a file, and there are no duplicates: this way takes two thirds of the time.
  if (!conversion.settings.asPublished) {
    const [counted] = await session.rows(keysQuery(conversion));
    const rows = Number(counted?.['rows']);
    if (Number(counted?.['keys']) === rows) {
      await session.run(copyByKey(conversion, metadata));
      return { ...NOT_COUNTED, rows };
    }
  }
  return sortThrough(undefined, session, conversion, metadata);
}

/** Sorts once, into a table or a file; the further steps read it sequentially. */
async function sortThrough(
  path: string | undefined,
  session: DuckDbSession,
  conversion: Conversion,
  metadata: FileMetadata,
): Promise<Counts> {
  try {
    await session.run(sortRows(conversion, path));
    const counts = await session.rows(sortedCounts(conversion, path));
    const { spec, settings } = conversion;
    const isDisputed = !settings.asPublished && counts.some((row) => Number(row['disputed']) > 0);
    const conflicts =
      spec.hasKey && (isDisputed || settings.asPublished)
        ? await session.rows(conflictsQuery(conversion, path))
        : [];
    await session.run(copySorted(conversion, path, { isDisputed, metadata }));
    return countsOf(conversion, counts, byOrdinal(conflicts, 'conflicts'));
  } finally {
    if (path !== undefined) await rm(path, { force: true });
  }
}

function countsOf(
  { settings }: Conversion,
  counts: readonly Row[],
  conflicts: ReadonlyMap<number, number>,
): Counts {
  const rows = byOrdinal(counts, 'rows');
  const sum = (name: string): number => counts.reduce((total, row) => total + Number(row[name]), 0);
  return {
    rowsOf: (ordinal) => rows.get(ordinal),
    conflictsOf: (ordinal) => conflicts.get(ordinal) ?? 0,
    rows: sum('rows'),
    across: settings.asPublished ? 0 : sum('across'),
  };
}

function byOrdinal(rows: readonly Row[], name: string): ReadonlyMap<number, number> {
  return new Map(rows.map((row) => [Number(row['ord']), Number(row[name])]));
}
