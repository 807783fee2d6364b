/** The parts of the gaps of held objects that lie before the start, after the end or in a pause of a series. */
import type { Absences } from '../absences.js';
import { dayPeriod } from '../../model/calendar.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { reasons, type GapReason, type SeriesFacts } from './absent-days.js';
import { DAY_SECONDS } from '../../model/units.js';
import { type Gap } from './gap.js';
import { at, eachSpan, union, type Spans } from './spans.js';
import type { BarOpenings } from './bar-openings.js';

/** What is asked of the part of a series that the range selects. */
export interface Part {
  readonly from: number;
  readonly to: number;
  readonly rowSeconds: number | undefined;
  readonly dayStartSeconds: number;
  readonly halts: Spans;
  readonly rate: DatasetSpec['rate'];
  readonly heldDays: Spans;
  readonly known: SeriesFacts;
  readonly bars: BarOpenings;
}

export const hasEnded = (after: GapReason): boolean => after === 'delisted' || after === 'dataset-ended';

export type Edge = Pick<Gap, 'fromSeconds' | 'toSeconds' | 'reason' | 'evidence'>;

/** Parts of gaps within held days that lie before the listing or after the end of the series: the first and the last day may be cut at any time. */
export function edgesOf({ heldDays, known, to: heldTo, bars }: Part, gaps: Spans): Edge[] {
  const reasonOf = reasons(heldDays, known);
  let start = at(heldDays, 0);
  let end = at(heldDays, heldDays.length - 1);
  const edges: Edge[] = [];
  const first = { fromSeconds: at(gaps, 0), toSeconds: at(gaps, 1), ...reasonOf(start - 1) };
  if (first.toSeconds <= (known.firstRowSeconds ?? NaN) && isBeforeStart(first.reason)) {
    while (start * DAY_SECONDS < first.toSeconds && isBeforeStart(reasonOf(start).reason)) start += 1;
    const day = isContradicted(known.absences, start) ? start : bars.firstOf(start);
    const toSeconds = Math.max(first.fromSeconds, Math.min(first.toSeconds, day * DAY_SECONDS));
    edges.push({ ...first, toSeconds });
  }
  const index = gaps.length - 2;
  const last = { fromSeconds: at(gaps, index), toSeconds: at(gaps, index + 1), ...reasonOf(end) };
  const isLate = last.toSeconds >= Math.min(end, heldTo) * DAY_SECONDS && edges.length * 2 < gaps.length;
  if (isLate && hasEnded(last.reason)) {
    while ((end - 1) * DAY_SECONDS > last.fromSeconds && hasEnded(reasonOf(end - 1).reason)) end -= 1;
    const day = isContradicted(known.absences, end - 1) ? end : end - 1;
    edges.push({ ...last, fromSeconds: Math.max(last.fromSeconds, day * DAY_SECONDS) });
  }
  return edges;
}

/** Whether the lake has other bars of the hours that this first or last day lacks. REST may have answered since that it has none. */
function isContradicted(absences: Absences, day: number): boolean {
  const absence = absences.of(dayPeriod(day));
  return absence?.reason === 'hole' && absence.rest === undefined;
}

/** The parts of gaps that lie in a proven pause of trading, with the days on which it begins and ends. */
export function pausesOf({ known: { absences }, bars }: Part, gaps: Spans): Edge[] {
  const periods = absences.periods().filter((period) => absences.of(period)?.reason === 'not-traded');
  const edges: Edge[] = [];
  eachSpan(union(periods.flatMap(({ from, to }) => [from, to])), (first, end) => {
    const to = bars.firstOf(end) * DAY_SECONDS;
    eachSpan(gaps, (start, until) => {
      if (start <= Math.min(end * DAY_SECONDS, to) && first * DAY_SECONDS <= until)
        edges.push({
          fromSeconds: Math.max(start, (first - 1) * DAY_SECONDS),
          toSeconds: Math.min(until, to),
          reason: 'not-traded',
          evidence: 'archive',
        });
    });
  });
  return edges;
}

export const isBeforeStart = (reason: GapReason): boolean =>
  reason === 'not-listed-yet' || reason === 'before-history';
