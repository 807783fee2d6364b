/** `--days`, `--months`, `--from` and `--to` → a range of days. */
import { dayOf, dayText, monthOf, monthStart, parseDay } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { DateOption } from '../options/dates.js';
import type { Options } from '../options/flags.js';
import type { Venue } from '../source/venue.js';

/** Days `[from, to)`; without `from`, the range starts with the first day of each series. */
export interface Range {
  readonly from?: number;
  readonly to: number;
  readonly text: string;
}

export type RangeOptions = Pick<Options, 'days' | 'months' | 'from' | 'to'>;

/** Whether any flag of a range was given. */
export function isRangeGiven(options: RangeOptions): boolean {
  return [options.days, options.months, options.from, options.to].some((value) => value !== undefined);
}

/**
 * The range of the options; yesterday without any. It does not begin before the first day of the exchange. Throws usage errors
 * for several kinds of range, for days that are not over, and for an empty range.
 */
export function resolveRange(
  options: RangeOptions,
  nowMs: number,
  venue: Pick<Venue, 'firstDay' | 'dayStartMs'>,
): Range {
  const today = dayOf(nowMs, venue);
  const firstDay = parseDay(venue.firstDay) ?? 0;
  const kinds = [
    options.days === undefined ? undefined : '--days',
    options.months === undefined ? undefined : '--months',
    [...(options.from === undefined ? [] : ['--from']), ...(options.to === undefined ? [] : ['--to'])].join(
      '/',
    ),
  ].filter((kind) => kind !== undefined && kind !== '');
  if (kinds.length > 1)
    throw usage(
      `${kinds.join(' and ')} are different kinds of range`,
      `keep one, for example ${kinds[0] ?? '--days'}`,
    );
  if (options.months !== undefined) {
    const thisMonth = monthOf(today);
    const months = Math.min(options.months, thisMonth - monthOf(firstDay));
    return rangeOf(monthStart(thisMonth - months), monthStart(thisMonth));
  }
  if (options.from === undefined && options.to === undefined)
    return rangeOf(Math.max(firstDay, today - (options.days ?? 1)), today);
  const from = options.from === undefined ? undefined : firstDayOf(options.from, today);
  const to = options.to === undefined ? today - 1 : lastDayOf(options.to, today);
  if (from !== undefined) refuseFuture('--from', from, today, venue);
  refuseFuture('--to', to, today, venue);
  if (from !== undefined && from > to)
    throw usage(`--from ${dayText(from)} is after --to ${dayText(to)}`, 'exchange the two dates');
  if (to < firstDay)
    throw usage(
      `--to ${dayText(to)} is before the first day of the archive, ${dayText(firstDay)}`,
      'choose a later day',
    );
  return rangeOf(from === undefined ? undefined : Math.max(from, firstDay), to + 1);
}

function firstDayOf(date: DateOption, today: number): number {
  return date.kind === 'days' ? date.first : today - date.daysAgo;
}

/** The last day. `today`, and a month or year that is not over, end with the last complete day. */
function lastDayOf(date: DateOption, today: number): number {
  const yesterday = today - 1;
  if (date.kind === 'word') return yesterday;
  return date.first < today && date.first < date.last ? Math.min(date.last, yesterday) : date.last;
}

function refuseFuture(name: string, day: number, today: number, venue: Pick<Venue, 'dayStartMs'>): void {
  if (day < today) return;
  const last = dayText(today - 1);
  throw usage(
    `${name} ${dayText(day)} is not over yet: the last complete ${venue.dayStartMs === 0 ? 'UTC day' : 'day'} is ${last}`,
    `${name} ${last}`,
  );
}

function rangeOf(from: number | undefined, to: number): Range {
  const days = from === undefined ? '' : ` (${to - from} day${to - from === 1 ? '' : 's'})`;
  const start = from === undefined ? 'the start of each series' : dayText(from);
  return { ...(from === undefined ? {} : { from }), to, text: `${start} … ${dayText(to - 1)}${days}` };
}
