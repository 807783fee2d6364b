/** Without a current listing: requests the sidecars that should exist according to the calendar. */
import { DAY_MS, dayPeriod, dayText, monthOf, monthPeriod } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { ArchiveObject, Cadence, PartitionPlan, Period, Series, Task } from '../model/task.js';
import type { Source } from '../source/source.js';
import { mapOrdered } from '../queue/in-order.js';
import type { SeriesListing, Want } from './series-listing.js';

/** Whether the sidecar of a key exists. Rejects with `unreachable` without an answer. */
export type Probe = (key: string) => Promise<boolean>;

const PROBES_AT_ONCE = 16;
/** So many of the newest days are probed if the listing lags. */
export const LAG_DAYS = 3;

/** Returns the same as `listSeries`, by probing each selected period. Throws `unreachable` for an open start. */
export async function probeSeries(
  probe: Probe,
  venue: Source,
  series: Series,
  cadence: Cadence,
  want: Want,
): Promise<SeriesListing> {
  if (want.from === undefined) {
    throw new CryptodlError(
      'unreachable',
      'the listing cannot be had, so the start of a series is not known',
      {
        hint: `try again, or give --from, for example --from ${dayText(want.to - 1)}`,
      },
    );
  }
  const objects = new Map<number, ArchiveObject>();
  let first: Period | undefined;
  let last: Period | undefined;
  const found = mapOrdered(periods(cadence, want.from, want.to), PROBES_AT_ONCE, async (period) => {
    const key = venue.archive.objectKey(series, period);
    // A month is published after its end. Without an answer, the object counts as existing.
    return period.to <= want.today && (await probe(key)) ? { key, period } : undefined;
  });
  for await (const object of found) {
    if (object === undefined) continue;
    first ??= object.period;
    last = object.period;
    objects.set(object.period.from, object);
  }
  return { objects, first, last, more: false, isProbed: true };
}

function periods(cadence: Cadence, from: number, to: number): Period[] {
  const found: Period[] = [];
  for (let day = from; day < to; day = found.at(-1)?.to ?? to) {
    found.push(cadence === 'daily' ? dayPeriod(day) : monthPeriod(monthOf(day)));
  }
  return found;
}

/** Periods that a copy of the listing may lack: the newest days, and months that were published after it. */
const SINCE_DAYS: Readonly<Record<Cadence, number>> = { daily: LAG_DAYS, monthly: 35 };

/** If a copy replaced the listing, probes the periods that may have been published since then. */
export async function withNewerProbed(
  probe: Probe,
  venue: Source,
  series: Series,
  { cadence, listed, want }: { cadence: Cadence; listed: SeriesListing; want: Want },
): Promise<SeriesListing> {
  const { copiedAt, last, more } = listed;
  if (copiedAt === undefined || more) return listed;
  const since = Math.floor(copiedAt / DAY_MS) - SINCE_DAYS[cadence];
  const from = Math.max(since, last?.to ?? since, want.from ?? since);
  if (from >= want.to) return listed;
  const newer = await probeSeries(probe, venue, series, cadence, { ...want, from });
  return {
    ...listed,
    objects: new Map([...listed.objects, ...newer.objects]),
    first: listed.first ?? newer.first,
    last: newer.last ?? last,
  };
}

/** Probes the newest days that a lagging listing lacks. */
export async function probeNewest(probe: Probe, plan: PartitionPlan, today: number): Promise<PartitionPlan> {
  const tasks = await Promise.all(
    plan.tasks.map(async (task): Promise<Task> => {
      const { period, key } = task.object;
      const isNewest = period.cadence === 'daily' && period.from >= today - LAG_DAYS;
      if (task.action.kind !== 'absent' || !isNewest || !(await probe(key))) return task;
      return { ...task, action: { kind: 'fetch' } };
    }),
  );
  return { ...plan, tasks };
}
