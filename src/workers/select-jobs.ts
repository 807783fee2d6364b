/** The jobs of a download, for `enqueue`. */
import { openSession } from '../download/session.js';
import type { SessionRequest } from '../download/session.js';
import { dayOf } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { SILENT_OBSERVER } from '../model/observer.js';
import type { Resolved } from '../options/resolve.js';
import type { ReadList } from '../options/symbols.js';
import { selectMetrics } from '../select/select-metrics.js';
import { selectSeries } from '../select/select-series.js';
import { ofShard } from '../select/selection.js';
import { jobOptions } from './job-data.js';
import type { JobData, JobVerb } from './job-data.js';
import { splitSeries } from './split-series.js';

type SelectContext = Pick<SessionRequest, 'source' | 'surroundings' | 'clock' | 'signal'> & {
  readonly read: ReadList;
  readonly warn: (message: string) => void;
  /** Takes notes about the selection. */
  readonly note: (lines: readonly string[]) => void;
};

interface SelectedJobs {
  /** The number of selected series. */
  readonly series: number;
  /** Newest periods first. */
  readonly jobs: Iterable<JobData>;
}

/**
 * Sends the requests of the selection: listings of symbols, but nothing for a single series. `resolved`: the options of the verb. `out`:
 * the lake of the jobs, an address or an absolute path. Throws usage errors, and rejects with errors of the requests.
 */
export async function selectJobs(
  verb: JobVerb,
  resolved: Resolved,
  out: string,
  { source, surroundings, clock, signal, read, warn, note }: SelectContext,
): Promise<SelectedJobs> {
  const session = openSession({
    source,
    resolved,
    surroundings,
    observer: { ...SILENT_OBSERVER, warn },
    clock,
    verb,
    signal,
  });
  try {
    await session.refuseBanned(verb);
    const select = verb === 'metrics' ? selectMetrics : selectSeries;
    const { requests, notes } = ofShard(session, await select(session, resolved, read));
    note(notes);
    if (requests.length === 0) throw usage('no series is selected', 'cryptodl list symbols shows the names');
    const jobs = splitSeries(requests, {
      verb,
      venue: source,
      today: dayOf(session.nowMs, source),
      shared: { ...jobOptions(resolved.texts), out: [out] },
    });
    return { series: requests.length, jobs };
  } finally {
    await session.close();
  }
}
