/** `--days`, `--months`, `--from` and `--to` → a range of days. */
import { dayOf, dayText, monthOf, monthStart, parseDay } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { Options } from '../options/flags.js';
import type { Venue } from '../source/venue.js';

/** Days `[from, to)`; without `from`, the range starts with the first day of each series. */
export interface Range {
  readonly from?: number;
  readonly to: number;
  readonly text: string;
}

export type RangeOptions = Pick<Options, 'days' | 'months' | 'fromDay' | 'toDay'>;

/** Whether any flag of a range was given. */
export function isRangeGiven(options: RangeOptions): boolean {
  return [options.days, options.months, options.fromDay, options.toDay].some((value) => value !== undefined);
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
    [
      ...(options.fromDay === undefined ? [] : ['--from']),
      ...(options.toDay === undefined ? [] : ['--to']),
    ].join('/'),
  ].filter((kind) => kind !== undefined && kind !== '');
  if (kinds.length > 1)
    throw usage(
      `${kinds.join(' and ')} are different kinds of range`,
      `keep one, for example ${kinds[0] ?? '--days'}`,
      { flags: withoutOthers(options) },
    );
  if (options.months !== undefined) {
    const thisMonth = monthOf(today);
    const months = Math.min(options.months, thisMonth - monthOf(firstDay));
    return rangeOf(monthStart(thisMonth - months), monthStart(thisMonth));
  }
  if (options.fromDay === undefined && options.toDay === undefined)
    return rangeOf(Math.max(firstDay, today - (options.days ?? 1)), today);
  refuseFuture('--from', options.fromDay, today, venue);
  refuseFuture('--to', options.toDay, today, venue);
  if (options.fromDay !== undefined && options.toDay !== undefined && options.fromDay > options.toDay) {
    throw usage(
      `--from ${dayText(options.fromDay)} is after --to ${dayText(options.toDay)}`,
      `--from ${dayText(options.toDay)} --to ${dayText(options.fromDay)}`,
      { flags: { from: dayText(options.toDay), to: dayText(options.fromDay) } },
    );
  }
  if (options.toDay !== undefined && options.toDay < firstDay) {
    const first = dayText(firstDay);
    throw usage(
      `--to ${dayText(options.toDay)} is before the first day of the archive, ${first}`,
      undefined,
      {
        flags: { from: null, to: null, days: '7' },
      },
    );
  }
  const from = options.fromDay === undefined ? undefined : Math.max(options.fromDay, firstDay);
  return rangeOf(from, options.toDay === undefined ? today : options.toDay + 1);
}

/** A correction that keeps the first kind of range. */
function withoutOthers({ days, months, fromDay, toDay }: RangeOptions): Record<string, null> {
  return {
    ...(days === undefined || months === undefined ? {} : { months: null }),
    ...(fromDay === undefined ? {} : { from: null }),
    ...(toDay === undefined ? {} : { to: null }),
  };
}

function refuseFuture(
  name: string,
  day: number | undefined,
  today: number,
  venue: Pick<Venue, 'dayStartMs'>,
): void {
  if (day === undefined || day < today) return;
  const last = dayText(today - 1);
  throw usage(
    `${name} ${dayText(day)} is not over yet: the last complete ${venue.dayStartMs === 0 ? 'UTC day' : 'day'} is ${last}`,
    `${name} ${last}`,
    { flags: { [name.slice('--'.length)]: last } },
  );
}

function rangeOf(from: number | undefined, to: number): Range {
  const days = from === undefined ? '' : ` (${to - from} day${to - from === 1 ? '' : 's'})`;
  const start = from === undefined ? 'the start of each series' : dayText(from);
  return { ...(from === undefined ? {} : { from }), to, text: `${start} … ${dayText(to - 1)}${days}` };
}
