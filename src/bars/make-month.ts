/** Makes the file of one month of bars, and its manifest lines. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { FileMetadata } from '../convert/conversion.js';
import type { Row } from '../convert/duckdb.js';
import { isoInstant } from '../convert/gaps.js';
import { countParquetRows, FOOTER_BYTES } from '../convert/parquet-rows.js';
import { copyTo } from '../convert/statements.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { stagingFolder } from '../lake/layout.js';
import type { LakePaths } from '../lake/layout.js';
import type { ManifestLine, ObjectLine } from '../lake/manifest-line.js';
import { fileFacts, fileSize } from '../lake/publish.js';
import type { Publication } from '../lake/publish.js';
import { moveToQuarantine } from '../lake/quarantine.js';
import { dayPeriod, dayText, parseDay } from '../model/calendar.js';
import type { Series } from '../model/task.js';
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

export interface MadeMonth extends Publication, Pick<BarMonth, 'label' | 'days'> {
  readonly lines: readonly ManifestLine[];
  /** Bars; and those that lack rows of the source, together with those that are absent because it has none of their rows. */
  readonly bars: number;
  readonly short: number;
  readonly bytes: number;
}

/** Undefined for a month without bars. Rejects with `UnreadableSource`, and with `disk` for a staged file that is not Parquet. */
export async function makeMonth(
  tools: BarTools & { readonly paths: LakePaths },
  target: BarTarget,
  recipe: Recipe,
  month: BarMonth,
): Promise<MadeMonth | undefined> {
  const absent = await makeBars(tools, recipe, month);
  const staged = join(await stagingFolder(tools.paths), `${randomUUID()}.partial`);
  try {
    const made = await stageMonth(tools, target, recipe, { month, staged });
    if (made !== undefined) return { ...made, short: made.short + absent };
    await rm(staged, { force: true });
    return undefined;
  } catch (error) {
    await rm(staged, { force: true });
    throw error;
  }
}

/** Writes the bars of the table `made`. */
async function stageMonth(
  tools: BarTools & { readonly paths: LakePaths },
  target: BarTarget,
  recipe: Recipe,
  { month, staged }: { readonly month: BarMonth; readonly staged: string },
): Promise<MadeMonth | undefined> {
  const { engine, paths } = tools;
  const { folder, held, nowMs, spec } = target;
  const { days, file, label } = month;
  // Bars by trades may have equal times, so `seq` has their order.
  const rows = '(SELECT * FROM made ORDER BY open_time, seq)';
  const written = { spec, settings: recipe.source.settings, targetPath: staged };
  await engine.run(copyTo(written, rows, metadataOf(tools, target, recipe, month)));
  const { bytes, sha256, tail } = await fileFacts(staged, FOOTER_BYTES);
  const fileRows = await countParquetRows(staged, { bytes, tail });
  if (fileRows === 0) return undefined;
  const path = join(folder, file);
  const fileBefore = held.fileBefore(file);
  if ((await fileSize(path)) !== fileBefore?.bytes)
    await moveToQuarantine(paths, path, 'damaged: cryptodl bars makes this file again', nowMs);
  const byDay = await engine.rows(
    'SELECT day, count(*) AS rows, count_if(is_short) AS short, min(open_time) AS first, max(open_time) AS last FROM made GROUP BY day',
  );
  const at = new Date(nowMs).toISOString();
  const before = fileBefore === undefined ? {} : { fileBefore };
  const ofFile = { at, file, fileBytes: bytes, fileSha256: sha256, fileRows, ...before };
  const made = days.map((day) => ({
    ...lineOf(target, recipe, month, day),
    ...rowsOfDay(byDay.find((row) => row['day'] === day)),
    ...ofFile,
  }));
  const lost = lostDays(target, month).map((line) => droppedLine(line, 'parquet', at));
  const lines = [...lost, ...changedLines(target, made)];
  const short = byDay.reduce((sum, row) => sum + Number(row['short']), 0);
  return { label, days, staged, target: path, lines, bars: fileRows, short, bytes };
}

/** The lines of the existing file whose days the month does not have: the source no longer has their rows. */
export function lostDays({ held }: BarTarget, { file, days }: BarMonth): ObjectLine[] {
  const made = new Set(days.map(dayText));
  return held.inFile(file).filter(({ period }) => !made.has(period));
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
function changedLines({ held }: BarTarget, lines: readonly ObjectLine[]): ObjectLine[] {
  return lines.filter((line, at) => {
    const before = held.ofDay(parseDay(line.period) ?? 0);
    return at === lines.length - 1 || before === undefined || contentOf(line) !== contentOf(before);
  });
}

function contentOf({ file, rows, first, last, source, settings }: ObjectLine): string {
  return JSON.stringify([file, rows, first, last, source, settings]);
}

function metadataOf(
  { venue }: BarTools,
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
