/** The amounts of gaps in which no data is expected. */
import type { GapReason } from './absent-days.js';
import type { SeriesStates } from './day-states.js';
import type { Gap } from './gap.js';
import { amountText, unitOf } from './series-table.js';

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
      return `${amountText(amount, unit === 'days' ? 'days' : 'rows')} ${reason.join(' ')}`;
    });
    return texts.length === 0 ? '' : `excused: ${texts.join(', ')}`;
  }
}
