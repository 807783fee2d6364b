/** Plans the bars of one symbol: the source, and the months to make. Writes nothing. */
import type { HeldObjects } from '../lake/held-objects.js';
import { differingSettings } from '../lake/settings.js';
import { dayText } from '../model/calendar.js';
import { seriesName } from '../model/task.js';
import type { Settings } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { shownPath } from '../text/printable.js';
import type { BarRule } from './bar-rule.js';
import { chooseSource } from './choose-source.js';
import type { Chosen } from './choose-source.js';
import { planMonths } from './plan-months.js';
import type { BarMonth } from './plan-months.js';
import { chosenRange } from './select-symbols.js';
import type { SymbolSeries } from './select-symbols.js';
import { missingDays, readSourceDays, settingsOfBars, sourceName } from './source-days.js';
import type { SourceDays } from './source-days.js';

/** Months to make. */
interface PlannedWork {
  readonly outcome: 'made';
  readonly chosen: Chosen;
  readonly months: readonly BarMonth[];
  readonly settings: Settings;
}

/** Nothing to make. */
interface NoWork {
  /** `empty`: the source has no rows in the range, or less than one bar. */
  readonly outcome: 'skipped' | 'empty' | 'failed';
  readonly text?: string;
}

export type SeriesPlan = (PlannedWork | NoWork) & {
  /** `klines 1m` */
  readonly source?: string;
  /** Days of the range between the first and the last day of the source that the source does not have. */
  readonly missingDays: number;
};

export interface PlanContext {
  readonly rule: BarRule;
  readonly request: VerbRequest;
  readonly root: string;
  /** The bars of the lake, and their folder. */
  readonly held: HeldObjects;
  readonly folder: string;
}

/** Rejects for a damaged manifest. */
export async function planSeries(
  { rule, request, root, held, folder }: PlanContext,
  { sources }: Pick<SymbolSeries, 'sources'>,
): Promise<SeriesPlan> {
  const { options } = request.resolved;
  const usable: SourceDays[] = [];
  for (const series of sources) {
    const days = await readSourceDays(root, request.source, series);
    if (days !== undefined) usable.push(days);
  }
  const chosen = chooseSource(rule, options.fillEmpty, usable, held);
  if (chosen === undefined)
    return {
      outcome: 'failed',
      text: `${sources.map(seriesName).join(', ')}: no files`,
      missingDays: 0,
    };
  const { source } = chosen.recipe;
  const inRange = chosenRange(request);
  const named = {
    source: sourceName(source.series),
    missingDays: missingDays(source).filter(inRange).length,
  };
  if (source.fault !== undefined)
    return { ...named, outcome: 'failed', text: `${named.source}: ${source.fault}` };
  // Bars of one series have one source, so days of another source are made again, also those that an interrupted run has left.
  const isOfOther = (day: number): boolean => (held.ofDay(day)?.source ?? named.source) !== named.source;
  const isChosen = (day: number): boolean => inRange(day) || isOfOther(day);
  const months = await planMonths(chosen.days, held, folder, { isForced: options.force, isChosen });
  if (months.length === 0) return { ...named, ...withoutWork(rule, chosen, held, isChosen) };
  const settings = settingsOfBars(source);
  const [different] = differingSettings(held.settings(), settings);
  // Other days of a month keep their rows, which have the settings of before.
  const isMade = new Set(months.flatMap(({ changed }) => changed.map(({ day }) => dayText(day))));
  if (different !== undefined && held.lines().some(({ period }) => !isMade.has(period)))
    return {
      ...named,
      outcome: 'failed',
      text: `its bars have ${different.name} ${different.held}, its source has ${different.requested}, and some days of the bars have no source or are outside of the range: move ${shownPath(folder)} away`,
    };
  return { ...named, outcome: 'made', chosen, months, settings };
}

function withoutWork(
  { interval }: BarRule,
  { days, recipe: { source } }: Chosen,
  held: HeldObjects,
  isChosen: (day: number) => boolean,
): NoWork {
  const span = `${dayText(source.from)} … ${dayText(source.to - 1)}`;
  if (![...source.byDay.keys()].some(isChosen))
    return {
      outcome: 'empty',
      text: `the lake has no ${sourceName(source.series)} in this range; it has ${span}`,
    };
  if (days.length > 0 || held.size > 0) return { outcome: 'skipped' };
  return { outcome: 'empty', text: `no bar of ${interval} lies within ${span}, the days of the source` };
}
