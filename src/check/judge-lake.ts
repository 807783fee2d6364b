/** The verdict about a lake, for `cryptodl check`, the report, the metrics and the messages of runs. Writes nothing but the states that it keeps. */
import { heldSeries } from '../select/held-series.js';
import { readLastFailures } from '../select/select-failures.js';
import type { LakePaths } from '../lake/layout.js';
import { readOrders } from '../lake/orders.js';
import type { Clock } from '../model/clock.js';
import type { CryptodlError } from '../model/errors.js';
import type { Series } from '../model/task.js';
import { isRunning, lastRun } from '../monitor/run-history.js';
import type { VerdictSummary } from '../report/run-summary.js';
import type { Source } from '../source/source.js';
import { judgeOrders } from './judge-orders.js';
import type { JudgedOrder } from './judge-orders.js';
import { verdictText } from './print-check.js';
import { verdictOf } from './verdict.js';
import type { FoundOrders, Verdict } from './verdict.js';

interface JudgedLake {
  readonly paths: LakePaths;
  readonly venue: Source;
  readonly nowMs: number;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
}

export interface LakeVerdict {
  readonly found: FoundOrders;
  readonly verdict: Verdict;
  /** The verdict in one line. */
  readonly text: string;
  /** Errors of manifests and lines that cannot be read: the verdict is about the others. */
  readonly refused: readonly CryptodlError[];
}

/** Undefined for a lake without orders. Rejects with `disk` for a link in the path of a folder, and with errors of the system. */
export async function judgeLake({
  paths,
  venue,
  nowMs,
  clock,
  signal,
  warn,
}: JudgedLake): Promise<LakeVerdict | undefined> {
  const { orders, unreadable } = await readOrders(paths);
  for (const path of unreadable) warn(`${path} is not an order: it is left out`);
  const own = orders.filter(({ exchange }) => exchange === venue.name);
  if (own.length === 0) return undefined;
  const held: Series[] = [];
  for await (const series of heldSeries(paths.root, venue, warn)) held.push(series);
  const running = await isRunning(paths, clock);
  const run = await lastRun(paths, running);
  const failures = await readLastFailures(paths, warn);
  const refused: CryptodlError[] = [];
  const onRefused = (error: CryptodlError): void => void refused.push(error);
  const judged = await judgeOrders(
    { root: paths.root, venue, held, failures, nowMs, signal, onRefused },
    own,
  );
  const found = { root: paths.root, nowMs, running, run, orders: judged, unreadable };
  const verdict = verdictOf(found);
  return { found, verdict, text: verdictText(judged, verdict), refused };
}

/** The verdict for outputs that show no orders. */
export function summaryOfVerdict({ found, verdict, text }: LakeVerdict): VerdictSummary {
  const { state, exitCode, next = null } = verdict;
  const sum = (of: (order: JudgedOrder) => number): number =>
    found.orders.reduce((all, order) => all + of(order), 0);
  return {
    state,
    exitCode,
    text,
    next,
    series: sum(({ series }) => series),
    lacking: sum(({ lacking }) => lacking),
  };
}
