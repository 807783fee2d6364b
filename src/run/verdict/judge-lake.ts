/** The verdict about a lake: one state, an exit code, and the command that may mend it. Writes nothing. */
import { exitCode } from '../../model/exit-code.js';
import { amountsText } from '../../lake/catalogue/series-table.js';
import { lakePaths } from '../../lake/layout.js';
import { readOrders } from '../../lake/orders.js';
import type { Order } from '../../lake/order.js';
import type { CryptodlError } from '../../model/errors.js';
import { countText, numberText } from '../../model/units.js';
import { lacksOrder, isRunning, lastRun } from '../monitor/run-history.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import type { VerdictSummary } from '../report/run-summary.js';
import { absolutePath, commandLine, lakeFlag } from '../../text/printable.js';
import { judgeOrders, type JudgedOrder } from './judge-orders.js';
import type { Mend } from './mends.js';

export type LakeVerdict = NonNullable<Awaited<ReturnType<typeof judgeLake>>>;

/** Undefined for a lake without orders. Rejects with `disk` for a link in the path of a folder, and with errors of the system. */
export async function judgeLake(request: VerbRequest<'out' | 'now'>) {
  const { exchange, resolved, surroundings, observer } = request;
  const paths = lakePaths(absolutePath(resolved.options.out, surroundings.home));
  const { orders: all, unreadable } = await readOrders(paths);
  for (const path of unreadable) observer.warn(`${path} is not an order: it is left out`);
  const own = all.filter((order) => order.exchange === exchange.name);
  if (own.length === 0) return undefined;
  const running = await isRunning(paths);
  const run = await lastRun(paths, running);
  // Errors of manifests and lines that cannot be read: the verdict is about the others.
  const refused: CryptodlError[] = [];
  const orders = await judgeOrders(request, own, (error) => refused.push(error));
  // Why it is not known what the lake should hold besides its orders, and what to do.
  const [path] = unreadable;
  const unordered =
    path !== undefined
      ? `${path} is not an order: restore it, or remove it`
      : !running && (await lacksOrder(paths))
        ? 'a run ended before its order was written: run it again'
        : undefined;
  const lacking = orders.filter((one) => one.lacking > 0);
  const next = mendingCommands(lacking, paths.root);
  const isWhole = lacking.length === 0 && unordered === undefined;
  const isBehind = lacking.length > 0 && lacking.every(({ behind }) => behind > 0);
  const state = running ? 'running' : isWhole ? 'complete' : isBehind ? 'behind' : 'incomplete';
  const cannotBeHad = next === null && unordered === undefined && !running;
  const code = exitCode({ lasting: !isWhole && cannotBeHad, passing: !isWhole });
  const why = lacking.length === 0 ? unordered : undefined;
  const summary: VerdictSummary = {
    state,
    exitCode: code,
    text: `${state}: ${why ?? verdictText(orders, { state, exitCode: code })}`,
    next: running ? null : next,
    series: sumOf(orders, 'series'),
    lacking: sumOf(orders, 'lacking'),
  };
  return { summary, orders, run, refused };
}

const sumOf = (orders: readonly JudgedOrder[], name: 'series' | 'lacking' | 'rows' | 'days'): number =>
  orders.reduce((all, order) => all + order[name], 0);

/** `3 of 58 series lack 1,440 rows` */
function verdictText(
  orders: readonly JudgedOrder[],
  { state, exitCode: code }: Pick<VerdictSummary, 'state' | 'exitCode'>,
): string {
  const series = numberText(sumOf(orders, 'series'));
  const lacking = sumOf(orders, 'lacking');
  if (lacking === 0) {
    // Zips are compared with their digests and not unpacked.
    const zips = orders.filter(({ order }) => order.settings.format === 'zip').length;
    const uncounted =
      zips === 0 ? '' : `; the rows within the zips of ${countText(zips, 'order')} are not counted`;
    return `nothing is missing in ${series} series of ${countText(orders.length, 'order')}${uncounted}`;
  }
  const some = `${numberText(lacking)} of ${series} series`;
  if (state === 'behind')
    return `${countText(Math.max(...orders.map(({ behind }) => behind)), 'day')} in ${some}`;
  const amounts = amountsText({ rows: sumOf(orders, 'rows'), days: sumOf(orders, 'days') });
  return `${some} lack ${amounts}${code === 4 ? '; no run can fetch them' : ''}`;
}

/** Command lines, separated by `; `; null without any. One command for each verb: while a run finds nothing, another verb may still mend its part. */
function mendingCommands(lacking: readonly JudgedOrder[], root: string): string | null {
  const can = (mend: Mend): JudgedOrder[] => lacking.filter(({ mends }) => mends.has(mend));
  const runs = can('run').map(({ order }) => order);
  const commands = (['vision', 'metrics'] as const)
    .map((verb) => runs.filter((order) => order.verb === verb))
    .flatMap((own) => own.find(({ join }) => join !== undefined) ?? own.slice(0, 1))
    .map(words);
  if (can('repair').length > 0) commands.push(['repair']);
  if (commands.length === 0) return null;
  return commands.map((command) => commandLine(command) + lakeFlag(root)).join('; ');
}

const flags = (values: Readonly<Record<string, string | null | undefined>>): string[] =>
  Object.entries(values).flatMap(([name, value]) => (value ? [`--${name}`, value] : []));

/** The words of the command that fetches what an order lacks. Without symbols, a run continues all open orders. */
function words(order: Order): string[] {
  const { verb, market, dataset, interval, words: symbols, quote, first, last, settings, shard } = order;
  const start = [verb, ...flags({ join: order.join })];
  if (last === null) return start;
  const format = settings.format === 'parquet' ? undefined : settings.format;
  const selection = { market, dataset, interval, symbols: symbols.join(','), quote: quote.join(',') };
  return [...start, ...flags({ ...selection, from: first, to: last, format, shard })];
}
