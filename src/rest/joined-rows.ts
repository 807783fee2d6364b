/** Several routes as one series: rows of the same time become one, with what each of them has. */
import type { Row, Span } from './page.js';
import { SpanRows } from './span-rows.js';
import type { PeriodRows } from './span-rows.js';
import type { Page } from './pagers.js';

/** Gives out the rows of periods, like the spans that it joins. */
export class JoinedRows {
  readonly #parts: readonly (readonly [dataset: string, rows: SpanRows])[];

  constructor(parts: readonly (readonly [dataset: string, pages: AsyncIterable<Page>])[], from: number) {
    this.#parts = parts.map(([dataset, pages]) => [dataset, new SpanRows(pages, from)]);
  }

  /** Cells are named `dataset.field`; a time that one of the parts does not have leaves its cells blank. */
  async take(span: Span): Promise<PeriodRows> {
    const taken = await Promise.all(
      this.#parts.map(async ([dataset, part]) => ({ dataset, ...(await part.take(span)) })),
    );
    const byTime = new Map<number, Record<string, unknown>>();
    for (const { dataset, rows } of taken) {
      for (const { at, cells } of rows) {
        const joined = byTime.get(at) ?? { timestamp: at };
        for (const [field, value] of Object.entries(cells)) joined[`${dataset}.${field}`] = value;
        byTime.set(at, joined);
      }
    }
    const rows = [...byTime].sort(([a], [b]) => a - b).map(([at, cells]): Row => ({ at, id: 0, cells }));
    return { rows, isBeforeFirst: taken.every(({ isBeforeFirst }) => isBeforeFirst) };
  }
}
