/**
 * Converts the objects of a partition to one Parquet or CSV file: checks every cell, sorts the rows, and removes exact duplicates within an
 * object. With `asPublished`, rows keep their order and duplicates stay.
 */
import { dayText } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { isFromRest, type ObjectLine } from '../model/manifest-line.js';
import type { Conversion, ConversionResult, ObjectFacts } from './conversion.js';
import { copyDirectly } from './direct-copy.js';
import { countText } from '../model/units.js';
import { barSeconds } from './expected-rows.js';
import { readObjects, type ReadObjects } from './read-objects.js';
import { removeScratch, type Input } from './load-rows.js';
import { compareOverlap, countChangedRows } from './overlap.js';
import { createKept } from './statements.js';
import { writeTarget } from './write-target.js';
import { describeRows } from './describe-rows.js';

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
  for (const { key, ordinal, published, first, last, extraBars, more } of described) {
    const rows = counts.ofObject?.get(ordinal) ?? published;
    const idConflicts =
      barSeconds(conversion.spec, conversion.series) === undefined
        ? (counts.conflicts?.get(ordinal) ?? 0)
        : extraBars;
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
  const { failed } = conversion;
  return {
    written,
    failed,
    rows: counts.rows ?? own,
    duplicatesAcross: counts.across ?? 0,
    lacked,
    ...overlap,
  };
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
