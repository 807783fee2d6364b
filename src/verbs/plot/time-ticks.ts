/** The labels of a time axis. */
import { DAY_MS } from '../../model/calendar.js';
import { MINUTE, STEPS, numberOf, startOf, type Step, type TimeGrid } from './time-grid.js';

/** A label of the time axis at the start of a step. */
type TimeTick = ReturnType<typeof ticksOf>[number];

/** Labels that do not touch. `stepWidth`: the width of a step in characters. */
export function timeTicks({ count, startOf: of, dayStartMs }: TimeGrid, stepWidth: number): TimeTick[] {
  const starts = Array.from({ length: count }, (_, index) => of(index) - dayStartMs);
  let ticks: TimeTick[] = [];
  for (const step of STEPS) {
    const next = ticksOf(step, starts);
    // No tick of this step is in the range. The labels of the next shorter step stay, without those that touch.
    if (next.length === 0) break;
    ticks = next;
    if (apart(ticks, stepWidth).length === ticks.length) return ticks;
  }
  return apart(ticks, stepWidth);
}

/** A step of the chart may begin after the time that its label names. The first one is labelled only if it begins exactly with a step of the axis. */
function ticksOf(step: Step, starts: readonly number[]) {
  return starts.flatMap((start, index) => {
    const [number, before] = [numberOf(step, start), numberOf(step, starts[index - 1] ?? start - 1)];
    return number === before ? [] : [{ index, text: tickText(step, startOf(step, number)) }];
  });
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The largest unit that begins here: a year, then a month, a day, a time of day. */
function tickText({ unit, length }: Step, start: number): string {
  const date = new Date(start);
  const year = date.getUTCFullYear();
  if (year !== new Date(start - 1).getUTCFullYear()) return String(year);
  const month = MONTHS[date.getUTCMonth()] ?? '';
  if (unit === 'months') return month;
  if (start % DAY_MS === 0) return `${month} ${date.getUTCDate()}`;
  return date.toISOString().slice(11, length < MINUTE ? 19 : 16);
}

/** The ticks without those that touch the one before. */
function apart(ticks: readonly TimeTick[], stepWidth: number): TimeTick[] {
  const kept: TimeTick[] = [];
  for (const tick of ticks) {
    const last = kept.at(-1);
    // A label has two spaces behind it.
    if (last === undefined || (tick.index - last.index) * stepWidth >= last.text.length + 2) kept.push(tick);
  }
  return kept;
}
