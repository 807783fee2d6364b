/** The end of a run: its status, its numbers, and the paths that its last lines name. */
import { join } from 'node:path';
import type { PlanTotals } from '../model/task.js';
import { lakeFlag, shellWord, shownPath } from '../text/printable.js';
import type { RunEnd } from './report/run-summary.js';
import type { Tally } from './report/tally.js';
import type { RunSession } from './session/session.js';

/** `ended`: the error that ended the run early. `isCut`: the report that a retry repeats has a line that cannot be read. */
export function concludeRun(
  session: RunSession,
  totals: PlanTotals,
  { ended, reportPath, isCut }: Pick<RunEnd, 'ended' | 'reportPath'> & { readonly isCut: boolean },
): RunEnd {
  const { tally, options } = session;
  const hasFailed = tally.of('outcome.failed') > 0;
  return {
    status: {
      ended: ended?.code,
      ...tally.status,
      failedRetryable: tally.of('failedRetryable') + (isCut ? 1 : 0),
      strict: options.strict,
      written: tally.of('outcome.ok') + tally.of('outcome.partial') - tally.of('shorter'),
      nothingIsError: options.errorOnNothing,
    },
    tally,
    network: session.network(),
    times: session.live.times,
    ended,
    undone: ended === undefined ? 0 : session.live.objects.undone,
    shard: options.shard?.text,
    dataPath: shownPath(dataPath(session, totals)),
    reportPath: hasFailed ? reportPath : undefined,
    quarantinePath: tally.of('quarantined') > 0 ? shownPath(session.paths.quarantine) : undefined,
    query: tally.of('files') > 0 ? queryLine(tally.written, session.paths.root) : undefined,
    alerts: [],
  };
}

function dataPath({ paths: { root }, exchange }: RunSession, { formats, fetchBy }: PlanTotals): string {
  if (formats.length === 1 && formats[0] === 'zip') return join(root, exchange.archive.topFolder);
  const [first = [], ...others] = Object.keys(fetchBy).map((name) => name.split(' '));
  const same = first.filter((_, at) =>
    others.every((other) => other.slice(0, at + 1).join(' ') === first.slice(0, at + 1).join(' ')),
  );
  return join(root, exchange.name, ...same);
}

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
