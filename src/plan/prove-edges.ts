/** The ends of held objects that lack rows, and the proof that a symbol begins, ends or pauses there: no rows are expected then. */
import { heldCuts } from '../lake/catalogue/cut-days.js';
import { barOpenings } from '../lake/catalogue/bar-openings.js';
import type { HeldSpan, HeldObjects } from '../lake/held-objects.js';
import { seriesFolder } from '../lake/layout.js';
import { checkedFolder } from '../files/path-checks.js';
import { dayOf, dayPeriod, monthOf, monthPeriod } from '../model/calendar.js';
import { FORMATS, type Format, type Period, type Series } from '../model/task.js';
import { unlessListingFault } from '../exchange/listing.js';
import { findDataset, rowSeconds } from '../exchange/exchange-spec.js';
import type { PlanContext } from './series-request.js';
import { isCheckDay } from './ranges-to-plan.js';
import type { EmptyStretch } from '../lake/catalogue/empty-stretches.js';

/** A series of a run: the run fetches objects of it, or `mayLackEdges` is true for it. `isChanged`: the run fetches objects, or found a pause. */
export interface PlannedSeries {
  readonly series: Series;
  readonly format: Format;
  readonly isChanged: boolean;
}

export interface EdgeContext extends Pick<PlanContext, 'exchange' | 'root' | 'manifests' | 'today' | 'life'> {
  /**
   * The day before the first one of a symbol, the day after its last one, or the last day of a pause, with its first. `hole`: a held first or last
   * day, of which other intervals or REST have more.
   */
  readonly note: (
    series: Series,
    day: Period,
    reason: 'not-listed-yet' | 'delisted' | 'not-traded' | 'hole',
    found?: { readonly sinceDay?: number; readonly isKept?: true },
  ) => void;
}

/** Asks for evidence only where rows are missing at the ends of an object, and only if it is new or due for a check. */
export async function proveEdges(context: EdgeContext, planned: readonly PlannedSeries[]): Promise<void> {
  const { exchange, root, manifests, today, life, note } = context;
  for (const { series, format, isChanged } of planned) {
    const manifest = await manifests.of(await checkedFolder(root, seriesFolder(exchange.name, series)));
    const { absences, [format]: held } = manifest;
    const spec = findDataset(exchange, series.market, series.dataset);
    const cuts = heldCuts({ held, absences }, { spec, today });
    const bars = barOpenings(held.spans(), series.interval, exchange);
    const isKnown = (day: number, reason: string): boolean =>
      [dayPeriod(day), monthPeriod(monthOf(day))].some((period) => absences.of(period)?.reason === reason);
    for (const { before, next, asked } of lackingSeams(held.spans(), cuts)) {
      if (!isChanged && !isRecentOrDue(asked, today)) continue;
      const first = before === undefined ? await unlessListingFault(life.firstDay(series)) : undefined;
      const to = next === undefined ? today : rowDay(context, next.facts.first);
      if (before === undefined) {
        const start = Math.min(first ?? -Infinity, to);
        const isNew = start >= asked.from && !isKnown(start - 1, 'not-listed-yet');
        if (isNew) note(series, dayPeriod(start - 1), 'not-listed-yet');
        if (start === to && (await isRefuted(context, series, { side: 'before', span: asked, isNew })))
          note(series, dayPeriod(to), 'hole', { isKept: true });
      }
      // The lake may lack the days before a pause.
      const from =
        before === undefined
          ? Math.max(asked.from - RECENT_DAYS, first ?? Infinity)
          : // The last label may be that of the end of its interval.
            Math.min(before.to, rowDay(context, before.facts.last) + 1);
      if (to > from && !isKnown(from, 'not-traded'))
        for (const pause of (await unlessListingFault(life.pauses(series, 'daily', from, to))) ?? [])
          if (pause.to < today)
            note(series, dayPeriod(bars.endOfPause(pause.to) - 1), 'not-traded', { sinceDay: pause.from });
      if (next === undefined) {
        const end = await unlessListingFault(life.end(series, 'daily', from));
        const isNew = end !== undefined && end <= asked.to && !isKnown(end, 'delisted');
        if (isNew) note(series, dayPeriod(end), 'delisted');
        if (end === from && (await isRefuted(context, series, { side: 'after', span: asked, isNew })))
          note(series, dayPeriod(from - 1), 'hole', { isKept: true });
      }
    }
  }
}

/** The start of the first object of a series, or the end of its last one. `isNew`: no earlier run took it for the start or the end of the symbol. */
interface OuterEdge {
  readonly side: 'before' | 'after';
  readonly span: HeldSpan;
  readonly isNew: boolean;
}

/**
 * Whether the symbol was traded before its first row, or after its last one, on the same day. REST is asked once: the next runs ask it for the whole day. If it
 * does not answer, nothing is proven.
 */
async function isRefuted(context: EdgeContext, series: Series, edge: OuterEdge): Promise<boolean> {
  if (await hasBarAt(context, series, edge)) return true;
  if (!edge.isNew) return false;
  const { first = '', last = '' } = edge.span.facts;
  const atMs = Date.parse(edge.side === 'before' ? first : last);
  return (await unlessListingFault(context.life.rest.hasRows(series, edge.side, atMs))) ?? true;
}

/** Whether the lake has bars of another interval that end before the first bar of an object, or that begin after the end of its last one, on the same day. */
async function hasBarAt(
  { exchange, root, manifests, life }: EdgeContext,
  series: Series,
  { side, span: { facts } }: OuterEdge,
): Promise<boolean> {
  const spec = findDataset(exchange, series.market, series.dataset);
  const msOf = (one: Series): number => 1000 * ((spec && rowSeconds(spec, one.interval)) ?? Infinity);
  const { first: start = '', last: end = '' } = facts;
  const [from, to] = [Date.parse(start), Date.parse(end) + msOf(series)];
  for (const other of await life.intervalsOf(series)) {
    const manifest = await manifests.of(await checkedFolder(root, seriesFolder(exchange.name, other)));
    for (const { facts: bars } of FORMATS.flatMap((format) => manifest[format].spans())) {
      const { first = '', last = '' } = bars;
      const isBefore =
        side === 'before' && isSameDay(first, start) && Date.parse(first) + msOf(other) <= from;
      if (isBefore || (side === 'after' && isSameDay(last, end) && Date.parse(last) >= to)) return true;
    }
  }
  return false;
}

const isSameDay = (one: string, other: string): boolean =>
  one.slice(0, 'YYYY-MM-DD'.length) === other.slice(0, 'YYYY-MM-DD'.length);

const rowDay = ({ exchange }: EdgeContext, time = ''): number => dayOf(Date.parse(time), exchange);

/** The end of a symbol is proven weeks after it. */
const RECENT_DAYS = 60;

type Cuts = readonly EmptyStretch[];

/** Two neighbouring objects, or the outer end of one, with rows missing between them. `asked`: the object that tells when evidence is asked for. */
interface Seam {
  readonly before: HeldSpan | undefined;
  readonly next: HeldSpan | undefined;
  readonly asked: HeldSpan;
}

const lackingSeams = (spans: readonly HeldSpan[], cuts: Cuts): Seam[] =>
  [...spans, undefined].flatMap((next, index) => {
    const before = spans[index - 1];
    const isLacking =
      (next !== undefined && lacksHead(next, cuts)) || (before !== undefined && lacksTail(before, cuts));
    const asked = next ?? before;
    return isLacking && asked !== undefined ? [{ before, next, asked }] : [];
  });

/** Whether evidence may be asked for although a run fetches nothing. So that most series are not read again after the run, the plan asks this. */
export const mayLackEdges = (held: HeldObjects, cuts: Cuts, today: number): boolean =>
  lackingSeams(held.spans(), cuts).some(({ asked }) => isRecentOrDue(asked, today));

const isRecentOrDue = ({ from, to }: HeldSpan, today: number): boolean =>
  today - to < RECENT_DAYS || isCheckDay(from, today);

function lacksHead({ from, facts: { gaps, first = '' } }: HeldSpan, cuts: Cuts): boolean {
  const isAfterGap = gaps !== undefined && Date.parse(gaps[0]?.[0] ?? '') < Date.parse(first);
  return isAfterGap || cuts.some(({ day, at }) => day === from && at === 'begin');
}

function lacksTail({ to, facts: { gaps, last = '', open } }: HeldSpan, cuts: Cuts): boolean {
  const isBeforeGap =
    gaps !== undefined && open !== true && Date.parse(gaps.at(-1)?.[0] ?? '') > Date.parse(last);
  return isBeforeGap || cuts.some(({ day, at }) => day === to - 1 && at === 'end');
}
