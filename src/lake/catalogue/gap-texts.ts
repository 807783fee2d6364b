/** Gaps as text: their times, groups of equal ones over the symbols of a dataset, and the amounts of those in which no data is expected. */
import { DAY_SECONDS } from '../../model/units.js';
import { type Gap } from './gap.js';
import type { SeriesStates } from './day-states.js';
import { dayText } from '../../model/calendar.js';
import { numberText } from '../../model/units.js';
import { printable } from '../../text/printable.js';
import type { GapReason } from './absent-days.js';
import { amountInUnit, unitOf } from './series-table.js';

/** The first and the last missing row or day, for example `2024-01-12 … 2024-01-14`. Times of rows are in UTC. */
export function spanText(
  { fromSeconds: from, toSeconds: to, reason }: Pick<Gap, 'fromSeconds' | 'toSeconds' | 'reason'>,
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

type Of = Pick<SeriesStates, 'rowSeconds' | 'dayStartSeconds'>;

/** Gaps of the same time, reason and unit. */
export interface GapGroup extends Gap, Of {
  /** The labels of the first series. */
  readonly labels: readonly string[];
  readonly series: number;
}

const MOST_SHOWN = 10;
const MOST_LABELS = 3;
/** A large lake may have millions of different gaps, of which only the worst are shown. */
const MOST_KEPT = 100_000;

/** The gaps of one dataset. Without `isAll`, only the worst are kept when there are very many. */
export class GapGroups {
  #groups = new Map<string, GapGroup>();
  #dropped = 0;
  readonly #excused = new ExcusedAmounts();

  constructor(private readonly isAll: boolean) {}

  add(label: string, coverage: Of, gaps: readonly Gap[]): void {
    for (const gap of gaps) {
      if (gap.isMissing) this.#addMissing(label, coverage, gap);
      else this.#excused.add(coverage, gap);
    }
    if (!this.isAll && this.#groups.size > MOST_KEPT) this.#dropSmall();
  }

  #addMissing(label: string, { rowSeconds, dayStartSeconds }: Of, gap: Gap): void {
    const name = `${gap.fromSeconds} ${gap.toSeconds} ${gap.isLoose === true} ${unitOf({ rowSeconds })} ${gap.reason}`;
    const { labels = [], series = 0, amount = 0 } = this.#groups.get(name) ?? {};
    this.#groups.set(name, {
      ...gap,
      amount: amount + gap.amount,
      rowSeconds,
      dayStartSeconds,
      labels: labels.length < MOST_LABELS ? [...labels, label] : labels,
      series: series + 1,
    });
  }

  #dropSmall(): void {
    const kept = this.#worst().slice(0, MOST_KEPT / 2);
    this.#dropped += this.#groups.size - kept.length;
    this.#groups = new Map(kept);
  }

  #worst(): [string, GapGroup][] {
    return [...this.#groups].sort(([, a], [, b]) => b.amount - a.amount || a.fromSeconds - b.fromSeconds);
  }

  /** The worst groups first, and the number of the others. */
  worst(most: number): { readonly shown: readonly GapGroup[]; readonly more: number } {
    const groups = this.#worst().map(([, group]) => group);
    const shown = groups.slice(0, most);
    return { shown, more: groups.length - shown.length + this.#dropped };
  }

  /** The worst gaps first, then the excused amounts. */
  lines(): string[] {
    const { shown, more } = this.worst(this.isAll ? Infinity : MOST_SHOWN);
    const excused = this.#excused.text();
    return [
      ...(shown.length === 0 ? [] : [shown.length > 1 ? 'missing, worst first:' : 'missing:']),
      // The end of a span is the last missing row or day: `2024-01-12 … 2024-01-14: 100 symbols, hole, 432,000 rows`.
      ...shown.map((group) => {
        const { span, symbols, missing } = gapTexts(group);
        return `  ${span}: ${symbols}, ${printable(group.reason)}, ${missing}`;
      }),
      ...(more > 0
        ? [`  and ${numberText(more)} more gaps: --all shows all, --json shows them by series`]
        : []),
      ...(excused === '' ? [] : [excused]),
    ];
  }
}

export function gapTexts(group: GapGroup): Readonly<Record<'span' | 'symbols' | 'missing', string>> {
  const { amount, isLoose, series, labels } = group;
  return {
    span: spanText(group, group),
    symbols: series > MOST_LABELS ? `${numberText(series)} symbols` : labels.join(' '),
    missing: `${amountInUnit(amount, unitOf(group))}${isLoose === true ? ' somewhere' : ''}`,
  };
}
