/** Formats the verdict: lines for people, one object for programs. */
import { percentText } from '../coverage/series-table.js';
import { dayText } from '../model/calendar.js';
import { countText, listText, numberText } from '../model/units.js';
import { printable } from '../text/printable.js';
import { table } from '../text/table.js';
import type { TableColumn } from '../text/table.js';
import type { Order } from '../lake/orders.js';
import type { JudgedOrder } from './judge-orders.js';
import { fateText } from '../monitor/run-history.js';
import type { FoundOrders, Verdict } from './verdict.js';

const COLUMNS: readonly TableColumn[] = [
  { title: 'order' },
  { title: 'symbols' },
  { title: 'from' },
  { title: 'to' },
  { title: 'series', isNumber: true },
  { title: 'held', isNumber: true },
  { title: 'lacks' },
];

/** The verdict in the first line. With `isQuiet` only this line. `width`: columns of the terminal. */
export function checkLines(
  found: FoundOrders,
  verdict: Verdict,
  { width, isQuiet }: { readonly width: number; readonly isQuiet: boolean },
): string[] {
  const { orders, run, nowMs } = found;
  if (isQuiet) return [verdictText(orders, verdict)];
  return [
    verdictText(orders, verdict),
    '',
    ...table(COLUMNS, orders.map(cellsOf), { width }).lines,
    '',
    ...orders
      .flatMap(({ excused, doubts }) => [excused.text(), ...doubts.lines()])
      .filter((line) => line !== ''),
    ...(run === undefined ? [] : [`last run  ${fateText(run, nowMs)}`]),
    ...(verdict.next === undefined ? [] : [`next      ${verdict.next}`]),
  ];
}

/** `incomplete: 3 of 58 series lack 1,440 rows` */
export function verdictText(orders: readonly JudgedOrder[], { state, exitCode, unordered }: Verdict): string {
  const sum = (of: (order: JudgedOrder) => number): number => orders.reduce((all, one) => all + of(one), 0);
  const series = numberText(sum((one) => one.series));
  const lacking = sum((one) => one.lacking);
  if (lacking === 0 && unordered !== undefined) return `${state}: ${unordered}`;
  if (lacking === 0)
    return `${state}: nothing is missing in ${series} series of ${countText(orders.length, 'order')}${rowsText(orders)}`;
  if (state === 'behind')
    return `behind: ${countText(Math.max(...orders.map(({ behind }) => behind)), 'day')} in ${numberText(lacking)} of ${series} series`;
  const amounts = amountText(
    sum((one) => one.rows),
    sum((one) => one.days),
  );
  const end = exitCode === 4 ? '; no run can fetch them' : '';
  return `${state}: ${numberText(lacking)} of ${series} series lack ${amounts}${end}`;
}

/** Zips are compared with their digests and not unpacked. */
function rowsText(orders: readonly JudgedOrder[]): string {
  const zips = orders.filter(({ order }) => order.settings.format === 'zip').length;
  return zips === 0 ? '' : `; the rows within the zips of ${countText(zips, 'order')} are not counted`;
}

function amountText(rows: number, days: number): string {
  return [
    ...(rows > 0 ? [`${numberText(rows)} rows`] : []),
    ...(days > 0 ? [countText(days, 'day')] : []),
  ].join(' and ');
}

/** `um klines 1h`, with the format if it is not the default one. */
function nameOf({ market, dataset, interval, settings: { format } }: Order): string {
  return [market, dataset, interval, format === 'parquet' ? undefined : format]
    .filter((part) => part !== undefined)
    .join(' ');
}

function cellsOf(judged: JudgedOrder): string[] {
  const { order, to, series, lacking, rows, days, percent } = judged;
  return [
    printable(nameOf(order)),
    printable(listText(order.words, 3)),
    order.first ?? 'start',
    `${dayText(to - 1)}${order.last === null ? ' (open)' : ''}`,
    numberText(series),
    percent === undefined ? '-' : percentText({ expected: 100, missing: 100 - percent }),
    lacking === 0 ? '' : `${countText(lacking, 'series')}: ${amountText(rows, days)}`,
  ];
}

/** The object of `--json`. Days are inclusive. */
export function checkRecord({ orders, run }: FoundOrders, { state, exitCode, next }: Verdict): object {
  return {
    event: 'check',
    verdict: state,
    exitCode,
    orders: orders.map(({ order, to, series, lacking, rows, days, percent, behind, mends, doubts }) => ({
      id: order.id,
      verb: order.verb,
      market: order.market,
      dataset: order.dataset,
      interval: order.interval,
      format: order.settings.format,
      symbols: order.words,
      quote: order.quote,
      first: order.first,
      last: order.last,
      judged: { from: order.first, to: dayText(to - 1) },
      series,
      lacking,
      missing: { rows, days },
      percent: percent ?? null,
      behindDays: behind,
      mend: [...mends],
      ...doubts.sums,
    })),
    lastRun: run ?? null,
    next: next ?? null,
  };
}
