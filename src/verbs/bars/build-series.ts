/** Makes the months of a series of bars that are not up to date: their files and their manifest lines. */
import type { Series } from '../../model/task.js';
import type { LakeParts, Session } from '../../run/session/session.js';
import { listText } from '../../model/units.js';
import { join, basename } from 'node:path';
import { unreadableFile } from '../../lake/catalogue/file-digests.js';
import { backingOf } from '../../files/backing.js';
import { seriesFolder, stagingFolder } from '../../lake/layout.js';
import { fileSize, fileFacts } from '../../files/file-facts.js';
import { dayText, monthOf, parseDay, dayPeriod } from '../../model/calendar.js';
import type { BarRule } from './bar-rule.js';
import { missingDays, sourceName } from './source.js';
import { planMonths, ruleText, type BarMonth, type Recipe } from './bar-months.js';
import { makeBars, type BarTools } from './make-bars.js';
import type { DuckDb, ResultRow } from '../../convert/duckdb.js';
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { readFooter } from '../../convert/parquet-footer.js';
import { copyTo } from '../../convert/statements.js';
import { moveToQuarantine } from '../../lake/quarantine.js';
import { TOOL_VERSION } from '../../model/version.js';
import { commitFiles } from '../../lake/commit-files.js';
import { fileMetadata } from '../../lake/write/make-file.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { isoInstant } from '../../convert/row-times.js';
import type { HeldObjects } from '../../lake/held-objects.js';
import type { ManifestLine, ObjectLine } from '../../model/manifest-line.js';
import { madeKey } from '../../exchange/keys.js';
import { droppedLine } from '../../lake/undone-commits.js';

export interface Build extends Pick<BarTools, 'catalogue'> {
  readonly rule: BarRule;
  readonly session: Session<'fill-empty' | 'force'>;
  /** Whether a month is in the range of the command. */
  readonly isChosen: (month: number) => boolean;
  /** Undefined with --dry-run. */
  readonly writing: { readonly tools: BarTools; readonly lake: Session & LakeParts } | undefined;
  readonly onMonth: () => void;
}

/** Makes the months that are not up to date. Rejects with errors of the disk, and when interrupted. */
export async function buildSeries(build: Build, target: BarTarget): Promise<BuiltSeries> {
  const { isChosen, rule, session, writing } = build;
  const { series, source } = target;
  const name = sourceName(source.series);
  const chosen = planMonths(target).filter(({ month }) => isChosen(month));
  const months = session.options.force ? chosen : await outdatedMonths(chosen, target);
  const missing = missingDays(source).filter((day) => isChosen(monthOf(day)));
  const nothing = { ...series, ...NOTHING_MADE, missingDays: missing.length, source: name, months: [] };
  // A month is made as a whole, and would lose days that the source no longer has.
  const lost = session.options.force ? [] : months.flatMap((month) => lostDays(target, month));
  if (lost.length > 0) {
    const days = listText(lost.map(({ period }) => period).sort());
    const text = `its bars have days that ${name} does not have: ${days}; --force makes their months again without them`;
    return { ...nothing, outcome: 'failed', text };
  }
  if (months.length > 0 && writing !== undefined)
    return { ...nothing, ...(await makeMonths(build, writing, target, months)), missingDays: missing.length };
  if (months.length > 0) {
    const days = months.reduce((sum, month) => sum + month.days.length, 0);
    return { ...nothing, outcome: 'made', days, months: months.map(({ label }) => label) };
  }
  if (chosen.length > 0) return { ...nothing, outcome: 'skipped' };
  const span = `${dayText(source.from)} … ${dayText(source.to - 1)}`;
  const text = `no bar of ${rule.interval} of the range lies within ${span}, the days of ${name}`;
  return { ...nothing, outcome: 'empty', text };
}

/** The months whose file is not there with its size, or was made from something else. */
async function outdatedMonths(chosen: readonly BarMonth[], { held, folder }: BarTarget): Promise<BarMonth[]> {
  const months: BarMonth[] = [];
  for (const month of chosen) {
    const last = held.inFile(month.file).length === 0 ? undefined : held.lastOfFile(month.file);
    if (last?.sha256 !== month.sha256 || (await fileSize(join(folder, month.file))) !== last.fileBytes)
      months.push(month);
  }
  return months;
}

/**
 * Each month is a commit of its own. Months before one whose rows cannot be read, or of whose rows no bars can be made, stay made. Rejects with
 * errors that do not concern the rows.
 */
async function makeMonths(
  { onMonth, session }: Build,
  { tools, lake }: NonNullable<Build['writing']>,
  target: BarTarget,
  months: readonly BarMonth[],
): Promise<Omit<BuiltSeries, keyof Series | 'source'>> {
  const { paths, stop, exchange } = session;
  const sums = { ...NOTHING_MADE };
  const made: string[] = [];
  const { series } = target.source;
  let unreadable: Error | undefined;
  for (const month of months) {
    stop.signal.throwIfAborted();
    try {
      await makeBars(tools, target, month);
    } catch (error) {
      unreadable = unreadableFile(error, paths.root);
      if (unreadable === undefined) throw error;
      break;
    }
    const figures = await writeMonth(tools.duckdb, lake, target, month);
    onMonth();
    if (figures === undefined) continue;
    made.push(month.label);
    addAmounts(sums, { days: month.days.length, ...figures });
  }
  await backingOf(target.folder)?.published(target.folder);
  const read = join(paths.root, seriesFolder(exchange.name, series));
  backingOf(read)?.release([read, target.folder]);
  const result = { ...sums, months: made };
  if (unreadable === undefined) return { ...result, outcome: made.length > 0 ? 'made' : 'skipped' };
  return { ...result, outcome: 'failed', text: `the rows of ${sourceName(series)}: ${unreadable.message}` };
}

/** Commits the bars of the table `made`. Undefined if it has none. Rejects with errors of the disk. */
async function writeMonth(
  duckdb: DuckDb,
  { clock, lock, manifests, paths, exchange }: Session & LakeParts,
  target: BarTarget,
  month: BarMonth,
): Promise<Pick<BarAmounts, 'bars' | 'short' | 'bytes'> | undefined> {
  const { folder, held, series, spec } = target;
  const { settings } = target.source;
  const byDay = await duckdb.rows(
    'SELECT day, count_if(is_made) AS rows, count_if(is_short) AS short, min(open_time) FILTER (is_made) AS first, max(open_time) FILTER (is_made) AS last FROM made GROUP BY day',
  );
  const sum = (name: string): number => byDay.reduce((total, row) => total + Number(row[name]), 0);
  if (sum('rows') === 0) return undefined;
  const staged = join(await stagingFolder(paths), `${randomUUID()}.partial`);
  try {
    const rows = '(SELECT * FROM made WHERE is_made ORDER BY open_time)';
    const files = month.from.map(({ path: from, sha256: digest }) => [basename(from), digest]);
    const metadata = fileMetadata(
      { exchange, tool: TOOL_VERSION, series, spec, settings, label: month.label },
      {
        entry: { made: { rule: ruleText(target), files } },
        hasArchive: true,
        hasRest: month.from.some(({ hasRest }) => hasRest),
      },
    );
    await duckdb.run(copyTo({ spec, settings, targetPath: staged }, rows, metadata));
    const { bytes, sha256 } = await fileFacts(staged);
    const { rows: fileRows } = await readFooter(staged);
    const path = join(folder, month.file);
    const nowMs = clock.now();
    if ((await fileSize(path)) !== held.fileBefore(month.file)?.bytes)
      await moveToQuarantine(paths, path, 'damaged: cryptodl bars makes this file again', nowMs);
    const ofFile = { at: new Date(nowMs).toISOString(), fileBytes: bytes, fileSha256: sha256, fileRows };
    const lines = monthLines(target, { month, byDay }, ofFile);
    await lock.confirm();
    // Checked again: a symbolic link may have replaced a folder since the rows were read.
    await paths.folder(seriesFolder(exchange.name, series));
    const publications = [{ staged, target: path }];
    await commitFiles({ paths, manifests }, { seriesFolder: folder, publications, dead: [], lines });
    return { bars: fileRows, short: sum('short'), bytes };
  } finally {
    await rm(staged, { force: true });
  }
}

/** What was made, of one symbol or of all. The figures of months are 0 with --dry-run. */
export interface BarAmounts {
  /** Days of the months that are made. */
  readonly days: number;
  /** Days between the first and the last day of the source, in months of the range, that the source does not have. They have no bars. */
  readonly missingDays: number;
  readonly bars: number;
  /** Bars that lack rows of the source, and absent ones of which it has no rows. */
  readonly short: number;
  readonly bytes: number;
}

export interface BuiltSeries extends Series, BarAmounts {
  /** `made`, with --dry-run what would be made; `skipped`: the bars are up to date; `empty`: the source has no whole bar in the range. */
  readonly outcome: 'made' | 'skipped' | 'empty' | 'failed';
  /** Why it failed, or why there is nothing to make. */
  readonly text?: string;
  /** `klines 1m` */
  readonly source?: string;
  readonly months: readonly string[];
}

export const NOTHING_MADE = { days: 0, bars: 0, short: 0, bytes: 0, missingDays: 0 };

export function addAmounts(sums: Record<keyof BarAmounts, number>, more: Partial<BarAmounts>): void {
  for (const name of Object.keys(NOTHING_MADE) as (keyof BarAmounts)[]) sums[name] += more[name] ?? 0;
}

export interface BarTarget extends Recipe {
  readonly series: Series;
  readonly spec: DatasetSpec;
  /** Absolute. */
  readonly folder: string;
  readonly held: HeldObjects;
}

/** The lines of the existing file whose days the month does not have: the source no longer has their rows. */
function lostDays({ held }: BarTarget, { file, days }: BarMonth): ObjectLine[] {
  const made = new Set(days.map(dayText));
  return held.inFile(file).filter(({ period }) => !made.has(period));
}

/** The lines that differ from the held ones, and the last one: the last line of a file has the digest of its month. */
function monthLines(
  target: BarTarget,
  { month, byDay }: { readonly month: BarMonth; readonly byDay: readonly ResultRow[] },
  { at, ...ofFile }: Pick<ObjectLine, 'at' | 'fileBytes' | 'fileSha256' | 'fileRows'>,
): ManifestLine[] {
  const { held, series, source } = target;
  const { days, file, from, sha256 } = month;
  const fileBefore = held.fileBefore(file);
  const lines = days.map((day): ObjectLine => {
    const row = byDay.find((each) => each['day'] === day && Number(each['rows']) > 0);
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
      rows: Number(row?.['rows'] ?? 0),
      ...(row === undefined ? {} : { first: isoInstant(row, 'first'), last: isoInstant(row, 'last') }),
      at,
      file,
      ...ofFile,
      ...(fileBefore === undefined ? {} : { fileBefore }),
    };
  });
  const isKnown = (line: ObjectLine): boolean => {
    const before = held.ofDay(parseDay(line.period) ?? 0);
    return before !== undefined && contentOf(line) === contentOf(before);
  };
  return [
    ...lostDays(target, month).map((line) => droppedLine(line, 'parquet', at)),
    ...lines.filter((line, index) => index === lines.length - 1 || !isKnown(line)),
  ];
}

const contentOf = ({ file, rows, first, last, source, settings }: ObjectLine): string =>
  JSON.stringify([file, rows, first, last, source, settings]);
