/** Pages of a longer span, given out by periods: a page may hold rows of many, and a period may need many pages. */
import type { Row, Span } from './page.js';
import type { Page } from './pagers.js';

export interface PeriodRows {
  readonly rows: readonly Row[];
  /** Nothing came before the end of the period, of this span. */
  readonly isBeforeFirst: boolean;
}

/** Pages are asked for when a period needs them, one at a time, in order. */
export class SpanRows {
  readonly #pages: AsyncIterator<Page>;
  #rows: Row[] = [];
  #known: number;
  #first: number | undefined;
  #tail: Promise<void> = Promise.resolve();

  constructor(pages: AsyncIterable<Page>, from: number) {
    this.#pages = pages[Symbol.asyncIterator]();
    this.#known = from;
  }

  /** Rows of a period of the span; they are given out once. Rejects, for every period to come, as the pages do. */
  async take({ from, to }: Span): Promise<PeriodRows> {
    this.#tail = this.#tail.then(() => this.#read(to));
    await this.#tail;
    const rows = this.#rows.filter(({ at }) => at >= from && at < to);
    this.#rows = this.#rows.filter(({ at }) => at < from || at >= to);
    return { rows, isBeforeFirst: this.#first === undefined || this.#first >= to };
  }

  async #read(to: number): Promise<void> {
    while (this.#known < to) {
      const next = await this.#pages.next();
      if (next.done === true) {
        this.#known = Number.POSITIVE_INFINITY;
        return;
      }
      const { rows, known } = next.value;
      this.#first ??= rows[0]?.at;
      // One at a time: a page of many rows is more than a call may have arguments.
      for (const row of rows) this.#rows.push(row);
      this.#known = known;
    }
  }
}
