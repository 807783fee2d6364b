/**
 * Computes the states of the days of a series: what it holds, and what it lacks, with reasons and evidence. Needs the lines of its manifest
 * and the names of missing files, and reads no data file.
 */
import { isFromRest } from '../../model/manifest-line.js';
import type { HeldObjects, HeldSpan } from '../held-objects.js';
import type { Absences } from '../absences.js';
import type { Manifest } from '../manifest.js';
import { dayOf, monthOf, monthStart, UTC } from '../../model/calendar.js';
import type { DayStart } from '../../model/calendar.js';
import type { ErrorCode } from '../../model/errors.js';
import { FORMATS } from '../../model/task.js';
import type { Format, Series } from '../../model/task.js';
import { endOfDataset } from '../../exchange/describe.js';
import { cadencesOf } from '../../exchange/keys.js';
import { isMade, rowSeconds } from '../../exchange/exchange-spec.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { absentDays, isMissing, reasons } from './absent-days.js';
import type { GapReason, SeriesFacts } from './absent-days.js';
import { cutStretches, idsGoOn } from './cut-days.js';
import type { EmptyStretch } from './cut-days.js';
import { doubtsOf } from './doubts.js';
import type { Doubts } from './doubts.js';
import { DAY_SECONDS } from './gap.js';
import type { Gap, LackState } from './gap.js';
import { addRows, barOpenings, cutGaps, hasEnded, isBeforeStart, looseGaps, wholeDays } from './held-gaps.js';
import type { Add, Part } from './held-gaps.js';
import type { OrderedDays } from './ordered-series.js';
import { append, at, eachSpan, intersect, subtract } from './spans.js';
import type { DayRange, Spans } from './spans.js';

export interface ReportedFailure {
  readonly format: Format;
  readonly period: DayRange;
  readonly code: ErrorCode;
}

export interface SeriesRead {
  readonly manifest: Manifest;
  /** Number of replaced objects per format. The manifest has only the latest line of an object. */
  readonly revisions: Readonly<Partial<Record<Format, number>>>;
  /** The periods of dropped objects by format, also of those that were committed again. */
  readonly dropped: Readonly<Partial<Record<Format, readonly DayRange[]>>>;
  /** Files that manifest lines name and that do not exist. */
  readonly missingFiles: ReadonlySet<string>;
}

/** The days that orders ask for, by format. Without `from`, they begin with the own days of the series. */
export type OrderedFormats = Readonly<Partial<Record<Format, OrderedDays>>>;

export interface StateTerms {
  /** The range of days to judge. A missing `from` or `to` is that of the own days (`ownDays`, up to today) and of the ordered days together. */
  readonly range: Partial<OrderedDays>;
  readonly ordered?: OrderedFormats | undefined;
  readonly today: number;
  readonly failures: readonly ReportedFailure[];
  /** Undefined for a dataset that this version does not know. */
  readonly spec: DatasetSpec | undefined;
  /** The halts in config/halts.json, in seconds. */
  readonly halts: Spans;
}

/** Expected and missing rows (or days) of a series or a period. */
export interface Amounts {
  readonly expected: number;
  readonly missing: number;
}

export interface SeriesStates extends Amounts {
  readonly series: Series;
  /** Undefined when the series holds no data, but its manifest records absences, or the range has both ends. */
  readonly format: Format | undefined;
  /** The range of the terms. */
  readonly range: Partial<DayRange>;
  /** Days `[from, to)`. */
  readonly from: number;
  readonly to: number;
  /** The days that the lake holds, has lost, or failed to fetch, with those between them. */
  readonly own: DayRange;
  /** When the days begin, in seconds after 00:00 UTC of their date. */
  readonly dayStartSeconds: number;
  /** Seconds from row to row. Undefined where the number of rows of a day is not known; days are counted then. */
  readonly rowSeconds: number | undefined;
  /** Number of objects that overlap the range. The other counts include the rows of these objects outside of the range. */
  readonly objects: number;
  readonly restObjects: number;
  readonly rows: number | undefined;
  readonly duplicates: number;
  readonly doubts: Doubts;
  /** Number of objects that were replaced by a later revision. */
  readonly revisions: number;
  /** Time of the first row, ISO 8601. */
  readonly first: string | undefined;
  readonly last: string | undefined;
  /** In order of time. Neighbouring gaps of one reason and evidence are joined, except loose ones. Includes gaps in which no data is expected. */
  readonly gaps: readonly Gap[];
  /** Rows (or days) of gaps in which no data is expected. */
  readonly excused: number;
}

/** One item per format that is held, lost or ordered with a `from`. If none is held or lost, one without a format: for absences or a whole range. */
export function statesOf(series: Series, read: SeriesRead, terms: StateTerms): SeriesStates[] {
  const { absences, ...held } = read.manifest;
  const formats = FORMATS.filter(
    (format) => held[format].size > 0 || (read.dropped[format] ?? []).length > 0,
  );
  if (formats.length > 0) {
    const ordered = FORMATS.filter((format) => terms.ordered?.[format]?.from !== undefined);
    return [...new Set([...formats, ...ordered])].map((format) =>
      statesOfFormat(series, format, read, terms),
    );
  }
  const hasAbsences = absences.periods().length + absences.failed().length > 0;
  const { from, to } = terms.range;
  const hasBothEnds = from !== undefined && to !== undefined;
  // Days for which the program has made no rows lack nothing.
  const isExpected = terms.spec === undefined || !isMade(terms.spec);
  return isExpected && (hasAbsences || hasBothEnds) ? [statesOfFormat(series, undefined, read, terms)] : [];
}

function statesOfFormat(
  series: Series,
  format: Format | undefined,
  { manifest, dropped, revisions, missingFiles }: SeriesRead,
  terms: StateTerms,
): SeriesStates {
  const { spec, today, halts } = terms;
  const { absences } = manifest;
  const ordered = format && terms.ordered?.[format];
  const listed = format === undefined ? [] : manifest[format].spans();
  const isThere = ({ facts }: HeldSpan): boolean => !missingFiles.has(facts.file);
  const held = listed.filter(isThere);
  const missing = listed.filter((object) => !isThere(object));
  // The days of missing files count as held here, so that the reasons of other days stay the same.
  const heldDays = daysOf(listed);
  const failures = terms.failures.filter((failure) => failure.format === format);
  const known = { absences, ...factsOf(terms, listed, series, ordered), reported: codesOf(failures) };
  const others = [...((format && dropped[format]) ?? []), ...failures.map(({ period }) => period)];
  const own = ownDays(heldDays, absences, others);
  const range = spec !== undefined && isMade(spec) ? clipRange(terms.range, own) : terms.range;
  const from = range.from ?? Math.min(own.from, ordered?.from ?? own.from) - (terms.range.lookBack ?? 0);
  const ownEnd = Math.min(own.to, today, known.currentMonth ?? today);
  const to = Math.max(from, range.to ?? Math.max(ownEnd, ordered?.to ?? ownEnd));
  const dayStartSeconds = (spec ?? UTC).dayStartMs / 1000;
  const days = { from, to, rowSeconds: countedSeconds(series, format, spec), dayStartSeconds };
  const part: Part = {
    ...days,
    halts,
    rate: spec?.rate,
    heldDays,
    known,
    bars: barOpenings(listed, series.interval, spec ?? UTC),
  };
  const within = held.filter((object) => object.to > from && object.from < to);
  const gaps = gapsOf({ within, missing, cuts: cutsOf(held, part), quiet: quietDays(held) }, part);
  return {
    series,
    format,
    range: terms.range,
    own,
    revisions: (format && revisions[format]) ?? 0,
    ...days,
    ...countsOf(within),
    doubts: doubtsOf(within, spec?.sequence !== undefined),
    gaps,
    ...amountsOf(part, gaps),
  };
}

function countedSeconds({ interval }: Series, format?: Format, spec?: DatasetSpec): number | undefined {
  const isCounted = format !== undefined && format !== 'zip' && spec !== undefined;
  return isCounted ? rowSeconds(spec, interval) : undefined;
}

function daysOf(objects: readonly DayRange[]): number[] {
  const days: number[] = [];
  for (const { from, to } of objects) append(days, from, to);
  return days;
}

function codesOf(failures: readonly ReportedFailure[]): Map<number, ErrorCode> {
  const codes = new Map<number, ErrorCode>();
  for (const { period, code } of failures)
    for (let day = period.from; day < period.to; day += 1) codes.set(day, code);
  return codes;
}

/**
 * The days from the first to the last one that the lake holds, has lost, or failed to fetch; for a series without such days, those with
 * recorded absences; without any, `[Infinity, -Infinity)`. `repair` fetches what is missing of them.
 */
function ownDays(heldDays: Spans, absences: Absences, others: readonly DayRange[]): DayRange {
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
function clipRange({ from, to }: Partial<DayRange>, own: DayRange): DayRange {
  return {
    from: Math.min(Math.max(from ?? own.from, own.from), own.to),
    to: Math.max(Math.min(to ?? own.to, own.to), own.from),
  };
}

function factsOf(
  { spec, today, range }: Pick<StateTerms, 'spec' | 'today'> & Partial<StateTerms>,
  held: readonly HeldSpan[],
  { interval }: Pick<Series, 'interval'> = {},
  ordered?: OrderedDays,
): Omit<SeriesFacts, 'absences'> {
  if (spec === undefined) return {};
  const firsts = spec.cadences.map((cadence) => spec.spans[cadence]?.first?.from ?? -Infinity);
  const cadences = cadencesOf(spec, interval, held.at(-1)?.facts.settings.cadence);
  const asksRest = (range?.hasRest ?? ordered?.hasRest) === true;
  const isInRest = asksRest || held.some(({ facts }) => isFromRest(facts));
  const end = isInRest
    ? undefined
    : (endOfDataset(spec, cadences) ?? (spec.removed ? held.at(-1)?.to : undefined));
  const isMonthlyOnly = !isInRest && spec.cadences.length > 0 && !spec.cadences.includes('daily');
  return {
    first: firsts.length === 0 ? -Infinity : Math.min(...firsts),
    end,
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
function rowsOf(held: readonly HeldSpan[], dayStart: DayStart): Pick<SeriesFacts, 'rows' | 'firstRow'> {
  const [first, last] = [held[0]?.facts, held.at(-1)?.facts];
  const day = (time: string): number => dayOf(Date.parse(time), dayStart);
  return {
    firstRow: Math.round((Date.parse(first?.first ?? '') - dayStart.dayStartMs) / 1000),
    rows: {
      first: first?.cadence === 'monthly' && first.first !== undefined ? day(first.first) : -Infinity,
      end: last?.cadence === 'monthly' && last.last !== undefined ? day(last.last) + 1 : Infinity,
    },
  };
}

/** Whether REST has the rows of all times, as of bars and funding rates. An empty answer of it is evidence. */
function hasWholeHistory({ rest }: DatasetSpec): boolean {
  return rest !== undefined && !('joins' in rest) && rest.pager === 'start' && rest.reachHours === undefined;
}

function mayBeCut(held: readonly HeldSpan[], rate: DatasetSpec['rate']): boolean {
  return rate !== undefined || held.some(({ facts }) => facts.ids !== undefined);
}

/** The stretches without rows of the cut days in the range; empty for a series with neither a rate nor ids. */
function cutsOf(
  held: readonly HeldSpan[],
  { from, to, rate, heldDays, known, dayStartSeconds }: Omit<Part, 'rowSeconds' | 'halts' | 'bars'>,
): EmptyStretch[] {
  if (!mayBeCut(held, rate)) return [];
  const reasonOf = reasons(heldDays, known);
  const isIdle = (day: number): boolean => {
    const { reason } = reasonOf(day);
    return hasEnded(reason) || isBeforeStart(reason) || reason === 'not-traded';
  };
  const cuts = cutStretches(held, isIdle, { dayStartMs: dayStartSeconds * 1000 }, rate);
  return cuts.filter(({ day }) => day >= from && day < to);
}

/** The stretches without rows for which held days count as cut, for runs and `repair`. */
export function heldCuts(
  { held, absences }: { readonly held: HeldObjects; readonly absences: Absences },
  terms: Pick<StateTerms, 'spec' | 'today'>,
): readonly EmptyStretch[] {
  const objects = held.spans();
  const rate = terms.spec?.rate;
  // Most series have neither a rate nor ids, and a run calls this for each series.
  if (!mayBeCut(objects, rate)) return [];
  const heldDays = daysOf(objects);
  const known = { absences, ...factsOf(terms, objects) };
  const { from, to } = ownDays(heldDays, absences, []);
  const dayStartSeconds = (terms.spec ?? UTC).dayStartMs / 1000;
  return cutsOf(objects, { from, to: Math.min(to, terms.today), rate, dayStartSeconds, heldDays, known });
}

type Counts = Pick<SeriesStates, 'objects' | 'restObjects' | 'rows' | 'duplicates' | 'first' | 'last'>;

function countsOf(objects: readonly HeldSpan[]): Counts {
  let restObjects = 0;
  let rows: number | undefined;
  let duplicates = 0;
  let first: string | undefined;
  let last: string | undefined;
  for (const { facts } of objects) {
    if (isFromRest(facts)) restObjects += 1;
    if (facts.rows !== undefined) rows = (rows ?? 0) + facts.rows;
    duplicates += facts.duplicates ?? 0;
    if (facts.first !== undefined && (first === undefined || facts.first < first)) first = facts.first;
    if (facts.last !== undefined && (last === undefined || facts.last > last)) last = facts.last;
  }
  return { objects: objects.length, restObjects, rows, duplicates, first, last };
}

interface JudgedObjects {
  /** The held objects in the range. */
  readonly within: readonly HeldSpan[];
  /** All objects whose files are missing. */
  readonly missing: readonly HeldSpan[];
  readonly cuts: readonly EmptyStretch[];
  readonly quiet: Spans;
}

/** The days between held objects whose ids go on: nothing was traded. */
function quietDays(held: readonly HeldSpan[]): Spans {
  return held.flatMap((object, index) => {
    const before = held[index - 1];
    const isQuiet = before !== undefined && before.to < object.from && idsGoOn(before, object);
    return isQuiet ? [before.to * DAY_SECONDS, object.from * DAY_SECONDS] : [];
  });
}

function gapsOf({ within, missing, cuts, quiet }: JudgedObjects, part: Part): Gap[] {
  const { from, to, heldDays, known, halts, bars, rowSeconds: seconds = DAY_SECONDS } = part;
  const gaps: Gap[] = [];
  const add: Add = ([start, end], state, of) => {
    // No gap: a time shorter than half of that between two rows (minus a second for rounding), or in which no bar of several days opens.
    if (end - start < Math.max(1, seconds / 2 - 1)) return;
    if (isMissing(of.reason) && !bars.opensIn(Math.ceil(start / DAY_SECONDS), end / DAY_SECONDS)) return;
    const amount = Math.max(1, Math.round((end - start) / seconds));
    gaps.push({ ...of, from: start, to: end, state, amount, isMissing: isMissing(of.reason) });
  };
  const addDays = (days: Spans, of: Parameters<Add>[2]): void => {
    let left = days;
    // A halt explains a day that is not held only when the halt lasted the whole day.
    for (const [evidence, proven] of [['ids', quiet] as const, ['list', halts] as const]) {
      if (!isMissing(of.reason)) continue;
      const halted = wholeDays(intersect(left, proven));
      eachSpan(halted, (...span) => add(span, 'absent', { reason: 'halt', evidence }));
      left = subtract(left, halted);
    }
    eachSpan(left, (...span) => add(span, stateOf(of.reason), of));
  };
  for (const one of absentDays(heldDays, from, to, known))
    addDays([one.from * DAY_SECONDS, one.to * DAY_SECONDS], one);
  eachSpan(intersect(daysOf(missing), [from, to]), (start, end) =>
    addDays([start * DAY_SECONDS, end * DAY_SECONDS], { reason: 'missing' }),
  );
  const [current, old]: [HeldSpan[], HeldSpan[]] = [[], []];
  for (const object of within) {
    const reason = oldReason(object, known.absences);
    (reason === undefined ? current : old).push(object);
    if (reason === undefined) continue;
    const [start, end] = [Math.max(object.from, from), Math.min(object.to, to)];
    add([start * DAY_SECONDS, end * DAY_SECONDS], reason === 'unexplained' ? 'short' : 'failed', { reason });
  }
  const short = addRows(current, part, add);
  if (part.rowSeconds !== undefined) gaps.push(...looseGaps(current, part, part.rowSeconds));
  const isCurrent = ({ day }: EmptyStretch): boolean => !old.some((one) => one.from <= day && day < one.to);
  gaps.push(...cutGaps(cuts.filter(isCurrent), short, part));
  const sorted = gaps.sort((a, b) => a.from - b.from || a.to - b.to);
  return joined(sorted.map((gap) => withCadence(gap, within)));
}

function withCadence(gap: Gap, within: readonly HeldSpan[]): Gap {
  const isIn = ({ from, to }: HeldSpan): boolean =>
    from * DAY_SECONDS <= gap.from && gap.from < to * DAY_SECONDS;
  const isOfMonth = gap.state === 'short' && within.find(isIn)?.facts.cadence === 'monthly';
  return isOfMonth ? { ...gap, isOfMonth } : gap;
}

/** Why a held object is not what the archive has: a later revision could not be fetched, or has more rows and was refused because it lacks held ones. */
function oldReason({ facts, from, to }: HeldSpan, absences: Absences): GapReason | undefined {
  const code = absences.failureOfRevision({ cadence: facts.cadence, from, to });
  if (code !== undefined) return `failed:${code}`;
  return (facts.shorter?.rows ?? 0) > (facts.rows ?? Infinity) ? 'unexplained' : undefined;
}

function stateOf(reason: GapReason): LackState {
  if (reason === 'not-published-yet') return 'unpublished';
  if (reason === 'not-fetched') return 'unasked';
  return reason.startsWith('failed:') ? 'failed' : 'absent';
}

/** Neighbouring gaps are joined if these are equal. */
const EQUAL = ['reason', 'evidence', 'isRestAsked', 'isOfMonth'] as const;

function joined(gaps: readonly Gap[]): Gap[] {
  const all: Gap[] = [];
  for (const gap of gaps) {
    const last = all.at(-1);
    const isSame = last?.to === gap.from && EQUAL.every((name) => last[name] === gap[name]);
    if (isSame && last.isLoose === undefined && gap.isLoose === undefined)
      all[all.length - 1] = { ...last, to: gap.to, amount: last.amount + gap.amount };
    else all.push(gap);
  }
  return all;
}

function amountsOf(
  { from, to, rowSeconds: seconds = DAY_SECONDS }: Part,
  gaps: readonly Gap[],
): Amounts & Pick<SeriesStates, 'excused'> {
  let missing = 0;
  let excused = 0;
  for (const gap of gaps) {
    if (gap.isMissing) missing += gap.amount;
    else excused += gap.amount;
  }
  const expected = Math.max(0, ((to - from) * DAY_SECONDS) / seconds - excused);
  return { expected, missing: Math.min(missing, expected), excused };
}
