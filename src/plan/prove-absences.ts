/** Replaces the reasons of absence that the listing of a series leaves open by those that the other datasets of its symbol prove. */
import { barOpenings } from '../lake/catalogue/bar-openings.js';
import type { DayRange } from '../lake/catalogue/spans.js';
import { isEnd, type Absences } from '../lake/absences.js';
import { isDue } from '../lake/absences.js';
import { LATE_MS, REASON_FACTS, type AbsenceReason } from '../model/absence-reasons.js';
import { dayOf, periodAt } from '../model/calendar.js';
import { DAY_MS } from '../model/units.js';
import type { Cadence, Period, Series } from '../model/task.js';
import { unlessListingFault } from '../exchange/listing.js';
import { findDataset, hasLongBars } from '../exchange/exchange-spec.js';
import type { Choice, ChooseContext } from './choose-objects.js';
import { LONGEST_DELAY_DAYS, type SeriesListing } from './series-listing.js';
import { keptByRest, type RestOffer } from './rest-evidence.js';
import type { PlanContext } from './series-request.js';

/** With `force`, recorded reasons do not count. */
export interface ProofContext
  extends
    Pick<ChooseContext, 'known' | 'list' | 'spans'>,
    Pick<PlanContext, 'life' | 'nowMs' | 'force' | 'exchange'> {
  readonly series: Series;
  readonly absences: Absences;
  /** What REST offers of the series, in a run that uses it. */
  readonly offer?: RestOffer | undefined;
}

type Proof = Pick<Choice, 'absent' | 'sinceDay' | 'isRestEmpty'>;

export async function proveAbsences(context: ProofContext, choices: readonly Choice[]): Promise<Choice[]> {
  const proven: Choice[] = [];
  for (const choice of choices) {
    const isAbsent = choice.listed === undefined && choice.held === undefined;
    proven.push(isAbsent ? { ...choice, ...(await prove(context, choice)) } : choice);
  }
  return proven;
}

/** Where the listings do not tell, nothing is proven, and what earlier runs have proven stays. */
async function prove(context: ProofContext, choice: Choice): Promise<Proof> {
  const listing = await context.list(choice.period.cadence);
  const isCurrent = listing.isProbed !== true && listing.copiedAtMs === undefined;
  const found = isCurrent ? await unlessListingFault(reasonOf(context, listing, choice)) : undefined;
  if (found === undefined) return { absent: provenBefore(context, choice.period) ?? choice.absent };
  const isAsked = needsRest(context, found.absent, choice.period);
  return isAsked ? { ...found, isRestEmpty: true } : found;
}

/** In a run that uses REST, evidence of the archive counts only with an answer of REST, which may begin before the archive. */
function needsRest({ offer }: Pick<ProofContext, 'offer'>, reason: AbsenceReason, period: Period): boolean {
  const isOfArchive = REASON_FACTS[reason].isOfSymbol || reason === 'before-history';
  return isOfArchive && keptByRest(offer, period) !== undefined;
}

/** The recorded reason of a period, if its evidence counts in this run. */
function recordedOf(
  context: Pick<ProofContext, 'absences' | 'offer'>,
  period: Period,
): AbsenceReason | undefined {
  const { reason, rest } = context.absences.of(period) ?? {};
  const isOpen = reason !== undefined && rest === undefined && needsRest(context, reason, period);
  return isOpen ? undefined : reason;
}

async function reasonOf(
  context: ProofContext,
  listing: SeriesListing,
  { period, absent }: Choice,
): Promise<Proof> {
  if (absent === 'hole') return { absent: await holeReason(context, listing, period) };
  const isOpen = absent === 'unknown' || (absent === 'before-history' && needsRest(context, absent, period));
  const reason = isOpen ? await startReason(context, listing, period) : absent;
  return reason === 'not-published-yet' ? endReason(context, listing, period) : { absent: reason };
}

/** The reason that an earlier run has proven of a period, or of the days from an earlier one on. Held days refute it. */
function provenBefore(
  context: Pick<ProofContext, 'absences' | 'known' | 'offer'>,
  period: Period,
): AbsenceReason | undefined {
  const { absences, known } = context;
  const end = known.end() ?? -Infinity;
  const isRefuted = { start: period.from >= (known.first() ?? Infinity), end: period.from < end, any: false };
  const own = recordedOf(context, period);
  if (own !== undefined && REASON_FACTS[own].isProven && !isRefuted[REASON_FACTS[own].at]) return own;
  return absences
    .periods()
    .filter(({ from }) => from >= end && from <= period.from)
    .flatMap((one) => recordedOf(context, one) ?? [])
    .find(isEnd);
}

/** The end of a symbol that REST did not know in an earlier run, weeks after its last row, if the archive proves one. */
export async function endInArchive(
  { life, today }: Pick<PlanContext, 'life' | 'today'>,
  series: Series,
  { known, absences }: Pick<ProofContext, 'absences' | 'known'>,
): Promise<number | undefined> {
  const heldTo = known.end() ?? Infinity;
  const isForgotten = absences.failed().some((one) => absences.failureOf(one) === 'symbol-unknown');
  if (!isForgotten || today - heldTo < LONGEST_DELAY_DAYS.daily) return undefined;
  return unlessListingFault(life.end(series, 'daily', heldTo));
}

/** A period of REST, which proves nothing about a symbol, with the reason that earlier runs or the archive have proven. */
export function withProven(
  context: Pick<ProofContext, 'absences' | 'known'> & { readonly end?: number | undefined },
  choice: Choice,
): Choice {
  const { period, held, listed, key } = choice;
  const { end = Infinity } = context;
  if (held === undefined && period.from >= end)
    return { period, absent: 'delisted', sinceDay: end, key: key ?? listed?.key ?? '' };
  const absent = held === undefined ? provenBefore(context, period) : undefined;
  // What REST keeps changes each day.
  if (absent === undefined || absent === 'before-history') return choice;
  if (listed?.rest === undefined) return { ...choice, absent };
  return { ...choice, absent, listed: { ...listed, rest: { ...listed.rest, reasonIfEmpty: absent } } };
}

/** The reason that an earlier run recorded, if it is one of these and its wait is not over. */
function recordedReason(
  context: ProofContext,
  period: Period,
  reasons: readonly AbsenceReason[],
): AbsenceReason | undefined {
  const { absences, nowMs, force } = context;
  const absence = force ? undefined : absences.of(period);
  const isWaiting = absence !== undefined && reasons.includes(absence.reason) && !isDue(absence, nowMs);
  return isWaiting ? recordedOf(context, period) : undefined;
}

/**
 * The datasets of a symbol begin together, but not before a dataset as a whole; where the configuration does not know its first day, that of
 * other symbols counts. Of a series without objects in this cadence, each period may still be published.
 */
async function startReason(
  context: ProofContext,
  listing: SeriesListing,
  period: Period,
): Promise<AbsenceReason> {
  const recorded = recordedReason(context, period, ['not-listed-yet', 'before-history', 'hole']);
  if (recorded !== undefined) return recorded;
  const first = await context.life.firstDay(context.series);
  if (first !== undefined && period.to <= first) return 'not-listed-yet';
  const isStartKnown = context.spans[period.cadence]?.first !== undefined;
  const start = isStartKnown ? undefined : await context.life.datasetStart(context.series);
  if (start !== undefined && period.to <= start) return 'before-history';
  if (first === undefined) return provenBefore(context, period) ?? 'unknown';
  return listing.first === undefined ? 'not-published-yet' : 'hole';
}

/** A symbol is delisted if all of its datasets end together while others of the market go on. */
async function endReason(context: ProofContext, listing: SeriesListing, period: Period): Promise<Proof> {
  const { series, life } = context;
  const { cadence } = period;
  const open: Proof = { absent: 'not-published-yet', ...(listing.last && { sinceDay: listing.last.to }) };
  const listed =
    listing.last?.to ?? Math.max(listing.startDay ?? period.from, listing.first?.to ?? period.from);
  // Rows of REST after the last object are trading too. A held month may end with its last row, whose label may be that of the end of its interval.
  const held = context.known.spans().at(-1);
  const isLong = hasLongBars(findDataset(context.exchange, series.market, series.dataset), series.interval);
  const rowDay = isLong ? NaN : dayOf(Date.parse(held?.facts.last ?? ''), context.exchange);
  const heldTo = Math.min(held?.to ?? -Infinity, Number.isNaN(rowDay) ? Infinity : rowDay + 1);
  const last = Math.max(listed, heldTo);
  const recorded = recordedEnd(context, cadence, last);
  if (recorded !== undefined && period.from >= recorded) return { absent: 'delisted', sinceDay: recorded };
  const end = await life.end(series, cadence, last);
  if (end !== undefined && period.from >= end) {
    const { from, to } = periodAt(cadence, end);
    return { absent: 'delisted', sinceDay: from === end ? from : to };
  }
  return (await isInPause(context, period, last)) ? { absent: 'not-traded' } : open;
}

/** Whether a late period lies in a pause that has ended: other series of the symbol went on, and this one does not tell yet. */
async function isInPause(context: ProofContext, period: Period, last: number): Promise<boolean> {
  if (recordedReason(context, period, ['not-traded']) !== undefined) return true;
  if (context.nowMs < period.to * DAY_MS + LATE_MS[period.cadence]) return false;
  const pauses = await context.life.endedPauses(context.series, period.cadence, last);
  return isPaused(context, period, pauses);
}

/** Whether no bar of a period is expected: one of several days may end after the period, and after the pause. */
function isPaused(
  { known, series, exchange }: ProofContext,
  period: Period,
  pauses: readonly DayRange[],
): boolean {
  const bars = barOpenings(known.spans(), series.interval, exchange);
  return pauses.some(({ from, to }) => from <= period.from && period.to <= bars.endOfPause(to));
}

/** The first period after the last listed one that is recorded as delisted. */
function recordedEnd(context: ProofContext, cadence: Cadence, last: number): number | undefined {
  const later = context.absences
    .periods()
    .filter((period) => period.cadence === cadence && period.from >= last)
    .filter((period) => recordedReason(context, period, ['delisted']) !== undefined);
  return later.length === 0 ? undefined : Math.min(...later.map(({ from }) => from));
}

/** A symbol without objects of any dataset for a month, while others of the market go on, was listed twice or suspended. */
async function holeReason(
  context: ProofContext,
  listing: SeriesListing,
  period: Period,
): Promise<AbsenceReason> {
  const recorded = recordedReason(context, period, ['not-traded', 'hole']);
  if (recorded !== undefined) return recorded;
  let [from, to] = [listing.startDay ?? listing.first?.to ?? period.from, Infinity];
  for (const { period: other } of listing.objects.values()) {
    if (other.to <= period.from) from = Math.max(from, other.to);
    if (other.from >= period.to) to = Math.min(to, other.from);
  }
  if (to === Infinity) return 'hole';
  const pauses = await context.life.pauses(context.series, period.cadence, from, to);
  return isPaused(context, period, pauses) ? 'not-traded' : 'hole';
}
