/** Makes the months of a series of bars that are not up to date. */
import type { Series } from '../../model/task.js';
import type { LakeParts, Session } from '../../run/session/session.js';
import { listText } from '../../model/units.js';
import { join } from 'node:path';
import { unreadableFile } from '../../lake/catalogue/file-digests.js';
import { backingOf } from '../../files/backing.js';
import { seriesFolder } from '../../lake/layout.js';
import { fileSize } from '../../files/publish.js';
import { dayText, monthOf } from '../../model/calendar.js';
import type { BarRule } from './bar-rule.js';
import { missingDays, sourceName } from './source.js';
import { planMonths, type BarMonth } from './bar-months.js';
import { makeBars, type BarTools } from './make-bars.js';
import { lostDays, type BarTarget } from './month-lines.js';
import { writeMonth } from './write-month.js';
import { NOTHING, addAmounts, type BuiltSeries } from './built-series.js';

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
  const nothing = { ...series, ...NOTHING, missingDays: missing.length, source: name, months: [] };
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
  const sums = { ...NOTHING };
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
