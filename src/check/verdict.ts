/** The verdict about a lake: one state, an exit code, and the command that may mend it. */
import type { ExitCode } from '../model/exit-code.js';
import { commandLine, lakeFlag } from '../text/printable.js';
import type { Order } from '../lake/orders.js';
import type { JudgedOrder, Mend } from './judge-orders.js';
import type { LastRun } from '../monitor/run-history.js';

export interface FoundOrders {
  readonly root: string;
  readonly nowMs: number;
  readonly running: boolean;
  readonly run: LastRun | undefined;
  readonly orders: readonly JudgedOrder[];
  /** Files in the place of orders that are none. */
  readonly unreadable: readonly string[];
}

export interface Verdict {
  readonly state: 'complete' | 'behind' | 'incomplete' | 'running';
  readonly exitCode: ExitCode;
  /** Why it is not known what the lake should hold besides its orders, and what to do. */
  readonly unordered: string | undefined;
  /** Command lines, separated by `; `; undefined if nothing is missing, or if no command can mend it. */
  readonly next: string | undefined;
}

export function verdictOf({ root, orders, unreadable, running, run }: FoundOrders): Verdict {
  const [damaged] = unreadable;
  const isCutShort = run !== undefined && !run.isOrdered && !running;
  const unordered =
    damaged !== undefined
      ? `${damaged} is not an order: restore it, or remove it`
      : isCutShort
        ? 'the last run ended before its order was written: run it again'
        : undefined;
  const lacking = orders.filter((one) => one.lacking > 0);
  const can = (mend: Mend): JudgedOrder[] => lacking.filter(({ mends }) => mends.has(mend));
  const runs = can('run').map(({ order }) => order);
  // One command for each verb: while a run finds nothing, another verb may still mend its part.
  const commands = (['vision', 'metrics'] as const)
    .map((verb) => runs.filter((order) => order.verb === verb))
    .flatMap((own) => own.find(({ join }) => join !== undefined) ?? own.slice(0, 1))
    .map(words);
  if (can('repair').length > 0) commands.push(['repair']);
  const lines = commands.map((command) => commandLine(command) + lakeFlag(root));
  const next = lines.length === 0 ? undefined : lines.join('; ');
  const isWhole = lacking.length === 0 && unordered === undefined;
  const isBehind = lacking.length > 0 && lacking.every(({ behind }) => behind > 0);
  const state = running ? 'running' : isWhole ? 'complete' : isBehind ? 'behind' : 'incomplete';
  const cannotBeHad = next === undefined && unordered === undefined && !running;
  const exitCode = isWhole ? 0 : cannotBeHad ? 4 : 3;
  return { state, exitCode, unordered, next: running ? undefined : next };
}

/** The words of the command that fetches what an order lacks. Without symbols, a run continues all open orders. */
function words(order: Order): string[] {
  const { verb, market, dataset, interval, words: symbols, quote, first, last, settings, shard } = order;
  const start = [verb, ...(order.join === undefined ? [] : ['--join', order.join])];
  if (last === null) return start;
  return [
    ...start,
    '--market',
    market,
    '--dataset',
    dataset,
    ...(interval === undefined ? [] : ['--interval', interval]),
    '--symbols',
    symbols.join(','),
    ...(quote.length === 0 ? [] : ['--quote', quote.join(',')]),
    ...(first === null ? [] : ['--from', first]),
    '--to',
    last,
    ...(settings.format === 'parquet' ? [] : ['--format', settings.format]),
    ...(shard === undefined ? [] : ['--shard', shard]),
  ];
}
