/** `cryptodl repair`: fixes the lake, then plans the lost objects and the missing days like any other run. */
import type { RunSession, Session } from '../session/session.js';
import { FORMATS, seriesName, type Series, type Format, type Period } from '../../model/task.js';
import { Counters, type Counts } from '../../model/counters.js';
import { countText } from '../../model/units.js';
import type { Resolved } from '../../plan/options/resolve.js';
import type { SelectedSeries } from '../../plan/series-request.js';
import { selectHeldSeries, nothingHeld } from '../../plan/select/held-series.js';
import type { RunSelection } from '../../plan/select/selection.js';
import { findDataset, isMade, isArchived, type DatasetSpec } from '../../exchange/exchange-spec.js';
import { shellWord } from '../../text/printable.js';
import { checkLake } from './check-lake.js';
import type { LakeFindingKind, LakeFinding } from './lake-finding.js';
import { cadencesOf, periodOf } from '../../exchange/keys.js';
import type { HeldObjects } from '../../lake/held-objects.js';
import { dayOf, dayPeriod, monthOf, parsePeriod } from '../../model/calendar.js';
import { isFromRest, type ObjectLine } from '../../model/manifest-line.js';
import type { RestOffer } from '../../plan/rest-evidence.js';
import { restOffer } from '../../plan/select/rest-offer.js';
import type { SeriesCheck } from './check-series.js';
import type { Absences } from '../../lake/absences.js';
import { rangesOf, spansOf } from '../../lake/catalogue/spans.js';
import { REASON_FACTS } from '../../model/absence-reasons.js';
import { heldCuts } from '../../lake/catalogue/cut-days.js';

/** A dry run changes nothing; any other run must hold the lake's lock. Throws usage errors. */
export async function selectRepairs(session: RunSession, resolved: Resolved<never>): Promise<RunSelection> {
  const { options, exchange } = session;
  const selection = await selectHeldSeries(session, resolved);
  const requests: SelectedSeries[] = [];
  const found = new Counters<LakeFindingKind>();
  let seriesCount = 0;
  let hasEvidence = false;
  const fix = !options.dryRun;
  for await (const { check, findings } of checkLake(session, { selection, fix })) {
    for (const finding of findings) {
      found.add(finding.kind);
      hasEvidence ||= finding.done?.includes('kept in ') === true;
      tellFinding(session, finding, fix);
    }
    if (check === undefined) continue;
    seriesCount += 1;
    const { series } = check.folder;
    const { dropped, newer } = check.inspected;
    const spec = findDataset(exchange, series.market, series.dataset);
    // A line of a later version may hold what seems to be missing, and no run of this version can write the series.
    if (spec === undefined || newer.length > 0) continue;
    if (isMade(spec)) {
      if (check.broken.length + dropped.length > 0) session.observer.warn(barsAgain(series, options.out));
      continue;
    }
    for (const format of FORMATS)
      if (selection.format === undefined || format === selection.format)
        requests.push(...repairRequest(session, check, spec, format));
  }
  if (seriesCount === 0 && selection.names?.size !== 0) throw nothingHeld(options.out);
  const days = requests.flatMap(({ ranges }) => ranges).reduce((sum, { from, to }) => sum + to - from, 0);
  return {
    verb: 'repair',
    requests,
    hasListing: true,
    what: 'repair',
    idle: `nothing is missing in the ${seriesCount} series of the ${options.shard === undefined ? 'lake' : 'shard'}`,
    range: `${countText(days, 'day')}; the lake has ${countText(seriesCount, 'series')}`,
    notes: foundNotes(found.all, hasEvidence),
  };
}

/** Reports a finding. Counts and warns of one that the run leaves as it is. */
function tellFinding({ observer, tally }: Session, finding: LakeFinding, fix: boolean): void {
  observer.event('finding', finding);
  // After a fix, `fix` is left only for a file that was changed in the last minutes: another run may be writing it.
  const isLeft = fix && finding.left === 'fix';
  const remedy = isLeft ? 'wait for it' : SKIPPED[finding.kind];
  if (remedy === undefined) return;
  tally.add('skippedPaths');
  observer.warn(`${finding.path} was not changed: ${finding.text}; ${remedy}, then run repair again`);
}

/** No download has bars: they are made again from other rows of the lake. */
function barsAgain(series: Series, out: string): string {
  const { market, dataset, interval = '', symbol } = series;
  const words = [dataset, interval, '--market', market, '--symbols', symbol, '--out', out];
  return `${seriesName(series)} has lost bars, and no download has them; to make them again: cryptodl ${words.map(shellWord).join(' ')}`;
}

/** Findings that `repair` leaves as they are, although data may be missing behind them, with the step that a person must do. */
const SKIPPED: Readonly<Partial<Record<LakeFindingKind, string>>> = {
  unreadable: 'make it readable or move it away',
  link: 'replace the link by the folder or file itself',
  'line-newer': 'use the newer cryptodl that wrote it',
};

function foundNotes(found: Counts, hasEvidence: boolean): string[] {
  const parts = Object.entries(found).map(([kind, number]) => `${number} ${kind}`);
  if (parts.length === 0) return [];
  return [`found      ${parts.join(', ')}${hasEvidence ? '; damaged files are kept in _quarantine/' : ''}`];
}

// The series request of `repair` for a checked series: its lost objects and its missing days.

/** Empty when there is nothing to repair, or when the settings of the files are not known. */
function repairRequest(
  session: Session,
  check: SeriesCheck,
  spec: DatasetSpec,
  format: Format,
): SelectedSeries[] {
  const { exchange, nowMs } = session;
  const { series } = check.folder;
  const { manifest } = check.inspected;
  const held = manifest[format];
  const today = dayOf(nowMs, exchange);
  const dropped = check.inspected.dropped.filter((line) => line.format === format);
  const settings =
    held.newest()?.settings ?? dropped.findLast((line) => line.settings !== undefined)?.settings;
  if (settings === undefined) return [];
  const broken = check.broken.filter((line) => line.settings.format === format);
  const facts = { held, absences: manifest.absences };
  const others = [
    ...dropped
      .flatMap(({ key }) => periodOf({ exchange, series }, key) ?? [])
      .filter((one) => !isHeld(held, one)),
    ...heldCuts(facts, { spec, today }).map(({ day }) => dayPeriod(day)),
  ];
  const ranges = daysToRepair(facts, { broken, others, today });
  if (ranges.length === 0) return [];
  const request: SelectedSeries = {
    series,
    settings,
    cadences: cadencesOf(spec, series.interval, settings.cadence),
    ranges,
    broken: new Set(broken.map(({ file }) => file)),
    exact: true,
    // The rows of the held days are compared with those of the month. A broken file has none, because it is rebuilt.
    ...(broken.length === 0 && settings.partition === 'month' && format !== 'zip'
      ? { fillsHolesFromMonths: true }
      : {}),
    rest: format === 'zip' ? undefined : restOf(session, series, spec, held),
  };
  return [request];
}

/** REST repairs series that came only from REST. For other series, it fills gaps of the archive. */
function restOf(
  { exchange, nowMs }: Session,
  series: Series,
  spec: DatasetSpec,
  held: HeldObjects,
): RestOffer | undefined {
  const isRestOnly = held.size > 0 && held.spans().every(({ facts }) => isFromRest(facts));
  const mode = !isArchived(spec) || isRestOnly ? 'only' : 'fill';
  return restOffer(series, { exchange, nowMs, mode, includeToday: false, standsIn: true });
}

function isHeld(held: HeldObjects, period: Period): boolean {
  if (held.ofMonth(monthOf(period.from)) !== undefined) return true;
  for (let day = period.from; day < period.to; day += 1) if (!held.hasDay(day)) return false;
  return true;
}

/**
 * The days of a series that `repair` fetches: days missing between the first and the last day that it holds or has lost, holes, days whose last fetch
 * failed and that it does not hold, days of incomplete objects, and `others`, all of them before today; and the days of broken files. The spans are
 * half-open, ascending and disjoint.
 */
function daysToRepair(
  { held, absences }: { readonly held: HeldObjects; readonly absences: Absences },
  { broken, others, today }: { broken: readonly ObjectLine[]; others: readonly Period[]; today: number },
): { from: number; to: number }[] {
  const lines = held.lines();
  const days = new Set<number>();
  const add = ({ from, to }: Pick<Period, 'from' | 'to'>, end = today): void => {
    for (let day = from; day < Math.min(to, end); day += 1) days.add(day);
  };
  // Also days after today: a line of such a day is wrong, and only its failed fetch tells the user.
  for (const period of periodsOfLines(broken)) add(period, period.to);
  // Objects that lacked rows when they were fetched.
  const incomplete = lines.filter(({ open, gaps }) => open === true || (gaps?.length ?? 0) > 0);
  for (const period of periodsOfLines(incomplete)) add(period);
  for (const period of others) add(period);
  // `check` names repair for each of them, also for those before or after all held days.
  for (const [day, { reason }] of absences.days())
    if (reason === 'hole' && !isHeld(held, dayPeriod(day))) add(dayPeriod(day));
  for (const period of absences.failed()) if (!isHeld(held, period)) add(period);
  const periods = [...periodsOfLines(lines), ...others];
  const first = Math.min(...periods.map(({ from }) => from));
  const last = Math.max(...periods.map(({ to }) => to));
  for (let day = first; day < last; day += 1) {
    const known = absences.days().get(day) ?? absences.months().get(monthOf(day));
    const mayCome = known === undefined || REASON_FACTS[known.reason].mayCome;
    if (mayCome && !isHeld(held, dayPeriod(day))) add(dayPeriod(day));
  }
  return rangesOf(spansOf([...days].map(dayPeriod)));
}

const periodsOfLines = (lines: readonly ObjectLine[]): Period[] =>
  lines.flatMap((line) => parsePeriod(line.cadence, line.period) ?? []);
