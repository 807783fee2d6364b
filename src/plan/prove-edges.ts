/** Proves where a symbol begins or ends within the first or the last held object of a series: no rows are expected before or after. */
import type { EmptyStretch } from '../catalogue/cut-days.js';
import { heldCuts } from '../catalogue/day-states.js';
import type { Manifests } from '../lake/manifests.js';
import type { HeldObjects, HeldSpan } from '../lake/held-objects.js';
import { seriesFolder } from '../lake/layout.js';
import { checkedFolder } from '../lake/path-checks.js';
import { dayOf, dayPeriod, monthPeriod, monthOf } from '../model/calendar.js';
import { FORMATS } from '../model/task.js';
import type { Format, Period, Series } from '../model/task.js';
import type { Source } from '../source/source.js';
import { findDataset, rowSeconds } from '../source/venue.js';
import { isCheckDay } from './choose-objects.js';
import type { SymbolLife } from './symbol-life.js';

/** The end of a symbol is proven weeks after it. */
const RECENT_DAYS = 60;

/** A series of a run: the run fetches objects of it, or `mayLackEdges` is true for it. `isChanged`: the run fetches objects. */
export interface PlannedSeries {
  readonly series: Series;
  readonly format: Format;
  readonly isChanged: boolean;
}

type Cuts = readonly EmptyStretch[];

/** Whether evidence may be asked for although a run fetches nothing. So that most series are not read again after the run, the plan asks this. */
export function mayLackEdges(held: HeldObjects, cuts: Cuts, today: number): boolean {
  const spans = held.spans();
  const isAsked = (span: HeldSpan | undefined): boolean => span !== undefined && isRecentOrDue(span, today);
  return spans.some(
    (span, at) =>
      (lacksHead(span, cuts) || lacksTail(span, cuts)) && (isAsked(span) || isAsked(spans[at + 1])),
  );
}

function isRecentOrDue({ from, to }: HeldSpan, today: number): boolean {
  return today - to < RECENT_DAYS || isCheckDay(from, today);
}

function lacksHead(span: HeldSpan, cuts: Cuts): boolean {
  return hasGapAtStart(span) || cuts.some(({ day, at }) => day === span.from && at === 'begin');
}

function lacksTail(span: HeldSpan, cuts: Cuts): boolean {
  return hasGapAtEnd(span) || cuts.some(({ day, at }) => day === span.to - 1 && at === 'end');
}

export interface EdgeContext {
  readonly venue: Source;
  readonly root: string;
  readonly manifests: Pick<Manifests, 'of'>;
  readonly today: number;
  readonly life: Pick<SymbolLife, 'firstDay' | 'end' | 'pauses' | 'intervalsOf'>;
  /**
   * The day before the first one of a symbol, the day after its last one, or the last day of a pause, with its first. `hole`: a held first or last
   * day, of which other intervals have more.
   */
  readonly note: (
    series: Series,
    day: Period,
    reason: 'not-listed-yet' | 'delisted' | 'not-traded' | 'hole',
    found?: { readonly since?: number; readonly isKept?: true },
  ) => void;
}

/** Asks for evidence only where the outer object of a series lacks rows at its outer end, and only if it is new or due for a check. */
export async function proveEdges(context: EdgeContext, planned: readonly PlannedSeries[]): Promise<void> {
  const { venue, root, manifests } = context;
  for (const { series, format, isChanged } of planned) {
    const manifest = await manifests.of(await checkedFolder(root, seriesFolder(venue.name, series)));
    const { absences, [format]: held } = manifest;
    const spans = held.spans();
    const spec = findDataset(venue, series.market, series.dataset);
    const cuts = heldCuts({ held, absences }, { spec, today: context.today });
    const isAsked = (span: HeldSpan): boolean => isChanged || isRecentOrDue(span, context.today);
    const [first, last] = [spans[0], spans.at(-1)];
    const isKnown = (day: number, reason: string): boolean =>
      [dayPeriod(day), monthPeriod(monthOf(day))].some((period) => absences.of(period)?.reason === reason);
    if (first !== undefined && lacksHead(first, cuts) && isAsked(first)) {
      const row = rowDay(context, first.facts.first);
      const start = Math.min((await context.life.firstDay(series)) ?? -Infinity, row);
      if (start >= first.from && !isKnown(start - 1, 'not-listed-yet'))
        context.note(series, dayPeriod(start - 1), 'not-listed-yet');
      if (start === row && (await hasBarAt(context, series, 'before', first)))
        context.note(series, dayPeriod(row), 'hole', { isKept: true });
    }
    for (const [index, next] of spans.entries()) {
      const before = spans[index - 1];
      const isShort = (before !== undefined && lacksTail(before, cuts)) || lacksHead(next, cuts);
      if (!isShort || !isAsked(next)) continue;
      // The lake may lack the days before a pause.
      const from =
        before === undefined
          ? Math.max(next.from - RECENT_DAYS, (await context.life.firstDay(series)) ?? Infinity)
          : rowDay(context, before.facts.last) + 1;
      const to = rowDay(context, next.facts.first);
      if (!(to > from) || isKnown(from, 'not-traded')) continue;
      for (const pause of await context.life.pauses(series, 'daily', from, to))
        context.note(series, dayPeriod(pause.to - 1), 'not-traded', { since: pause.from });
    }
    if (last !== undefined && lacksTail(last, cuts) && isAsked(last)) {
      const end = await context.life.end(series, 'daily', rowDay(context, last.facts.last) + 1);
      if (end !== undefined && end <= last.to && !isKnown(end, 'delisted'))
        context.note(series, dayPeriod(end), 'delisted');
      const row = rowDay(context, last.facts.last);
      if (end === row + 1 && (await hasBarAt(context, series, 'after', last)))
        context.note(series, dayPeriod(row), 'hole', { isKept: true });
    }
  }
}

/** Whether the lake has bars of another interval that end before the first bar of an object, or that begin after the end of its last one, on the same day. */
async function hasBarAt(
  { venue, root, manifests, life }: EdgeContext,
  series: Series,
  side: 'before' | 'after',
  { facts }: HeldSpan,
): Promise<boolean> {
  const spec = findDataset(venue, series.market, series.dataset);
  const msOf = (one: Series): number => 1000 * ((spec && rowSeconds(spec, one.interval)) ?? Infinity);
  const { first: start = '', last: end = '' } = facts;
  const [from, to] = [Date.parse(start), Date.parse(end) + msOf(series)];
  for (const other of await life.intervalsOf(series)) {
    const manifest = await manifests.of(await checkedFolder(root, seriesFolder(venue.name, other)));
    for (const { facts: bars } of FORMATS.flatMap((format) => manifest[format].spans())) {
      const { first = '', last = '' } = bars;
      const isBefore =
        side === 'before' && isSameDay(first, start) && Date.parse(first) + msOf(other) <= from;
      if (isBefore || (side === 'after' && isSameDay(last, end) && Date.parse(last) >= to)) return true;
    }
  }
  return false;
}

function isSameDay(one: string, other: string): boolean {
  return one.slice(0, 'YYYY-MM-DD'.length) === other.slice(0, 'YYYY-MM-DD'.length);
}

function rowDay({ venue }: EdgeContext, time = ''): number {
  return dayOf(Date.parse(time), venue);
}

function hasGapAtStart({ facts: { gaps, first } }: HeldSpan): boolean {
  const head = gaps?.[0]?.[0];
  return head !== undefined && first !== undefined && Date.parse(head) < Date.parse(first);
}

function hasGapAtEnd({ facts: { gaps, last, open } }: HeldSpan): boolean {
  const tail = gaps?.at(-1)?.[0];
  return open !== true && tail !== undefined && last !== undefined && Date.parse(tail) > Date.parse(last);
}
