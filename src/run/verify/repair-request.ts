/** The series request of `repair` for a checked series: its lost objects and its missing days. */
import { cadencesOf, periodOf } from '../../exchange/keys.js';
import { isArchived, type DatasetSpec } from '../../exchange/exchange-spec.js';
import type { HeldObjects } from '../../lake/held-objects.js';
import { dayOf, dayPeriod } from '../../model/calendar.js';
import { isFromRest } from '../../model/manifest-line.js';
import type { Format, Series } from '../../model/task.js';
import type { RestOffer } from '../../plan/rest-evidence.js';
import { restOffer } from '../../plan/select/rest-offer.js';
import type { SelectedSeries } from '../../plan/series-request.js';
import type { Session } from '../session/session.js';
import type { SeriesCheck } from './check-series.js';
import { daysToRepair, isHeld } from './days-to-repair.js';
import { heldCuts } from '../../lake/catalogue/held-cuts.js';

/** Empty when there is nothing to repair, or when the settings of the files are not known. */
export function repairRequest(
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
