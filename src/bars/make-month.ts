/** Makes the file of one month of bars, and its manifest lines. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Row } from '../convert/duckdb.js';
import { isoInstant } from '../convert/gaps.js';
import { countParquetRows, FOOTER_BYTES } from '../convert/parquet-rows.js';
import { copyTo, readStoredRows } from '../convert/statements.js';
import { bringIn } from '../lake/backing.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { stagingFolder } from '../lake/layout.js';
import type { LakePaths } from '../lake/layout.js';
import type { ManifestLine, ObjectLine } from '../lake/manifest-line.js';
import { fileFacts, fileSize } from '../lake/publish.js';
import type { Publication } from '../lake/publish.js';
import { moveToQuarantine } from '../lake/quarantine.js';
import { DAY_MS, dayPeriod, dayText, parseDay } from '../model/calendar.js';
import type { FileMetadata } from '../convert/conversion.js';
import type { Series, Settings } from '../model/task.js';
import { TOOL_VERSION } from '../model/version.js';
import { madeKey } from '../source/keys.js';
import type { DatasetSpec } from '../source/venue.js';
import { droppedLine } from '../write/commit.js';
import { fileMetadata } from '../write/file-metadata.js';
import { makeBars } from './make-bars.js';
import type { BarTools } from './make-bars.js';
import { ruleText } from './plan-months.js';
import type { BarMonth, Recipe } from './plan-months.js';
import { sourceName } from './source.js';

/** The series of bars in the lake. */
export interface BarTarget {
  readonly series: Series;
  readonly spec: DatasetSpec;
  /** Absolute. */
  readonly folder: string;
  readonly held: HeldObjects;
  /** The time of the new lines. */
  readonly nowMs: number;
}

interface MonthTools extends BarTools {
  readonly paths: LakePaths;
  readonly signal: AbortSignal;
}

export interface MadeMonth extends Publication {
  readonly label: string;
  readonly lines: readonly ManifestLine[];
  readonly days: number;
  /** Bars of the source; and bars that lack rows of the source, together with those that are absent because it has none of their rows. */
  readonly bars: number;
  readonly short: number;
  readonly bytes: number;
}

/** Undefined for a month without bars. Rejects with `UnreadableSource`, and with `disk` for a staged file that is not Parquet. */
export async function makeMonth(
  tools: MonthTools,
  series: BarTarget,
  recipe: Recipe,
  month: BarMonth,
): Promise<MadeMonth | undefined> {
  const absent = await makeBars(tools, recipe, month);
  const target = join(series.folder, month.file);
  const others = await otherDays(tools, series, month, target);
  const staged = join(await stagingFolder(tools.paths), `${randomUUID()}.partial`);
  try {
    const made = await stageMonth(tools, series, recipe, { month, others, staged, target });
    if (made !== undefined) return { ...made, short: made.short + absent };
    await rm(staged, { force: true });
    return undefined;
  } catch (error) {
    await rm(staged, { force: true });
    throw error;
  }
}

interface Staging extends Publication {
  readonly month: BarMonth;
  readonly others: OtherDays;
}

async function stageMonth(
  tools: MonthTools,
  series: BarTarget,
  recipe: Recipe,
  { month, others, staged, target }: Staging,
): Promise<MadeMonth | undefined> {
  const { engine } = tools;
  const { held, spec, nowMs } = series;
  const written = { spec, settings: recipe.source.settings, targetPath: staged };
  const metadata = metadataOf(tools, series, recipe, month);
  await engine.run(copyTo(written, rowsOf(written, target, others.kept), metadata));
  const { bytes, sha256, tail } = await fileFacts(staged, FOOTER_BYTES);
  const fileRows = await countParquetRows(staged, { bytes, tail });
  if (fileRows === 0) return undefined;
  const byDay = await engine.rows(
    'SELECT day, count(*) AS rows, count_if(is_short) AS short, min(open_time) AS first, max(open_time) AS last FROM made GROUP BY day',
  );
  const sum = (name: 'rows' | 'short'): number => byDay.reduce((total, row) => total + Number(row[name]), 0);
  const at = new Date(nowMs).toISOString();
  const fileBefore = held.fileBefore(month.file);
  const ofFile = { file: month.file, fileBytes: bytes, fileSha256: sha256, fileRows };
  const lines = month.days.map((day) => ({
    ...lineOf(series, recipe, month, day),
    at,
    ...rowsOfDay(byDay.find((row) => row['day'] === day)),
    ...ofFile,
    ...(fileBefore === undefined ? {} : { fileBefore }),
  }));
  return {
    label: month.label,
    staged,
    target,
    lines: [...others.lost.map((line) => droppedLine(line, 'parquet', at)), ...newLines(series, lines)],
    days: month.days.length,
    bars: sum('rows'),
    short: sum('short'),
    bytes,
  };
}

interface OtherDays {
  /** The source no longer has their rows, so those of the existing file stay. */
  readonly kept: readonly ObjectLine[];
  /** They are lost with a missing or damaged file. */
  readonly lost: readonly ObjectLine[];
}

/** The lines of the existing file whose days are not made. A file that is not the one of its manifest goes to the quarantine. */
async function otherDays(
  { paths, signal }: MonthTools,
  { held, nowMs }: BarTarget,
  { file, days }: BarMonth,
  target: string,
): Promise<OtherDays> {
  const made = new Set(days.map(dayText));
  const others = held.inFile(file).filter(({ period }) => !made.has(period));
  const size = await fileSize(target);
  if (size === undefined) return { kept: [], lost: others };
  const committed = held.lastOfFile(file);
  await bringIn(target);
  if (size === committed?.fileBytes && (await fileFacts(target, 0, signal)).sha256 === committed.fileSha256)
    return { kept: others, lost: [] };
  await moveToQuarantine(paths, target, 'damaged: cryptodl bars makes this file again', nowMs);
  return { kept: [], lost: others };
}

/** The new bars and the rows that stay. Bars by trades may have equal times, so `seq` has their order. */
function rowsOf(
  written: { readonly spec: DatasetSpec; readonly settings: Settings },
  target: string,
  kept: readonly ObjectLine[],
): string {
  const days = kept.flatMap(({ period }) => parseDay(period) ?? []);
  const day = `(epoch_us(open_time) - ${written.spec.dayStartMs * 1000}) // ${DAY_MS * 1000}`;
  const stored = `SELECT *, row_number() OVER () AS seq FROM ${readStoredRows(written, target)}`;
  const stay =
    days.length === 0
      ? ''
      : `UNION ALL BY NAME SELECT * FROM (${stored}) WHERE ${day} IN (${days.join(', ')})`;
  return `(SELECT * FROM (SELECT * EXCLUDE (day, is_short) FROM made ${stay}) ORDER BY open_time, seq)`;
}

/** The fields of a line about the bars of its day. */
function rowsOfDay(row: Row | undefined): Pick<ObjectLine, 'rows' | 'first' | 'last'> {
  if (row === undefined) return { rows: 0 };
  return { rows: Number(row['rows']), first: isoInstant(row, 'first'), last: isoInstant(row, 'last') };
}

/** The fields of a line that are known before the file is written. */
function lineOf({ series }: BarTarget, { source }: Recipe, { from, sha256 }: BarMonth, day: number) {
  return {
    v: 1,
    kind: 'object',
    key: madeKey(series, dayPeriod(day)),
    cadence: 'daily',
    period: dayText(day),
    bytes: from.reduce((sum, { bytes }) => sum + bytes, 0),
    sha256,
    verified: 'lake',
    source: sourceName(source.series),
    settings: source.settings,
    tool: TOOL_VERSION,
  } as const;
}

/** The lines that differ from the held ones, and the last one: the last line of a file has the digest of its month. */
function newLines({ held }: BarTarget, lines: readonly ObjectLine[]): ObjectLine[] {
  return lines.filter((line, at) => {
    const before = held.ofDay(parseDay(line.period) ?? 0);
    return at === lines.length - 1 || before?.file !== line.file || contentOf(line) !== contentOf(before);
  });
}

/** The fields of a line that tell of the bars of its day. */
function contentOf({ rows, first, last, source, settings }: ObjectLine): string {
  return JSON.stringify([rows, first, last, source, settings]);
}

function metadataOf(
  { venue }: MonthTools,
  { series, spec }: BarTarget,
  recipe: Recipe,
  { label, from }: BarMonth,
): FileMetadata {
  const files = from.map(({ path, sha256 }) => [basename(path), sha256]);
  return fileMetadata(
    { venue, tool: TOOL_VERSION, series, spec, settings: recipe.source.settings, label },
    {
      entry: { made: { rule: ruleText(recipe), files } },
      isFromArchive: true,
      isFromRest: from.some(({ hasRest }) => hasRest),
    },
  );
}
