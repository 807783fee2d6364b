/** `cryptodl repair`: what is wrong is put aside; that and what is missing in between is planned like any other run. */
import { join } from 'node:path';
import { heldCuts } from '../download/cut-days.js';
import type { Session } from '../download/session.js';
import type { DroppedLine } from '../lake/manifest-line.js';
import { isFromRest } from '../lake/manifest.js';
import type { Held } from '../lake/manifest.js';
import { dayOf, dayPeriod } from '../model/calendar.js';
import type { Format, Period, Series, Settings } from '../model/task.js';
import { countText } from '../model/units.js';
import type { Resolved } from '../options/resolve.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import { shortMonthsOf } from '../plan/short-months.js';
import { chooseHeld, nothingHeld } from '../select/held-series.js';
import { restOffer } from '../select/rest-offer.js';
import type { Wanted } from '../select/selection.js';
import type { ReadList } from '../select/symbol-patterns.js';
import { cadencesOf } from '../source/keys.js';
import { findDataset, isArchived } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { checkLake } from './check-lake.js';
import type { Checked } from './check-lake.js';
import { FORMATS } from './check-series.js';
import type { FindingKind } from './finding.js';
import { isHeld, missingDays, periodOf } from './lost-objects.js';

/** A dry run looks and plans; otherwise only under the lake's lock. Throws usage errors. */
export async function wantRepairs(session: Session, resolved: Resolved, read: ReadList): Promise<Wanted> {
  const { options, paths, venue } = session;
  const selection = await chooseHeld(session, resolved, read);
  const requests: SeriesRequest[] = [];
  const found: Partial<Record<FindingKind, number>> = {};
  let series = 0;
  let hasEvidence = false;
  const how = { deep: options.deep, upstream: options.upstream };
  const mode = options.dryRun ? 'plan' : 'fix';
  for await (const checked of checkLake(session, { selection, ...how, mode })) {
    for (const finding of checked.findings) {
      found[finding.kind] = (found[finding.kind] ?? 0) + 1;
      hasEvidence ||= finding.done !== undefined;
      session.observer.event('finding', finding);
      if (finding.kind !== 'unreadable') continue;
      session.tally.unreadable += 1;
      session.observer.warn(
        `${finding.path} is left as it is: ${finding.text}; make it readable or move it away, and repair again`,
      );
    }
    if (checked.check === undefined) continue;
    series += 1;
    requests.push(...requestsOf(session, checked, selection.format));
  }
  if (series === 0) throw nothingHeld(options.out);
  const days = requests.reduce(
    (sum, { ranges }) => sum + ranges.reduce((total, { from = 0, to }) => total + to - from, 0),
    0,
  );
  return {
    verb: 'repair',
    requests,
    hasListing: true,
    what: `repair of ${options.out}`,
    idle: `nothing is missing, of ${series} series held`,
    range: `${countText(days, 'day')} of ${countText(requests.length, 'series')}, of ${series} held`,
    notes: foundNotes(found, hasEvidence),
    ended: [],
    dataPath: join(paths.root, venue.name),
    query: undefined,
  };
}

function foundNotes(found: Partial<Record<FindingKind, number>>, hasEvidence: boolean): string[] {
  const parts = Object.entries(found).map(([kind, number]) => `${number} ${kind}`);
  if (parts.length === 0) return [];
  return [`found      ${parts.join(', ')}${hasEvidence ? ': evidence is kept in quarantine' : ''}`];
}

function requestsOf(session: Session, checked: Checked, format: Format | undefined): SeriesRequest[] {
  const { check } = checked;
  if (check === undefined) return [];
  const { series } = check.folder;
  const spec = findDataset(session.venue, series.market, series.dataset);
  if (spec === undefined) return [];
  const formats = FORMATS.filter((name) => format === undefined || name === format);
  return formats.flatMap((name) => requestOf(session, checked, spec, name) ?? []);
}

/** Undefined when nothing is missing. */
function requestOf(
  session: Session,
  { check, findings, dropped: now }: Checked,
  spec: DatasetSpec,
  format: Format,
): SeriesRequest | undefined {
  if (check === undefined) return undefined;
  const { series } = check.folder;
  const { manifest, dropped: before } = check.inspected;
  const held = manifest[format];
  const dropped = [...before, ...now].filter((line) => line.format === format);
  const settings = held.lines().at(-1)?.settings ?? settingsIn(dropped);
  if (settings === undefined) return undefined;
  const revised = findings.filter((finding) => finding.kind === 'revised').map(({ path }) => path);
  const broken = check.broken.filter((line) => line.settings.format === format);
  const ranges = missingDays({
    held,
    absences: manifest.absences,
    broken,
    others: [
      ...periodsIn(
        session,
        series,
        dropped.map(({ key }) => key),
      ).filter((period) => !isHeld(held, period)),
      ...periodsIn(session, series, revised).filter((period) => isHeld(held, period)),
      ...heldCuts(session, series, manifest, format).map(({ day }) => dayPeriod(day)),
    ],
    today: dayOf(session.nowMs),
  });
  if (ranges.length === 0) return undefined;
  return {
    series,
    settings,
    cadences: cadencesOf(spec, series.interval, settings.cadence),
    ranges,
    broken: new Set(broken.map(({ file }) => file)),
    exact: true,
    ...(spec.cadences.includes('daily') ? { shortMonths: shortMonthsOf(held) } : {}),
    // A file that is made anew has no rows that a month could be compared with.
    ...(broken.length === 0 && settings.partition === 'month' && format !== 'zip'
      ? { fillsHolesFromMonths: true }
      : {}),
    ...restOf(session, series, spec, { held, format }),
  };
}

function settingsIn(dropped: readonly DroppedLine[]): Settings | undefined {
  return dropped.findLast(({ settings }) => settings !== undefined)?.settings;
}

function periodsIn({ venue }: Session, series: Series, keys: readonly string[]): Period[] {
  return keys.flatMap((key) => periodOf({ venue, series }, key) ?? []);
}

/** What is only from REST stays so; elsewhere REST fills what the archive has not got. */
function restOf(
  { venue, nowMs }: Session,
  series: Series,
  spec: DatasetSpec,
  { held, format }: { readonly held: Held; readonly format: Format },
): Pick<SeriesRequest, 'rest'> {
  if (format === 'zip') return {};
  const isRestOnly = held.size > 0 && held.lines().every(isFromRest);
  const mode = !isArchived(spec) || isRestOnly ? 'only' : 'fill';
  const rest = restOffer(series, { venue, nowMs, mode, includeToday: false, standsIn: true });
  return rest === undefined ? {} : { rest };
}
