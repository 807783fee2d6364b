/** The jobs of a download: for `enqueue`, and for a worker that does a job of a schedule. */
import { openSession } from '../download/session.js';
import type { SessionRequest } from '../download/session.js';
import { dayOf } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { SILENT_OBSERVER } from '../model/observer.js';
import type { Resolved } from '../options/resolve.js';
import type { ReadList } from '../options/symbols.js';
import type { SeriesRequest } from '../plan/series-request.js';
import { selectMetrics } from '../select/select-metrics.js';
import { selectSeries } from '../select/select-series.js';
import { ofShard } from '../select/selection.js';
import { jobOptions } from './job-data.js';
import type { JobData, JobVerb } from './job-data.js';
import { splitSeries } from './split-series.js';

type SelectContext = Pick<SessionRequest, 'source' | 'surroundings' | 'clock' | 'signal' | 'pipeline'> & {
  readonly read: ReadList;
  readonly warn: (message: string) => void;
  /** Takes notes about the selection. */
  readonly note: (lines: readonly string[]) => void;
};

export interface Selected {
  readonly requests: readonly SeriesRequest[];
  /** The jobs, newest periods first. `out`: their lake, an address or an absolute path. */
  readonly jobs: (out: string) => Iterable<JobData>;
}

/**
 * Sends the requests of the selection: listings of symbols, but nothing for a single series. `resolved`: the options of the verb. Throws
 * usage errors, and rejects with errors of the requests.
 */
export async function selectRequests(
  verb: JobVerb,
  resolved: Resolved,
  { source, surroundings, clock, signal, pipeline, read, warn, note }: SelectContext,
): Promise<Selected> {
  const session = openSession({
    source,
    resolved,
    surroundings,
    observer: { ...SILENT_OBSERVER, warn },
    clock,
    verb,
    signal,
    pipeline,
  });
  try {
    await session.refuseBanned(verb);
    const select = verb === 'metrics' ? selectMetrics : selectSeries;
    const { requests, notes } = ofShard(session, await select(session, resolved, read));
    note(notes);
    if (requests.length === 0) throw usage('no series is selected', 'cryptodl list symbols shows the names');
    const today = dayOf(session.nowMs, source);
    return {
      requests,
      jobs: (out) =>
        splitSeries(requests, {
          verb,
          venue: source,
          today,
          shared: { ...jobOptions(resolved.texts), out: [out] },
        }),
    };
  } finally {
    await session.close();
  }
}
