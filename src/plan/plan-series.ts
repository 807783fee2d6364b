/** Plans one series: listing and manifest become partition plans. */
import { isFromRest } from '../model/manifest-line.js';
import { haltsOf } from '../lake/catalogue/catalogue.js';
import { DAY_SECONDS } from '../model/units.js';
import { intersect, rangesOf, spansOf, subtract, type DayRange } from '../lake/catalogue/spans.js';
import { heldCuts } from '../lake/catalogue/cut-days.js';
import { isRestDue } from '../lake/absences.js';
import type { Absences } from '../lake/absences.js';
import { HeldObjects } from '../lake/held-objects.js';
import type { Manifest } from '../lake/manifest.js';
import { checkSettings, differingSettings } from '../lake/settings.js';
import { grouped, memoized } from '../model/by-name.js';
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { SourceObject, Cadence, PartitionPlan, Period, Series, Settings } from '../model/task.js';
import { TOOL_VERSION } from '../model/version.js';
import { findDataset, hasLongBars } from '../exchange/exchange-spec.js';
import { chooseObjects, chooseWithRevised, withoutUnlisted, partitionLabel } from './choose-objects.js';
import type { Choice, ChooseContext } from './choose-objects.js';
import { withRecheckedDays, withLackingDays } from './ranges-to-plan.js';
import { decidePartition } from './decide.js';
import { endInArchive, proveAbsences, withProven } from './prove-absences.js';
import { mayLackEdges } from './prove-edges.js';
import { chooseFromRest, fillFromRest, joinPeriods } from './rest-periods.js';
import { withHeldSettings, type PlanContext, type SelectedSeries } from './series-request.js';
import type { SeriesListing, ListingRange } from './series-listing.js';

/** Rejects with a usage error if the settings differ from those of the held series, except with `force`. */
export async function planSeries(
  context: PlanContext,
  requested: SelectedSeries,
  { folder, manifest }: { readonly folder: string; readonly manifest: Manifest },
): Promise<PartitionPlan[]> {
  const request = await withHeldSettings(context.exchange, requested, manifest, context.datasetSettings);
  const { series, settings } = request;
  const held = manifest[settings.format];
  if (!context.force) checkSettings(series, folder, { held, requested: settings });
  const isMixed = differingSettings(held.settings(), settings).length > 0;
  const isChanged = isMixed && context.force;
  if (isChanged) refuseLostRest(request, held, folder);
  const isRewritten = isChanged || request.rewrites !== undefined;
  // Rewriting a series includes everything that it holds.
  const ranges = isChanged
    ? rangesOf(spansOf([...held.spans(), ...request.ranges]))
    : rangesToPlan(context, request, held, manifest.absences);
  if (ranges.length === 0) return [];
  // A rewritten series chooses its objects as if the lake were empty.
  const kept = isRewritten ? new HeldObjects() : held;
  const lines = { held: kept, known: held, absences: manifest.absences, keepsMonths: isMixed };
  const asked = isRewritten ? withoutSubstitutes(request) : request;
  const chosen = await chosenPeriods(context, asked, ranges, lines);
  const first = chosen.find((choice) => (choice.listed ?? choice.held) !== undefined)?.period.from;
  if (ranges[0]?.from === -Infinity && first !== undefined) context.starts.set(series, first);
  if (request.rewrites === 'when-days-have-more' && !haveMore(chosen, request.emptyDays)) return [];
  const onlyHeld = context.revisions === 'only' && request.rewrites === undefined;
  const partitions = grouped(
    chosen.filter((choice) => !onlyHeld || choice.held !== undefined),
    ({ period }) => partitionLabel(settings.partition, period),
  );
  const decide = {
    ...context,
    series,
    settings,
    held,
    folder: settings.format === 'zip' ? context.root : folder,
    ...(request.exact === true ? {} : { refusals: manifest.absences }),
    ...(request.broken === undefined ? {} : { broken: request.broken }),
    keyOf: (period: Period) => context.exchange.archive.objectKey(series, period),
  };
  const monthFiles = isRewritten || isMixed ? splitMonths(partitions, held, { settings, isRewritten }) : [];
  const plans = [...partitions].map(([label, choices]) => decidePartition(decide, label, choices));
  const split = monthFiles.map(([month, choices]) => decidePartition(decide, month, choices, true));
  const { emptyDays } = request;
  const decided = (await Promise.all([...split, ...plans])).map((plan) =>
    emptyDays === undefined ? plan : { ...plan, emptyDays },
  );
  return request.rest === undefined ? decided : joinPeriods(decided);
}

/** The ranges of a request, with the days that are checked again, and those that its order lacks. */
function rangesToPlan(
  context: PlanContext,
  { series, ranges, exact, sinceDay, rest, replaced = [] }: SelectedSeries,
  held: HeldObjects,
  absences: Absences,
): readonly DayRange[] {
  if (exact === true) {
    context.edges.add(series);
    return rangesOf(subtract(spansOf(ranges), spansOf(replaced)));
  }
  const checked = withRecheckedDays(context, ranges, held, absences);
  const { exchange, today } = context;
  const spec = findDataset(exchange, series.market, series.dataset);
  const cuts = heldCuts({ held, absences }, { spec, today });
  if (mayLackEdges(held, cuts, today)) context.edges.add(series);
  const isArchived = rest?.mode !== 'only';
  const lake = { held, absences, cuts: new Set(cuts.map(({ day }) => day)), isArchived };
  const lacking = withLackingDays(context, checked, sinceDay, lake);
  return rangesOf(subtract(spansOf(lacking), spansOf(replaced)));
}

/** In a rewritten series, rows of REST must not substitute held rows of the archive. */
function withoutSubstitutes({ rest, ...request }: SelectedSeries): SelectedSeries {
  if (rest === undefined) return request;
  const { substitutes: _, ...offer } = rest;
  return { ...request, rest: offer };
}

/** Rewriting needs all objects again. Throws a usage error if REST no longer has some of them. */
function refuseLostRest({ series, rest }: SelectedSeries, held: HeldObjects, folder: string): void {
  const { from: kept = Infinity } = rest ?? {};
  const unavailable = held.spans().find(({ from, facts }) => isFromRest(facts) && from < kept);
  if (unavailable === undefined) return;
  throw usage(
    `${seriesName(series)} in ${folder} holds ${unavailable.facts.period} from REST, and ${rest === undefined ? 'this run does not use REST' : 'REST no longer has it'}: the series cannot be rewritten`,
    `${rest === undefined ? 'add --fill rest, or ' : ''}choose another --out for other settings`,
  );
}

/** The choices. `held`: the objects that decide between daily and monthly objects. `known`: all held objects. */
async function chosenPeriods(
  context: PlanContext,
  { series, settings, cadences, rest, exact, fillsHolesFromMonths }: SelectedSeries,
  ranges: readonly DayRange[],
  lines: Pick<ChooseContext, 'held' | 'known' | 'keepsMonths'> & { readonly absences: Absences },
): Promise<readonly Choice[]> {
  const { held, known, absences } = lines;
  // A run requests recently absent periods from REST only when they are due.
  const isAsked = context.force || (exact === true && rest?.standsIn === undefined);
  const isRecentlyAbsent = (period: Period): boolean => {
    const absence = isAsked ? undefined : absences.of(period);
    return absence !== undefined && !isRestDue(absence, context.nowMs);
  };
  const fromRest = rest && { series, held, absences, isRecentlyAbsent, offer: rest };
  if (fromRest?.offer.mode === 'only') {
    const end = await endInArchive(context, series, { known, absences });
    return chooseFromRest(fromRest, ranges).map((choice) => withProven({ absences, known, end }, choice));
  }
  const spec = findDataset(context.exchange, series.market, series.dataset);
  const choose = {
    ...context,
    ...lines,
    cadences,
    partition: settings.partition,
    fillsHolesFromMonths,
    list: memoizedListing(context, series, ranges, known.end()),
    isRefused: (listed: SourceObject) => absences.refusalOf(settings.format, listed)?.tool === TOOL_VERSION,
    spans: spec?.spans ?? {},
    isHalted: (day: number) =>
      intersect(haltsOf(context.exchange, series), [day * DAY_SECONDS, (day + 1) * DAY_SECONDS]).length > 0,
  };
  const isRechecked = exact !== true && comparesRevisions(context, ranges);
  const choices = await (isRechecked ? chooseWithRevised : chooseObjects)(choose, ranges);
  const proven = await proveAbsences({ ...choose, series, offer: rest }, choices);
  const kept = hasLongBars(spec, series.interval) ? await withoutUnlisted(choose, proven) : proven;
  return fromRest === undefined ? kept : fillFromRest(fromRest, kept);
}

/** Whether a run of `ranges` compares the revisions of held objects with those that are listed. */
const comparesRevisions = (
  { today, recheckDays, revisions }: PlanContext,
  ranges: readonly DayRange[],
): boolean => revisions !== 'ignore' && ranges.some(({ to }) => to > today - recheckDays);

/** Whether the archive lists every day that is not in `emptyDays`, and at least one day that is. Without `emptyDays`: whether it lists any day. */
function haveMore(choices: readonly Choice[], emptyDays: readonly number[] | undefined): boolean {
  const listed = choices.filter((choice) => choice.listed !== undefined);
  if (emptyDays === undefined) return listed.length > 0;
  const isEmpty = ({ period }: Choice): boolean =>
    period.cadence === 'daily' && emptyDays.includes(period.from);
  return listed.some(isEmpty) && choices.every((choice) => choice.listed !== undefined || isEmpty(choice));
}

/**
 * Takes the days of a held month file out of the partitions, in a rewritten series also the other days of its month. Their files
 * replace the month file together or not at all.
 */
function splitMonths(
  partitions: Map<string, Choice[]>,
  held: HeldObjects,
  { settings, isRewritten }: { readonly settings: Settings; readonly isRewritten: boolean },
): [string, Choice[]][] {
  if (settings.partition !== 'day') return [];
  const split = [...partitions].filter(([label, choices]) => {
    const month = label.slice(0, 'YYYY-MM'.length);
    const file = `${month}.${settings.format}`;
    if (label === month || held.inFile(file).length === 0) return false;
    const isIn = ({ period }: Choice): boolean => held.overlapping(period).some((line) => line.file === file);
    return isRewritten || choices.some(isIn);
  });
  for (const [label] of split) partitions.delete(label);
  const choices = split.flatMap(([, ofLabel]) => ofLabel);
  return [...grouped(choices, ({ period }) => partitionLabel('month', period))];
}

function memoizedListing(
  context: PlanContext,
  series: Series,
  ranges: readonly DayRange[],
  heldTo: number | undefined,
): (cadence: Cadence) => Promise<SeriesListing> {
  const from = Math.min(...ranges.map((range) => range.from));
  const to = Math.max(...ranges.map((range) => range.to));
  const start = from === -Infinity ? undefined : from;
  const selected: ListingRange = { from: start, to, today: context.today, heldTo };
  const once = memoized<SeriesListing>();
  return (cadence) => once(cadence, () => context.listSeries(series, cadence, selected));
}
