/** Makes the file of one month of bars: new bars of changed days, and the rows of the existing file for the others. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileMetadata } from '../convert/conversion.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { isoInstant } from '../convert/gaps.js';
import { countParquetRows, FOOTER_BYTES } from '../convert/parquet-rows.js';
import { copyTo, readStoredRows } from '../convert/statements.js';
import { bringIn } from '../lake/backing.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { stagingFolder } from '../lake/layout.js';
import type { LakePaths } from '../lake/layout.js';
import type { DroppedLine, ManifestLine, ObjectLine } from '../lake/manifest-line.js';
import { fileFacts, fileSize } from '../lake/publish.js';
import type { FileFacts } from '../lake/publish.js';
import { moveToQuarantine } from '../lake/quarantine.js';
import { DAY_MS, dayPeriod, dayText, parseDay } from '../model/calendar.js';
import type { Series, Settings } from '../model/task.js';
import { TOOL_VERSION } from '../model/version.js';
import type { FileDigests } from '../catalogue/file-digests.js';
import { describeColumns } from '../source/describe.js';
import { madeKey } from '../source/keys.js';
import type { DatasetSpec, Venue } from '../source/venue.js';
import { readFooter } from '../write/footer.js';
import { ruleText } from './day-rules.js';
import type { BarDay, Recipe } from './day-rules.js';
import { makeBars } from './make-bars.js';
import type { BarMonth } from './plan-months.js';
import { sourceName } from './source-days.js';

/** The series of bars, and where its months are made. */
export interface MonthContext {
  readonly venue: Venue;
  readonly paths: LakePaths;
  /** Of the series, absolute. */
  readonly folder: string;
  readonly series: Series;
  readonly spec: DatasetSpec;
  readonly settings: Settings;
  readonly held: HeldObjects;
  readonly session: DuckDbSession;
  readonly digests: FileDigests;
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

export interface MadeMonth {
  readonly label: string;
  readonly staged: string;
  readonly target: string;
  readonly lines: readonly ManifestLine[];
  /** Days with new lines. */
  readonly days: number;
  /** New bars; and bars that lack rows of the source, together with those that are absent because it has none of their rows. */
  readonly bars: number;
  readonly short: number;
  readonly bytes: number;
}

/** Undefined for a month without bars. Rejects with `disk` if the staged file is not read back as it was written. */
export async function makeMonth(
  context: MonthContext,
  recipe: Recipe,
  month: BarMonth,
): Promise<MadeMonth | undefined> {
  const target = join(context.folder, month.file);
  const existing = await readExisting(context, month, target);
  const { session, spec, settings } = context;
  const staged = join(await stagingFolder(context.paths), `${randomUUID()}.partial`);
  const absent = await makeBars(context, context.venue, recipe, existing.changed);
  const changed = new Set(existing.changed.map(({ day }) => day));
  const metadata = metadataOf(context, recipe, month, existing);
  try {
    await session.run(
      copyTo({ spec, settings, targetPath: staged }, rowsIn(context, target, existing), metadata),
    );
    const { facts, rows } = await readBack(staged);
    if (rows === 0) {
      await rm(staged, { force: true });
      return undefined;
    }
    const byDay = await rowsByDay(context, staged);
    const [counts] = await session.rows('SELECT count(*) AS bars, count_if(is_short) AS short FROM made');
    const lines = existing.changed.map((day) =>
      lineOf(context, recipe, day, { file: month.file, facts, rows, own: byDay.get(day.day) }),
    );
    const dropped = existing.lost.map((line) => droppedLine(line, context.nowMs));
    const [bars, short] = [Number(counts?.['bars']), Number(counts?.['short']) + absent];
    return {
      label: month.label,
      staged,
      target,
      lines: [...dropped, ...lines],
      days: changed.size,
      bars,
      short,
      bytes: facts.bytes,
    };
  } catch (error) {
    await rm(staged, { force: true });
    throw error;
  }
}

/** What the footer says about the origin of a day. Only its period is checked. */
interface Origin {
  readonly period: string;
}

interface Existing {
  /** The days to make. */
  readonly changed: readonly BarDay[];
  /** The lines of the file whose rows stay. */
  readonly kept: readonly ObjectLine[];
  /** The objects of kept days, by period, as the footer of the file states them. */
  readonly origins: ReadonlyMap<string, Origin>;
  /** Lines of days that are lost with a damaged file, and that have no source. */
  readonly lost: readonly ObjectLine[];
}

/** Moves a file that is not the one of its manifest to the quarantine. Then all days of the file are made again. */
async function readExisting(context: MonthContext, month: BarMonth, target: string): Promise<Existing> {
  const { held, paths, nowMs, session } = context;
  const changed = new Set(month.changed.map(({ day }) => dayText(day)));
  const inFile = held.inFile(month.file);
  const kept = inFile.filter(({ period }) => !changed.has(period));
  const committed = held.lastOfFile(month.file);
  const none = { kept: [], origins: new Map<string, Origin>(), lost: [] };
  const size = await fileSize(target);
  const isThere = size !== undefined;
  if (isThere) await bringIn(target);
  const isSound =
    size !== undefined &&
    size === committed?.fileBytes &&
    (await fileFacts(target, 0, context.signal)).sha256 === committed.fileSha256;
  if (isSound) {
    if (kept.length === 0) return { ...none, changed: month.changed };
    return { changed: month.changed, kept, origins: await originsIn(session, target), lost: [] };
  }
  if (isThere) await moveToQuarantine(paths, target, 'damaged: cryptodl bars makes this file again', nowMs);
  const all = new Set(month.all.map(({ day }) => dayText(day)));
  const again = new Set([...changed, ...kept.map(({ period }) => period)]);
  return {
    ...none,
    changed: month.all.filter(({ day }) => again.has(dayText(day))),
    lost: kept.filter(({ period }) => !all.has(period)),
  };
}

/** The entries of `made` in the footer of a file of bars. Empty for a file without them. */
async function originsIn(session: DuckDbSession, path: string): Promise<Map<string, Origin>> {
  const { provenance } = await readFooter(session, path);
  const made = provenance?.content['made'];
  const entries: readonly unknown[] = Array.isArray(made) ? made : [];
  return new Map(
    entries.flatMap((entry): [string, Origin][] => {
      const period = (entry as { readonly period?: unknown } | null)?.period;
      return typeof period === 'string' ? [[period, entry as Origin]] : [];
    }),
  );
}

/** New bars and kept rows in order. Bars by trades may have equal times, so their order decides then. */
function rowsIn({ spec, settings }: MonthContext, target: string, { kept }: Existing): string {
  const names = spec.columns.map(({ name }) => `"${name}"`).join(', ');
  const parts = [`SELECT ${names}, seq FROM made`];
  const days = kept.flatMap(({ period }) => parseDay(period) ?? []);
  if (days.length > 0)
    parts.push(
      `SELECT ${names}, seq FROM (SELECT *, row_number() OVER () AS seq FROM ${readStoredRows({ spec, settings }, target)})
       WHERE ${dayOfRow(spec)} IN (${days.join(', ')})`,
    );
  return `(SELECT * FROM (${parts.join(' UNION ALL ')}) ORDER BY open_time, seq)`;
}

function dayOfRow({ dayStartMs }: DatasetSpec): string {
  return `(epoch_us(open_time) - ${dayStartMs * 1000}) // ${DAY_MS * 1000}`;
}

async function readBack(staged: string): Promise<{ readonly facts: FileFacts; readonly rows: number }> {
  const facts = await fileFacts(staged, FOOTER_BYTES);
  return { facts, rows: await countParquetRows(staged, facts) };
}

interface DayRows {
  readonly rows: number;
  readonly first: string;
  readonly last: string;
}

async function rowsByDay(
  { session, spec, settings }: MonthContext,
  staged: string,
): Promise<Map<number, DayRows>> {
  const rows =
    await session.rows(`SELECT ${dayOfRow(spec)} AS day, count(*) AS rows, min(open_time) AS first, max(open_time) AS last
    FROM ${readStoredRows({ spec, settings }, staged)} GROUP BY day`);
  return new Map(
    rows.map((row) => [
      Number(row['day']),
      { rows: Number(row['rows']), first: isoInstant(row, 'first'), last: isoInstant(row, 'last') },
    ]),
  );
}

interface DayInFile {
  readonly file: string;
  readonly facts: FileFacts;
  /** Of the whole file. */
  readonly rows: number;
  readonly own: DayRows | undefined;
}

function lineOf(
  { series, settings, held, nowMs }: MonthContext,
  recipe: Recipe,
  { day, objects, sha256 }: BarDay,
  { file, facts, rows, own }: DayInFile,
): ObjectLine {
  const bytes = objects.reduce((sum, object) => sum + object.bytes, 0);
  const fileBefore = held.fileBefore(file);
  return {
    v: 1,
    kind: 'object',
    key: madeKey(series, dayPeriod(day)),
    cadence: 'daily',
    period: dayText(day),
    bytes,
    sha256,
    verified: 'lake',
    source: sourceName(recipe.source.series),
    settings,
    at: new Date(nowMs).toISOString(),
    tool: TOOL_VERSION,
    ...(own ?? { rows: 0 }),
    file,
    fileBytes: facts.bytes,
    fileSha256: facts.sha256,
    fileRows: rows,
    ...(fileBefore === undefined ? {} : { fileBefore }),
  };
}

function droppedLine({ key, settings }: ObjectLine, nowMs: number): DroppedLine {
  return { v: 1, kind: 'dropped', key, format: settings.format, at: new Date(nowMs).toISOString() };
}

/** Without time stamps, so that the same objects produce the same file. */
function metadataOf(
  { venue, series, spec, settings }: MonthContext,
  recipe: Recipe,
  month: BarMonth,
  { changed, kept, origins }: Existing,
): FileMetadata {
  const objects = [
    ...kept.map(({ key, sha256, bytes }) => ({ key, sha256, bytes })),
    ...changed.map(({ day, sha256, objects: from }) => ({
      key: madeKey(series, dayPeriod(day)),
      sha256,
      bytes: from.reduce((sum, { bytes }) => sum + bytes, 0),
    })),
  ];
  const made: { readonly period: string }[] = [
    ...kept.flatMap(({ period }) => origins.get(period) ?? []),
    ...changed.map(({ day, objects: from }) => ({
      period: dayText(day),
      rule: ruleText(recipe),
      objects: from.map(({ key, sha256 }) => [key, sha256]),
    })),
  ];
  const cryptodl = JSON.stringify({
    tool: `cryptodl ${TOOL_VERSION}`,
    venue: venue.name,
    ...series,
    settings,
    period: month.label,
    timeZone: 'UTC',
    columns: Object.fromEntries(
      describeColumns(spec).map(({ name, unit, doc }) => [name, unit === '' ? doc : `${doc}; ${unit}`]),
    ),
    objects: objects
      .map((object) => ({ ...object, verified: 'lake' }))
      .sort((a, b) => (a.key < b.key ? -1 : 1)),
    made: made.sort((a, b) => (a.period < b.period ? -1 : 1)),
  });
  return { cryptodl, ...termsOf(venue, changed) };
}

/** The terms of the source. */
function termsOf({ terms }: Venue, days: readonly BarDay[]): Pick<FileMetadata, 'license' | 'attribution'> {
  if (terms === undefined) return {};
  const isRest = days.some(({ objects }) => objects.some((object) => object.isFromRest));
  const sources = isRest ? [terms.archive, terms.rest] : [terms.archive];
  return {
    license: sources.map(({ license }) => license).join('; '),
    attribution: sources.map(({ attribution }) => attribution).join('; '),
  };
}
