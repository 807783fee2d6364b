/**
 * Converts the objects of a partition to one Parquet or CSV file: checks every cell, sorts the rows, and removes exact duplicates within an
 * object. With `asPublished`, rows keep their order and duplicates stay.
 */
import { dayText } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { Conversion, ConversionResult, ObjectFacts } from './conversion.js';
import { copyDirectly } from './direct-copy.js';
import type { Row, DuckDbSession } from './duckdb.js';
import { countText } from '../model/units.js';
import { countExtraBars, expectedRows, findGaps, isoInstant, findIrregularObjects } from './gaps.js';
import type { ObjectPeriod } from './gaps.js';
import type { Input } from './load-rows.js';
import { compareOverlap, countChangedRows } from './overlap.js';
import { readObjects, removeScratch } from './read-objects.js';
import type { ReadObjects } from './read-objects.js';
import { createKept } from './statements.js';
import { writeTarget } from './write-target.js';

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
  const kept = conversion.kept?.lines ?? [];
  const read = await readObjects(session, conversion, {
    failed,
    ordinalsOf: (inputs) => ordinalsOf(inputs, kept).received,
  });
  if (read === undefined)
    return { written: new Map(), failed, rows: 0, duplicatesAcross: 0, lacked: new Map() };
  const refusal =
    conversion.days === undefined ? undefined : await monthRefusal(session, conversion, conversion.days);
  if (refusal !== undefined) {
    for (const { received } of read.inputs) failed.set(received.object.key, refusal);
    return { written: new Map(), failed, rows: 0, duplicatesAcross: 0, lacked: new Map() };
  }
  const ordinals = ordinalsOf(read.inputs, kept).kept;
  return { ...(await writeRows(session, conversion, read, ordinals)), failed };
}

/** The error if the monthly object lacks rows of the held days or adds none; undefined if it may replace them. */
async function monthRefusal(
  session: DuckDbSession,
  conversion: Conversion,
  days: NonNullable<Conversion['days']>,
): Promise<CryptodlError | undefined> {
  const { lost, gained } = await countChangedRows(session, conversion, days);
  if (lost === 0 && gained > 0) return undefined;
  const why = lost > 0 ? `it lacks ${countText(lost, 'row')} of held days` : 'it has no additional rows';
  return new CryptodlError('month-incomplete', `${why}: the held days were not changed`);
}

async function writeRows(
  session: DuckDbSession,
  conversion: Conversion,
  { inputs, stats, staged }: ReadObjects,
  keptOrdinals: readonly number[],
): Promise<Omit<ConversionResult, 'failed'>> {
  const { kept, revised } = conversion;
  const overlap =
    conversion.overlap === undefined
      ? {}
      : { overlap: await compareOverlap(session, conversion, conversion.overlap) };
  const lacked = new Map<string, number>();
  if (revised !== undefined)
    for (const line of revised.lines) {
      const change = { file: revised.file, replaced: [line] };
      lacked.set(line.key, (await countChangedRows(session, conversion, change)).lost);
    }
  if (kept !== undefined) await loadKeptRows(session, conversion, kept, keptOrdinals);
  const { gaps, extraBars } = await findIrregularities(session, conversion, inputs, stats);
  const counts = await writeTarget(session, conversion, {
    staged,
    isOrdered: kept === undefined && stats.every((row) => Number(row['unordered']) === 0),
    metadata: conversion.metadata(inputs.map(({ received }) => received)),
  });
  const written = new Map<string, ObjectFacts>();
  for (const [index, { received }] of inputs.entries()) {
    const row = stats[index] ?? {};
    const ordinal = Number(row['ord']);
    const rows = counts.rowsOf(ordinal) ?? Number(row['rows']);
    const idConflicts = extraBars.get(ordinal) ?? counts.conflictsOf(ordinal);
    written.set(received.object.key, {
      rows,
      first: isoInstant(row, 'first'),
      last: isoInstant(row, 'last'),
      duplicates: Number(row['rows']) - rows,
      ...(idConflicts === 0 ? {} : { idConflicts }),
      ...gapsFact(gaps.get(ordinal) ?? []),
    });
  }
  const own = [...written.values()].reduce((sum, facts) => sum + facts.rows, 0);
  return { written, rows: counts.rows ?? own, duplicatesAcross: counts.across, lacked, ...overlap };
}

function gapsFact(gaps: NonNullable<ObjectFacts['gaps']>): Pick<ObjectFacts, 'gaps'> {
  return gaps.length === 0 ? {} : { gaps };
}

interface Irregularities {
  readonly gaps: ReadonlyMap<number, NonNullable<ObjectFacts['gaps']>>;
  /** Rows after the first of their bar, and rows outside of the period. */
  readonly extraBars: ReadonlyMap<number, number>;
}

/** Gaps and extra rows by ordinal. Only objects with an unexpected row count, order or time grid are searched. */
async function findIrregularities(
  session: DuckDbSession,
  conversion: Conversion,
  inputs: readonly Input[],
  stats: readonly Row[],
): Promise<Irregularities> {
  const isUnordered = stats.some((row) => Number(row['unordered']) > 0);
  const irregular = isUnordered ? await findIrregularObjects(session, conversion) : new Set<number>();
  const maybeGaps: ObjectPeriod[] = [];
  const mayHaveExtraBars: ObjectPeriod[] = [];
  for (const [index, { received }] of inputs.entries()) {
    const row = stats[index] ?? {};
    const [ordinal, rows] = [Number(row['ord']), Number(row['rows'])];
    const { object } = received;
    const expected = expectedRows(conversion.spec, conversion.series, object);
    const isIrregular = irregular.has(ordinal) || Number(row['off_grid']) > 0;
    if (rows < (expected ?? 0) || isIrregular) maybeGaps.push({ ordinal, period: object.period });
    if (rows > (expected ?? rows) || isIrregular) mayHaveExtraBars.push({ ordinal, period: object.period });
  }
  return {
    gaps: await findGaps(session, conversion, maybeGaps),
    extraBars: await countExtraBars(session, conversion, mayHaveExtraBars),
  };
}

/** Loads the rows that stay. If objects are replaced and the number of rows differs from the manifest, rejects with `partition-incomplete`. */
async function loadKeptRows(
  session: DuckDbSession,
  conversion: Conversion,
  kept: NonNullable<Conversion['kept']>,
  ordinals: readonly number[],
): Promise<void> {
  await session.run(createKept(conversion, kept, ordinals));
  if (kept.replaced.length === 0) return;
  const [counted] = await session.rows('SELECT count(*) AS rows FROM kept');
  const expected = kept.lines.reduce((sum, line) => sum + (line.rows ?? 0), 0);
  if (Number(counted?.['rows']) === expected) return;
  throw new CryptodlError(
    'partition-incomplete',
    `${kept.file} has ${String(counted?.['rows'])} rows of other periods; its manifest lists ${expected}`,
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
