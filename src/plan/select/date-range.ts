/** `--days`, `--months`, `--from` and `--to` → a range of days. */
import { dayOf, dayText, monthOf, monthStart, parseDay } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import type { DateOption } from '../options/dates.js';
import type { RangeFlag } from '../options/verb-request.js';
import type { Options } from '../options/flags.js';
import type { ExchangeSpec } from '../../exchange/exchange-spec.js';

/** Days `[from, to)`; without `from`, the range starts with the first day of each series. */
export interface Range {
  readonly from?: number;
  readonly to: number;
  readonly text: string;
}

export type RangeOptions = Options<RangeFlag>;

export const isRangeGiven = (options: RangeOptions): boolean =>
  [options.days, options.months, options.from, options.to].some((value) => value !== undefined);

/** The range of the options; undefined without any. Throws usage errors like `resolveRange`. */
export const givenRange = (...terms: Parameters<typeof resolveRange>): Range | undefined =>
  isRangeGiven(terms[0]) ? resolveRange(...terms) : undefined;

/**
 * The range of the options; yesterday without any. It does not begin before the first day of the exchange, and ends with the last
 * complete day at the latest. Throws usage errors for several kinds of range, and for a range without a day.
 */
export function resolveRange(
  options: RangeOptions,
  nowMs: number,
  exchange: Pick<ExchangeSpec, 'firstDay' | 'dayStartMs'>,
): Range {
  const today = dayOf(nowMs, exchange);
  const firstDay = parseDay(exchange.firstDay) ?? 0;
  const kinds = [options.days, options.months, options.from ?? options.to];
  if (kinds.filter((kind) => kind !== undefined).length > 1)
    throw usage('--days, --months and --from with --to are different kinds of range', 'keep one of them');
  if (options.months !== undefined) {
    const thisMonth = monthOf(today);
    const months = Math.min(options.months, thisMonth - monthOf(firstDay));
    return rangeOf(monthStart(thisMonth - months), monthStart(thisMonth));
  }
  if (options.from === undefined && options.to === undefined)
    return rangeOf(Math.max(firstDay, today - (options.days ?? 1)), today);
  const from =
    options.from === undefined ? undefined : Math.max(dayOfOption(options.from, 'firstDay', today), firstDay);
  const to =
    options.to === undefined ? today : Math.min(dayOfOption(options.to, 'lastDay', today) + 1, today);
  if ((from ?? firstDay) >= to)
    throw usage(
      `--from ${dayText(from ?? firstDay)} is after --to ${dayText(to - 1)}`,
      `choose days from ${dayText(firstDay)} to ${dayText(today - 1)}, the last complete day`,
    );
  return rangeOf(from, to);
}

const dayOfOption = (date: DateOption, end: 'firstDay' | 'lastDay', today: number): number =>
  date.kind === 'days' ? date[end] : today - date.daysAgo;

function rangeOf(from: number | undefined, to: number): Range {
  const days = from === undefined ? '' : ` (${to - from} day${to - from === 1 ? '' : 's'})`;
  const start = from === undefined ? 'the start of each series' : dayText(from);
  return { ...(from === undefined ? {} : { from }), to, text: `${start} … ${dayText(to - 1)}${days}` };
}
