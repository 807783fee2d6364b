/** Finds halts of a market: times whose rows are missing in every symbol that holds the day. */
import { append, at, intersect, NO_SPANS } from './spans.js';
import type { Spans } from './spans.js';

/** With fewer symbols that hold a day, times that all of them lack may be chance. */
const FEWEST_SYMBOLS = 3;
const DAY_SECONDS = 86_400;

interface Day {
  /** Number of symbols that hold the day. */
  symbols: number;
  /** Seconds that all of them lack. */
  missing: Spans;
}

/**
 * Collects the symbols of one market, dataset and interval. Its memory does not grow with the number of symbols: it
 * keeps only one set of seconds for each day.
 */
export class HaltFinder {
  readonly #days = new Map<number, Day>();

  /** Adds a symbol: the days that it holds, and the seconds whose rows it lacks. */
  add(days: Spans, missing: Spans): void {
    let next = 0;
    for (let i = 0; i < days.length; i += 2) {
      for (let day = at(days, i); day < at(days, i + 1); day += 1) {
        const start = day * DAY_SECONDS;
        while (next < missing.length && at(missing, next + 1) <= start) next += 2;
        const isWhole = next >= missing.length || at(missing, next) >= start + DAY_SECONDS;
        this.#addDay(day, isWhole ? NO_SPANS : within(missing, next, start, start + DAY_SECONDS));
      }
    }
  }

  #addDay(number: number, missing: Spans): void {
    const day = this.#days.get(number);
    if (day === undefined) {
      this.#days.set(number, { symbols: 1, missing });
      return;
    }
    day.symbols += 1;
    if (day.missing.length > 0) day.missing = missing.length > 0 ? intersect(day.missing, missing) : NO_SPANS;
  }

  /** Halts in seconds. Leaves out spans shorter than about half the time between two rows, which come from jitter in the times. */
  halts(rowSeconds: number): number[] {
    const found: number[] = [];
    const days = [...this.#days].sort(([a], [b]) => a - b);
    for (const [, { symbols, missing }] of days) {
      if (symbols < FEWEST_SYMBOLS) continue;
      for (let i = 0; i < missing.length; i += 2) append(found, at(missing, i), at(missing, i + 1));
    }
    const halts: number[] = [];
    for (let i = 0; i < found.length; i += 2)
      if (canMissRow(at(found, i), at(found, i + 1), rowSeconds)) halts.push(at(found, i), at(found, i + 1));
    return halts;
  }
}

/** Whether a gap is long enough for a missing row: half the time between two rows, less a second for rounding. */
export function canMissRow(from: number, to: number, rowSeconds: number): boolean {
  return to - from >= Math.max(1, rowSeconds / 2 - 1);
}

/** The parts of the spans in `[from, to)`, from index `index` on. */
function within(spans: Spans, index: number, from: number, to: number): number[] {
  const found: number[] = [];
  for (let i = index; i < spans.length && at(spans, i) < to; i += 2)
    found.push(Math.max(from, at(spans, i)), Math.min(to, at(spans, i + 1)));
  return found;
}

/** Widens halts to whole rows of `rowSeconds`. */
export function inWholeRows(halts: Spans, rowSeconds: number): number[] {
  const widened: number[] = [];
  for (let i = 0; i < halts.length; i += 2) {
    const from = Math.floor(at(halts, i) / rowSeconds) * rowSeconds;
    append(widened, from, Math.ceil(at(halts, i + 1) / rowSeconds) * rowSeconds);
  }
  return widened;
}
