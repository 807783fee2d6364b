/** Concludes a run: its status, its numbers, and the paths that its last lines name. */
import type { CryptodlError } from '../model/errors.js';
import type { RunEnd } from '../report/run-summary.js';
import type { Tally } from '../report/tally.js';
import { lakeFlag, shellWord, shownPath } from '../text/printable.js';
import type { PlanTotals } from '../model/task.js';
import type { Session } from './session.js';

export interface Ending {
  readonly totals: PlanTotals;
  readonly dataPath: string;
  readonly ended: CryptodlError | undefined;
  readonly reportPath: string | undefined;
  readonly isCut: boolean;
}

export function concludeRun(
  session: Pick<Session, 'network' | 'options' | 'paths' | 'tally' | 'times'>,
  ending: Ending,
): RunEnd {
  const { tally, options } = session;
  const { totals, ended, dataPath } = ending;
  const settled = Object.values(tally.outcomes).reduce((sum, count) => sum + count, 0);
  const hasFailed = tally.outcomes.failed > 0;
  return {
    status: {
      ended: ended?.code,
      signal: undefined,
      waitedTooLong: tally.waitedTooLong,
      failedRetryable: tally.failedRetryable + (ending.isCut ? 1 : 0),
      failedPermanent: tally.failedPermanent + tally.skippedPaths,
      holes: tally.absentBy.hole ?? 0,
      partial: tally.outcomes.partial,
      strict: options.strict,
      written: tally.outcomes.ok + tally.outcomes.partial - tally.shorter,
      nothingIsError: options.errorOnNothing,
    },
    tally,
    network: session.network(),
    times: session.times.figures,
    ended,
    undone: ended === undefined ? 0 : Math.max(0, totals.fetch + totals.skip + totals.absent - settled),
    shard: options.shard?.text,
    dataPath: shownPath(dataPath),
    reportPath: ending.reportPath === undefined || !hasFailed ? undefined : ending.reportPath,
    quarantinePath: tally.quarantined > 0 ? shownPath(session.paths.quarantine) : undefined,
    query: tally.files > 0 ? queryLine(tally.written, session.paths.root) : undefined,
    alerts: [],
  };
}

/** A line for a shell. */
function queryLine(written: Tally['written'], root: string): string | undefined {
  if (written === undefined) return undefined;
  const { series, format } = written;
  const lake = shownPath(root);
  if (format === 'zip') return `cryptodl serve ${shellWord(lake)}`;
  // A view has all intervals of its dataset.
  const columns = series.interval === undefined ? 'symbol' : 'symbol, interval';
  const query = `SELECT ${columns}, count(*) AS rows FROM ${series.market}_${series.dataset} GROUP BY ALL`;
  return `cryptodl sql ${shellWord(query)}${lakeFlag(root)}`;
}
