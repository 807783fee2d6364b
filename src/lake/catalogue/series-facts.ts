/** The facts about a series that explain its absent days. */
import { isFromRest } from '../../model/manifest-line.js';
import type { HeldSpan } from '../held-objects.js';
import type { Absences } from '../absences.js';
import { dayOf, monthOf, monthStart, type DayStart } from '../../model/calendar.js';
import { endOfDataset } from '../../exchange/describe.js';
import { cadencesOf } from '../../exchange/keys.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import type { SeriesFacts } from './absent-days.js';
import { at, type DayRange, type Spans } from './spans.js';

/** What explains the days of a series besides its manifest. */
export interface FactTerms {
  /** Undefined for a dataset that this version does not know. */
  readonly spec: DatasetSpec | undefined;
  readonly today: number;
  readonly interval?: string | undefined;
  readonly asksRest?: boolean;
}

/**
 * The days from the first to the last one that the lake holds, has lost, or failed to fetch; for a series without such days, those with
 * recorded absences; without any, `[Infinity, -Infinity)`. `repair` fetches what is missing of them.
 */
export function ownDays(heldDays: Spans, absences: Absences, others: readonly DayRange[]): DayRange {
  const held =
    heldDays.length === 0 ? [] : [{ from: at(heldDays, 0), to: at(heldDays, heldDays.length - 1) }];
  const own = [...held, ...absences.failed(), ...others];
  const days = own.length > 0 ? own : absences.periods();
  return {
    from: days.reduce((first, { from }) => Math.min(first, from), Infinity),
    to: days.reduce((last, { to }) => Math.max(last, to), -Infinity),
  };
}

/** The part of a range within the own days, for rows that the program makes: days for which it has made none lack nothing. */
export function clipRange({ from, to }: Partial<DayRange>, own: DayRange): DayRange {
  return {
    from: Math.min(Math.max(from ?? own.from, own.from), own.to),
    to: Math.max(Math.min(to ?? own.to, own.to), own.from),
  };
}

export function factsOf(
  { spec, today, interval, asksRest = false }: FactTerms,
  held: readonly HeldSpan[],
): Omit<SeriesFacts, 'absences'> {
  if (spec === undefined) return {};
  const firsts = spec.cadences.map((cadence) => spec.spans[cadence]?.first?.from ?? -Infinity);
  const cadences = cadencesOf(spec, interval, held.at(-1)?.facts.settings.cadence);
  const isInRest = asksRest || held.some(({ facts }) => isFromRest(facts));
  const endDay = isInRest
    ? undefined
    : (endOfDataset(spec, cadences) ?? (spec.removed ? held.at(-1)?.to : undefined));
  const isMonthlyOnly = !isInRest && spec.cadences.length > 0 && !spec.cadences.includes('daily');
  return {
    firstDay: firsts.length === 0 ? -Infinity : Math.min(...firsts),
    endDay,
    today,
    ...rowsOf(held, spec),
    isWholeInRest: hasWholeHistory(spec),
    hasRest: isInRest,
    asksRest,
    isOfRest: held[0] !== undefined && isFromRest(held[0].facts),
    currentMonth: isMonthlyOnly ? monthStart(monthOf(today)) : undefined,
  };
}

/** Only monthly objects limit `rows`: they may begin before the listing of their symbol, and end after the end of it. */
function rowsOf(held: readonly HeldSpan[], dayStart: DayStart): Partial<SeriesFacts> {
  const [first, last] = [held[0]?.facts, held.at(-1)?.facts];
  const day = (time: string): number => dayOf(Date.parse(time), dayStart);
  return {
    firstRowSeconds: Math.round((Date.parse(first?.first ?? '') - dayStart.dayStartMs) / 1000),
    rows: {
      firstDay: first?.cadence === 'monthly' && first.first !== undefined ? day(first.first) : -Infinity,
      endDay: last?.cadence === 'monthly' && last.last !== undefined ? day(last.last) + 1 : Infinity,
    },
  };
}

/** Whether REST has the rows of all times, as of bars and funding rates. An empty answer of it is evidence. */
const hasWholeHistory = ({ rest }: DatasetSpec): boolean =>
  rest !== undefined && !('joins' in rest) && rest.pager === 'start' && rest.reachHours === undefined;
