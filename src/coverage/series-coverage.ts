/** Computes what a series holds and lacks, from the lines of its manifest and the names of missing files. */
import { monthOf, monthStart, parsePeriod, UTC } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import type { Absences } from '../lake/absences.js';
import type { Manifest } from '../lake/manifest.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { isFromRest } from '../lake/held-objects.js';
import type { Format, Series, Settings } from '../model/task.js';
import { endOfDataset } from '../source/describe.js';
import { isMade, rowSeconds } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { absentDays, reasons } from './absent-days.js';
import type { AbsentDays, GapReason, SeriesFacts } from './absent-days.js';
import { cutStretches, hasTicks } from './cut-days.js';
import type { EmptyStretch } from './cut-days.js';
import { codesOf, cutRange, daysOf, objectsOf, ownDays } from './own-days.js';
import type { DayRange, Days, HeldObject, ReportedFailure } from './own-days.js';
import { at, clip, intersect, inWholeRows, overlap, rowsIn, union } from './spans.js';
import type { Spans } from './spans.js';

/** Times in this folder are seconds since the start of the exchange's day 1970-01-01. Each day begins at a multiple of this number. */
export const DAY_SECONDS = 86_400;

type Revisions = Readonly<Partial<Record<Format, number>>>;

export interface CoverageContext {
  readonly range: DayRange;
  /** Today as a day number. */
  readonly today: number;
  /** The periods of the objects that each format has lost. */
  readonly lost: Readonly<Partial<Record<Format, readonly Days[]>>>;
  /** Files that manifest lines name and that do not exist. */
  readonly missingFiles: ReadonlySet<string>;
  /** The failures of this series in the last failure report. */
  readonly failures: readonly ReportedFailure[];
  /** Undefined for a dataset that this version does not know. */
  readonly spec: DatasetSpec | undefined;
  /** Number of replaced objects per format. The parsed manifest has only the latest line of an object, so the parser counts the replaced ones. */
  readonly revisions: Revisions;
}

/** A gap at the start or the end of a series, in seconds. */
type Edge = AbsentDays;

/** One series in one format. */
export interface SeriesCoverage {
  readonly series: Series;
  /** Undefined when the series holds no data, but its manifest records absences. */
  readonly format: Format | undefined;
  /** The settings of the last held object. */
  readonly settings: Settings | undefined;
  /** Days `[from, to)`. */
  readonly from: number;
  readonly to: number;
  /** The days that the lake holds, has lost, or failed to fetch, with those between them. */
  readonly own: Days;
  /** When the days begin, in seconds after 00:00 UTC of their date. */
  readonly dayStartSeconds: number;
  /** Seconds from row to row. Undefined where the number of rows of a day is not known; coverage then counts days. */
  readonly rowSeconds: number | undefined;
  /** Number of objects that overlap the range. The other counts include the rows of these objects outside of the range. */
  readonly objects: number;
  readonly restObjects: number;
  readonly rows: number | undefined;
  readonly duplicates: number;
  /** Number of objects that were replaced by a later revision. */
  readonly revisions: number;
  /** Time of the first row, ISO 8601. */
  readonly first: string | undefined;
  readonly last: string | undefined;
  readonly absent: readonly AbsentDays[];
  /** Seconds in which rows of held days are missing. */
  readonly gaps: Spans;
  /** Gaps with a reason: before the listing, after the end, or not fetched yet. */
  readonly edges: readonly Edge[];
  /** Missing rows at unknown times, as triples: first day, end day, number of rows. */
  readonly loose: Spans;
  /** The parts of `gaps` whose rows REST lacks too, by its answer about the held revision. */
  readonly notInRest: Spans;
  /** The stretches of cut days in which there are no rows; empty for datasets without ticks. */
  readonly cuts: readonly EmptyStretch[];
}

/** The coverage in each format that the series holds. Empty when it holds nothing and records no absences. */
export function coverSeries(
  series: Series,
  manifest: Manifest,
  formats: readonly Format[],
  context: CoverageContext,
): SeriesCoverage[] {
  const held = formats.filter(
    (format) => manifest[format].size > 0 || (context.lost[format]?.length ?? 0) > 0,
  );
  if (held.length > 0) return held.map((format) => cover(series, format, manifest, context));
  return isRemembered(manifest) ? [cover(series, undefined, manifest, context)] : [];
}

function isRemembered({ absences, ...held }: Manifest): boolean {
  if (Object.values(held).some(({ size }) => size > 0)) return false;
  return absences.periods().length + absences.failed().length > 0;
}

function cover(
  series: Series,
  format: Format | undefined,
  manifest: Manifest,
  context: CoverageContext,
): SeriesCoverage {
  const { absences } = manifest;
  const listed = format === undefined ? [] : objectsOf(manifest[format]);
  const isMissing = ({ line }: HeldObject): boolean => context.missingFiles.has(line.file);
  const held = listed.filter((object) => !isMissing(object));
  // A missing file does not change the reasons of other days.
  const heldDays = daysOf(listed);
  const failures = context.failures.filter((failure) => failure.format === format);
  const known = { absences, ...factsOf(context, listed), reported: codesOf(failures) };
  const lost = (format === undefined ? undefined : context.lost[format]) ?? [];
  const own = ownDays(heldDays, absences, [...lost, ...failures.map(({ period }) => period)]);
  const range =
    context.spec !== undefined && isMade(context.spec) ? cutRange(context.range, own) : context.range;
  const from = range.from ?? own.from;
  const end = range.to ?? Math.min(own.to, context.today, known.currentMonth ?? context.today);
  const to = Math.max(from, end);
  const within = held.filter((object) => object.to > from && object.from < to);
  const seconds = format === undefined || format === 'zip' ? undefined : secondsOf(context, series);
  const dayStartSeconds = dayStartOf(context).dayStartMs / 1000;
  return {
    series,
    format,
    settings: listed.at(-1)?.line.settings,
    from,
    to,
    own,
    dayStartSeconds,
    rowSeconds: seconds,
    revisions: (format === undefined ? undefined : context.revisions[format]) ?? 0,
    absent: [...absentDays(heldDays, from, to, known), ...missingDays(listed.filter(isMissing), from, to)],
    ...countsOf(within),
    ...missingRows(within, { from, to, seconds, dayStartSeconds, heldDays, known }),
    cuts: hasTicks(series)
      ? cutsOf(held, heldDays, { known, dayStart: dayStartOf(context) }).filter(
          ({ day }) => day >= from && day < to,
        )
      : [],
  };
}

/** The days `[from, to)` of objects whose files are missing. */
function missingDays(objects: readonly HeldObject[], from: number, to: number): AbsentDays[] {
  const days = intersect(daysOf(objects), [from, to]);
  return Array.from({ length: days.length / 2 }, (_, i) => ({
    from: at(days, 2 * i),
    to: at(days, 2 * i + 1),
    reason: 'missing',
  }));
}

function cutsOf(
  held: readonly HeldObject[],
  heldDays: Spans,
  { known, dayStart }: { readonly known: SeriesFacts; readonly dayStart: DayStart },
): EmptyStretch[] {
  const after = reasons(heldDays, known)(at(heldDays, heldDays.length - 1));
  return cutStretches(held, hasEnded(after.reason), dayStart);
}

function hasEnded(after: GapReason): boolean {
  return after === 'delisted' || after === 'dataset-ended';
}

/** UTC for a dataset that this version does not know: its coverage has only days, no times of rows. */
function dayStartOf({ spec }: CoverageContext): DayStart {
  return spec ?? UTC;
}

function secondsOf({ spec }: CoverageContext, { interval }: Series): number | undefined {
  return spec === undefined ? undefined : rowSeconds(spec, interval);
}

/** The first and last days of the dataset, which explain absent days. */
function factsOf(
  { spec, today }: CoverageContext,
  held: readonly HeldObject[],
): Omit<SeriesFacts, 'absences'> {
  if (spec === undefined) return {};
  const firsts = spec.cadences.map((cadence) => spec.spans[cadence]?.first?.from);
  const first = firsts.includes(undefined) ? undefined : Math.min(...(firsts as number[]));
  const kinds = [...new Set(held.map(({ line }) => line.cadence))];
  const isRest = held.some(({ line }) => isFromRest(line));
  const end = isRest
    ? undefined
    : (endOfDataset(spec, kinds) ?? (spec.removed ? held.at(-1)?.to : undefined));
  const isMonthly = !isRest && spec.cadences.length > 0 && !spec.cadences.includes('daily');
  return {
    ...(first === undefined || !Number.isFinite(first) ? {} : { first }),
    ...(end === undefined ? {} : { end }),
    today,
    ...(hasWholeHistory(spec) ? { isWholeInRest: true } : {}),
    ...(isMonthly ? { currentMonth: monthStart(monthOf(today)) } : {}),
  };
}

/** Whether REST has the rows of all times, as for bars and funding rates, so that an empty answer is evidence. */
function hasWholeHistory({ rest }: DatasetSpec): boolean {
  return rest !== undefined && !('joins' in rest) && rest.pager === 'start' && rest.reachHours === undefined;
}

type Counts = Pick<SeriesCoverage, 'objects' | 'restObjects' | 'rows' | 'duplicates' | 'first' | 'last'>;

function countsOf(objects: readonly HeldObject[]): Counts {
  let restObjects = 0;
  let rows: number | undefined;
  let duplicates = 0;
  let first: string | undefined;
  let last: string | undefined;
  for (const { line } of objects) {
    if (isFromRest(line)) restObjects += 1;
    if (line.rows !== undefined) rows = (rows ?? 0) + line.rows;
    duplicates += line.duplicates ?? 0;
    if (line.first !== undefined && (first === undefined || line.first < first)) first = line.first;
    if (line.last !== undefined && (last === undefined || line.last > last)) last = line.last;
  }
  return { objects: objects.length, restObjects, rows, duplicates, first, last };
}

interface HeldRange {
  readonly from: number;
  readonly to: number;
  readonly seconds: number | undefined;
  readonly dayStartSeconds: number;
  readonly heldDays: Spans;
  readonly known: SeriesFacts;
}

type Missing = Pick<SeriesCoverage, 'gaps' | 'edges' | 'loose' | 'notInRest'>;

/** Missing rows of held days. */
function missingRows(objects: readonly HeldObject[], held: HeldRange): Missing {
  const { seconds, dayStartSeconds } = held;
  if (seconds === undefined) return missingDaysWithin(objects, held);
  const gaps: number[] = [];
  const loose: number[] = [];
  const notInRest: number[] = [];
  const edges: Edge[] = [];
  for (const object of objects) {
    const { line, from, to } = object;
    const notFetched = line.open === true ? unfetchedTime(object, seconds, held) : [];
    if (notFetched.length > 0)
      edges.push({ from: at(notFetched, 0), to: at(notFetched, 1), reason: 'not-fetched' });
    const located = notFetched.length > 0 ? notFetched : secondsOfGaps(line, dayStartSeconds);
    for (const second of located) gaps.push(second);
    if (held.known.isWholeInRest === true)
      notInRest.push(...gapsOfBoth(object, held.known.absences, located, dayStartSeconds));
    const expected = ((to - from) * DAY_SECONDS) / seconds;
    const unknown = expected - (line.rows ?? expected) - rowsIn(located, seconds);
    if (unknown >= 1) {
      const rows = Math.round((unknown * overlap(from, to, held.from, held.to)) / (to - from));
      if (rows > 0) loose.push(Math.max(from, held.from), Math.min(to, held.to), rows);
    }
  }
  const clipped = clip(gaps, held.from * DAY_SECONDS, held.to * DAY_SECONDS);
  return {
    gaps: Uint32Array.from(clipped),
    edges: [...edgesOf(held, clipped, seconds), ...edges].sort((a, b) => a.from - b.from),
    loose: Uint32Array.from(loose),
    notInRest: union(notInRest),
  };
}

/** The days that lack rows, in objects without a fixed number of rows. */
function missingDaysWithin(objects: readonly HeldObject[], held: HeldRange): Missing {
  const spans = objects.flatMap(({ line }) => secondsOfGaps(line, held.dayStartSeconds));
  const days = inWholeRows(spans, DAY_SECONDS);
  const gaps = clip(days, held.from * DAY_SECONDS, held.to * DAY_SECONDS);
  return {
    gaps: Uint32Array.from(gaps),
    edges: edgesOf(held, gaps, DAY_SECONDS),
    loose: [],
    notInRest: [],
  };
}

/** The gaps of a held object of the archive that REST has no rows for either; those that both have, if rows of REST replaced the object. */
function gapsOfBoth(
  { line }: HeldObject,
  absences: Absences,
  located: readonly number[],
  dayStartSeconds: number,
): readonly number[] {
  if (located.length === 0) return located;
  if (line.insteadOf !== undefined) return intersect(located, secondsOfGaps(line.insteadOf, dayStartSeconds));
  const period = parsePeriod(line.cadence, line.period);
  const rest = period === undefined ? undefined : absences.of(period)?.rest;
  return rest?.lacksToo === line.sha256 ? located : [];
}

/** The time after the last row, in seconds, of a period that was fetched before it was over. */
function unfetchedTime(
  { line, from, to }: HeldObject,
  seconds: number,
  held: Pick<HeldRange, 'to' | 'dayStartSeconds'>,
): number[] {
  const start =
    line.last === undefined
      ? from * DAY_SECONDS
      : Date.parse(line.last) / 1000 - held.dayStartSeconds + seconds;
  const rest = [Math.round(start), Math.min(to, held.to) * DAY_SECONDS];
  return at(rest, 0) < at(rest, 1) ? rest : [];
}

function secondsOfGaps({ gaps = [] }: Pick<ObjectLine, 'gaps'>, dayStartSeconds: number): number[] {
  return gaps.flat().map((instant) => Math.round(Date.parse(instant) / 1000) - dayStartSeconds);
}

/** Gaps within held days that lie before the listing or after the end of the series. */
function edgesOf({ heldDays, known }: HeldRange, gaps: Spans, seconds: number): Edge[] {
  if (gaps.length === 0) return [];
  const reasonOf = reasons(heldDays, known);
  const firstDay = at(heldDays, 0);
  const endDay = at(heldDays, heldDays.length - 1);
  const edges: Edge[] = [];
  const before = reasonOf(firstDay - 1);
  const first = { from: at(gaps, 0), to: at(gaps, 1), ...before };
  // Where the time of a row is the end of its interval, the first row of a day has a time one interval after the start of the day.
  const isEarly = first.from <= firstDay * DAY_SECONDS + seconds;
  if (isEarly && (before.reason === 'not-listed-yet' || before.reason === 'before-history'))
    edges.push(first);
  const after = reasonOf(endDay);
  const last = { from: at(gaps, gaps.length - 2), to: at(gaps, gaps.length - 1), ...after };
  if (hasEnded(after.reason) && last.to >= endDay * DAY_SECONDS && edges.length * 2 < gaps.length)
    edges.push(last);
  return edges;
}
