/** Finds the gaps of a series with their reasons, and counts expected and missing rows or days. */
import { monthOf, monthStart } from '../model/calendar.js';
import { isMissing } from './absent-days.js';
import type { Evidence, GapReason } from './absent-days.js';
import { isLongStretch } from './cut-days.js';
import { DAY_SECONDS } from './series-coverage.js';
import type { SeriesCoverage } from './series-coverage.js';
import { at, intersect, inWholeRows, NO_SPANS, overlap, subtract } from './spans.js';
import type { Spans } from './spans.js';

/** A time without data in a series. */
export interface Gap {
  /** `[from, to)` in seconds since the start of day 0 of the exchange. */
  readonly from: number;
  readonly to: number;
  readonly reason: GapReason;
  /** Number of rows, or of days where the expected number of rows is unknown. */
  readonly amount: number;
  /** False when no data is expected. */
  readonly isMissing: boolean;
  readonly evidence?: Evidence;
  /** The missing rows lie somewhere in this time; their exact times are unknown. */
  readonly isLoose?: true;
}

type Add = (from: number, to: number, reason: GapReason, of?: Pick<Gap, 'evidence'>) => void;

/** Gaps in order of time. Neighbouring gaps with the same reason are joined, except loose ones. `halts`: of config/halts.json, in seconds. */
export function gapsOf(coverage: SeriesCoverage, halts: Spans): Gap[] {
  const { absent, loose, rowSeconds = DAY_SECONDS } = coverage;
  const gaps: Gap[] = [];
  const add: Add = (from, to, reason, of = {}) => {
    if (!canMissRow(from, to, rowSeconds)) return;
    const amount = Math.max(1, Math.round((to - from) / rowSeconds));
    gaps.push({ from, to, reason, amount, isMissing: isMissing(reason), ...of });
  };
  for (const { from, to, reason, evidence } of absent) {
    const days = [from * DAY_SECONDS, to * DAY_SECONDS];
    // A halt explains a day that is not held only when the halt lasted the whole day.
    const halted = isMissing(reason) ? wholeDays(intersect(days, halts)) : NO_SPANS;
    eachSpan(halted, (start, end) => add(start, end, 'halt', { evidence: 'list' }));
    const proof = evidence === undefined ? {} : { evidence };
    eachSpan(subtract(days, halted), (start, end) => add(start, end, reason, proof));
  }
  addRows(coverage, halts, add);
  for (let i = 0; i < loose.length; i += 3)
    gaps.push({
      from: at(loose, i) * DAY_SECONDS,
      to: at(loose, i + 1) * DAY_SECONDS,
      reason: 'unexplained',
      amount: at(loose, i + 2),
      isMissing: true,
      isLoose: true,
    });
  gaps.push(...cutsOf(coverage, halts));
  return joined(gaps.sort((a, b) => a.from - b.from || a.to - b.to));
}

/** A cut day counts as one missing day, also when both of its ends are cut. */
function cutsOf({ cuts, gaps, dayStartSeconds }: SeriesCoverage, halts: Spans): Gap[] {
  const placed = cuts.map(({ day, from, to, ids }) => ({
    day,
    ids,
    from: from - dayStartSeconds * 1000,
    to: to - dayStartSeconds * 1000,
  }));
  const unexplained = placed.filter(({ from, to, ids }) => {
    // A halt does not explain missing ids.
    if (ids !== undefined) return true;
    const left = subtract([from / 1000, to / 1000], halts);
    return isLongStretch(totalOf(left) * 1000);
  });
  const isCounted = (day: number): boolean =>
    intersect([day * DAY_SECONDS, (day + 1) * DAY_SECONDS], gaps).length > 0;
  return unexplained.map(({ day, from, to }, index) => ({
    from: Math.floor(from / 1000),
    to: Math.ceil(to / 1000),
    reason: 'cut',
    amount: unexplained[index - 1]?.day === day || isCounted(day) ? 0 : 1,
    isMissing: true,
  }));
}

function totalOf(spans: Spans): number {
  let total = 0;
  eachSpan(spans, (from, to) => {
    total += to - from;
  });
  return total;
}

function addRows({ gaps, edges, notInRest, rowSeconds }: SeriesCoverage, halts: Spans, add: Add): void {
  if (gaps.length === 0) return;
  const outer = edges.flatMap(({ from, to }) => [from, to]);
  for (const { from, to, reason, ...proof } of edges) add(from, to, reason, proof);
  let inner: Spans = outer.length === 0 ? gaps : subtract(gaps, outer);
  // Without a fixed number of rows, gaps are days, and a halt of hours does not explain them.
  const listed = rowSeconds === undefined ? wholeDays(halts) : inWholeRows(halts, rowSeconds);
  const proofs = [
    ['list', listed],
    ['rest', notInRest],
  ] as const;
  for (const [evidence, halt] of proofs) {
    if (halt.length === 0) continue;
    eachSpan(intersect(inner, halt), (from, to) => add(from, to, 'halt', { evidence }));
    inner = subtract(inner, halt);
  }
  eachSpan(inner, (from, to) => add(from, to, 'unexplained'));
}

/** Whether a gap is long enough for a missing row: half the time between two rows, less a second for rounding. */
function canMissRow(from: number, to: number, rowSeconds: number): boolean {
  return to - from >= Math.max(1, rowSeconds / 2 - 1);
}

function eachSpan(spans: Spans, act: (from: number, to: number) => void): void {
  for (let i = 0; i < spans.length; i += 2) act(at(spans, i), at(spans, i + 1));
}

function wholeDays(spans: Spans): number[] {
  const days: number[] = [];
  eachSpan(spans, (from, to) => {
    const start = Math.ceil(from / DAY_SECONDS) * DAY_SECONDS;
    const end = Math.floor(to / DAY_SECONDS) * DAY_SECONDS;
    if (start < end) days.push(start, end);
  });
  return days;
}

function joined(gaps: readonly Gap[]): Gap[] {
  const all: Gap[] = [];
  for (const gap of gaps) {
    const last = all.at(-1);
    const isOne =
      last !== undefined &&
      last.to === gap.from &&
      last.reason === gap.reason &&
      last.evidence === gap.evidence &&
      last.isLoose === undefined &&
      gap.isLoose === undefined;
    if (isOne) all[all.length - 1] = { ...last, to: gap.to, amount: last.amount + gap.amount };
    else all.push(gap);
  }
  return all;
}

/** Expected and missing rows (or days) of a series or a period. */
export interface Amounts {
  readonly expected: number;
  readonly missing: number;
}

/** The amounts of a whole series. `excused`: rows (or days) that are not expected, for a reason of a gap. */
export interface SeriesAmounts extends Amounts {
  readonly excused: number;
}

/** Held share in percent; undefined when nothing is expected. */
export function percentOf({ expected, missing }: Amounts): number | undefined {
  return expected === 0 ? undefined : (100 * (expected - missing)) / expected;
}

/** Expected and missing rows (or days) of the whole range. */
export function amountsOf(coverage: SeriesCoverage, gaps: readonly Gap[]): SeriesAmounts {
  const { from, to, rowSeconds = DAY_SECONDS } = coverage;
  let missing = 0;
  let excused = 0;
  for (const gap of gaps) {
    if (gap.isMissing) missing += gap.amount;
    else excused += gap.amount;
  }
  const expected = Math.max(0, ((to - from) * DAY_SECONDS) / rowSeconds - excused);
  return { expected, missing: Math.min(missing, expected), excused };
}

/** The length of the periods of the heat-map, `--json` and `--csv`, see `--by`. */
export type CoveragePeriod = 'day' | 'month';

/** The amounts of each period, from the period of the first day on. */
export function periodsOf(coverage: SeriesCoverage, gaps: readonly Gap[], by: CoveragePeriod): Amounts[] {
  const { from, to, rowSeconds = DAY_SECONDS } = coverage;
  if (from >= to) return [];
  const periods: { start: number; end: number; expected: number; missing: number }[] = [];
  for (let start = from; start < to;) {
    const end = by === 'day' ? start + 1 : Math.min(to, monthStart(monthOf(start) + 1));
    const expected = ((end - start) * DAY_SECONDS) / rowSeconds;
    periods.push({ start: start * DAY_SECONDS, end: end * DAY_SECONDS, expected, missing: 0 });
    start = end;
  }
  let first = 0;
  for (const gap of gaps) {
    while ((periods[first]?.end ?? Infinity) <= gap.from) first += 1;
    for (let i = first; i < periods.length; i += 1) {
      const period = periods[i];
      if (period === undefined || period.start >= gap.to) break;
      const share = overlap(gap.from, gap.to, period.start, period.end) / (gap.to - gap.from);
      const amount = gap.amount * share;
      if (gap.isMissing) period.missing += amount;
      else period.expected -= amount;
    }
  }
  return periods.map(({ expected, missing }) => ({
    expected: Math.max(0, Math.round(expected)),
    missing: Math.min(Math.round(missing), Math.max(0, Math.round(expected))),
  }));
}
