/** Gaps as text: their times, and the amounts of those in which no data is expected. */
import { DAY_SECONDS, type Gap } from './gap.js';
import type { SeriesStates } from './day-states.js';
import { dayText } from '../../model/calendar.js';
import type { GapReason } from './absent-days.js';
import { amountInUnit, unitOf } from './series-table.js';

/** The first and the last missing row or day, for example `2024-01-12 … 2024-01-14`. Times of rows are in UTC. */
export function spanText(
  { from, to, reason }: Pick<Gap, 'from' | 'to' | 'reason'>,
  { rowSeconds = DAY_SECONDS, dayStartSeconds }: Pick<SeriesStates, 'rowSeconds' | 'dayStartSeconds'>,
): string {
  const isDays = from % DAY_SECONDS === 0 && to % DAY_SECONDS === 0;
  const last = isDays ? to - DAY_SECONDS : Math.max(from, to - (reason === 'cut' ? 60 : rowSeconds));
  const text = (seconds: number): string =>
    isDays ? dayText(seconds / DAY_SECONDS) : timeText(seconds + dayStartSeconds);
  if (last <= from) return text(from);
  const isOneDay = text(from).slice(0, 10) === text(last).slice(0, 10);
  return `${text(from)} … ${isOneDay ? text(last).slice('2024-01-15 '.length) : text(last)}`;
}

/** `2024-01-12 … 2024-01-14 (hole)` */
export const gapText = (gap: Gap, states: Parameters<typeof spanText>[1]): string =>
  `${spanText(gap, states)} (${gap.reason})`;

/** `2024-01-15 03:00`; with seconds unless they are zero. */
function timeText(seconds: number): string {
  const text = new Date(seconds * 1000).toISOString();
  return text.slice(0, text.endsWith(':00.000Z') ? 16 : 19).replace('T', ' ');
}

const REASON_TEXTS: Readonly<Partial<Record<GapReason, string>>> = {
  halt: 'exchange halt',
  'not-traded': 'no trading',
};

/** The amounts of gaps in which no data is expected, by unit and reason. */
export class ExcusedAmounts {
  readonly #amounts = new Map<string, number>();

  add(coverage: Pick<SeriesStates, 'rowSeconds'>, { reason, amount }: Pick<Gap, 'amount' | 'reason'>): void {
    const name = `${unitOf(coverage)} ${REASON_TEXTS[reason] ?? reason}`;
    this.#amounts.set(name, (this.#amounts.get(name) ?? 0) + amount);
  }

  /** `excused: 120 rows exchange halt, 2 days delisted`; empty without such gaps. */
  text(): string {
    const texts = [...this.#amounts].map(([name, amount]) => {
      const [unit, ...reason] = name.split(' ');
      return `${amountInUnit(amount, unit === 'days' ? 'days' : 'rows')} ${reason.join(' ')}`;
    });
    return texts.length === 0 ? '' : `excused: ${texts.join(', ')}`;
  }
}
