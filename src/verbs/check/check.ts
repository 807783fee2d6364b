/** `cryptodl check`: prints the verdict about a lake, its orders compared with what it holds. Sends no request. */
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbInput } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { amountsText, heldPercentText } from '../../lake/catalogue/series-table.js';
import { refuseFile } from '../../lake/layout.js';
import { dayText } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import { countText, listText, numberText } from '../../model/units.js';
import { fateText } from '../../run/monitor/run-history.js';
import { absolutePath, lakeFlag, printable, printLines, shownPath } from '../../text/printable.js';
import { table, type TableColumn } from '../../text/table.js';
import { widthOf } from '../../text/wrap.js';
import { nowMsOf } from '../../plan/options/verb-request.js';
import { judgeLake, type LakeVerdict } from '../../run/verdict/judge-lake.js';
import type { JudgedOrder } from '../../run/verdict/judge-orders.js';

/** Resolves with 0 if nothing is missing, 3 if a run may mend it, 4 if it cannot be had, and 1 for a damaged manifest. Rejects with a usage error for a lake without orders. */
export async function check(command: VerbInput<'out' | 'json' | 'quiet' | 'now'>): Promise<ExitCode> {
  const { io, resolved } = command;
  const { out, json, quiet } = resolved.options;
  return withSignals(command, async (request) => {
    const root = absolutePath(out, request.surroundings.home);
    refuseFile(root);
    const verdict = await judgeLake(request);
    if (verdict === undefined)
      throw usage(
        `${shownPath(root)} has no order, so nothing tells what it should hold`,
        `each vision and metrics leaves one, for example: cryptodl vision -s BTCUSDT -d 7${lakeFlag(root)}`,
      );
    const lines = quiet ? [] : linesOf(verdict, nowMsOf(request), widthOf(io.stdout));
    const { summary, refused } = verdict;
    await writeData(io, json ? [recordOf(verdict)] : [summary.text, ...lines]);
    for (const { message } of refused) printLines(io.stderr, [`cryptodl: ${message}`]);
    return exitCode({ refused: refused.length, parts: [summary.exitCode] });
  });
}

const COLUMNS: readonly TableColumn[] = [
  { title: 'order' },
  { title: 'symbols' },
  { title: 'from' },
  { title: 'to' },
  { title: 'series', isNumber: true },
  { title: 'held', isNumber: true },
  { title: 'lacks' },
];

const linesOf = ({ orders, run, summary: { next } }: LakeVerdict, nowMs: number, width: number): string[] => [
  '',
  ...table(COLUMNS, orders.map(cellsOf), { width }).lines,
  '',
  ...orders
    .flatMap(({ excused, doubts }) => [excused.text(), ...doubts.lines()])
    .filter((line) => line !== ''),
  ...(run === undefined ? [] : [`last run  ${fateText(run, nowMs)}`]),
  ...(next === null ? [] : [`next      ${next}`]),
];

function cellsOf(judged: JudgedOrder): string[] {
  const { order, to, series, lacking, percent } = judged;
  const { market, dataset, interval = '', settings } = order;
  // `um klines 1h`, with the format if it is not the default one.
  const name = [market, dataset, interval, settings.format === 'parquet' ? '' : settings.format];
  return [
    printable(name.filter((part) => part !== '').join(' ')),
    printable(listText(order.words, 3)),
    order.first ?? 'start',
    `${dayText(to - 1)}${order.last === null ? ' (open)' : ''}`,
    numberText(series),
    percent === undefined ? '-' : heldPercentText({ expected: 100, missing: 100 - percent }),
    lacking === 0 ? '' : `${countText(lacking, 'series')}: ${amountsText(judged)}`,
  ];
}

/** The object of `--json`. Days are inclusive. */
const recordOf = ({ summary: { state, exitCode: code, next }, orders, run }: LakeVerdict): object => ({
  event: 'check',
  verdict: state,
  exitCode: code,
  orders: orders.map(({ order, to, series, lacking, rows, days, percent, behind, mends, doubts }) => {
    const { id, verb, market, dataset, interval, settings, words: symbols, quote, first, last } = order;
    const layer = { market, dataset, interval, format: settings.format };
    const judged = { from: first, to: dayText(to - 1) };
    const asked = { id, verb, ...layer, symbols, quote, first, last };
    const found = { series, lacking, missing: { rows, days }, percent: percent ?? null };
    return { ...asked, judged, ...found, behindDays: behind, mend: [...mends], ...doubts.sums };
  }),
  lastRun: run ?? null,
  next,
});
