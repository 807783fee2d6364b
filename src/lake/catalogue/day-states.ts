/**
 * Computes the states of the days of a series: what it holds, and what it lacks, with reasons and evidence. Needs the lines of its manifest
 * and the names of missing files, and reads no data file.
 */
import { isFromRest } from '../../model/manifest-line.js';
import type { HeldSpan } from '../held-objects.js';
import type { Manifest } from '../manifest.js';
import { eachDay, UTC } from '../../model/calendar.js';
import type { ErrorCode } from '../../model/errors.js';
import { FORMATS, type Format, type Series } from '../../model/task.js';
import { isMade, rowSeconds, type DatasetSpec } from '../../exchange/exchange-spec.js';
import { doubtsOf, type Doubts } from './doubts.js';
import { DAY_SECONDS } from '../../model/units.js';
import { type Gap } from './gap.js';
import { barOpenings } from './bar-openings.js';
import type { Part } from './gap-edges.js';
import type { OrderedDays } from './ordered-series.js';
import type { DayRange, Spans } from './spans.js';
import { ownDays, clipRange, factsOf, type FactTerms } from './series-facts.js';
import { heldDaysOf } from './cut-days.js';
import { gapsOf } from './find-gaps.js';

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

export interface StateTerms extends Pick<FactTerms, 'spec' | 'today'> {
  /** The range of days to judge. A missing `from` or `to` is that of the own days (`ownDays`, up to today) and of the ordered days together. */
  readonly range: Partial<OrderedDays>;
  readonly ordered?: OrderedFormats | undefined;
  readonly failures: readonly ReportedFailure[];
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
  readonly firstInstant: string | undefined;
  readonly lastInstant: string | undefined;
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
  const heldDays = heldDaysOf(listed);
  const failures = terms.failures.filter((failure) => failure.format === format);
  const asksRest = (terms.range.hasRest ?? ordered?.hasRest) === true;
  const facts = factsOf({ spec, today, interval: series.interval, asksRest }, listed);
  const known = { absences, ...facts, reported: codesOf(failures) };
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
  const gaps = gapsOf({ held, within, missing }, part);
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

function codesOf(failures: readonly ReportedFailure[]): Map<number, ErrorCode> {
  return new Map(failures.flatMap(({ period, code }) => eachDay(period).map((day) => [day, code] as const)));
}

function countsOf(objects: readonly HeldSpan[]) {
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
  return { objects: objects.length, restObjects, rows, duplicates, firstInstant: first, lastInstant: last };
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
