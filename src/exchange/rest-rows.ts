/** Rows of REST: their pages split into periods, because a page may have rows of many periods and a period may need many pages. */
import { HOUR_MS } from '../model/units.js';

/** Epoch milliseconds `[from, to)`. */
export interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The keys of `cells` are field names, or positions written as text (`'0'`). */
export interface RestRow {
  readonly atMs: number;
  /** Id of a trade; 0 for rows without ids. */
  readonly id: number;
  readonly cells: Readonly<Record<string, unknown>>;
}

/** `knownMs`: all rows before this time have been read. `servedAtMs`: the time of the host, in epoch milliseconds. Pages come in order of time. */
export interface Page {
  readonly rows: readonly RestRow[];
  readonly knownMs: number;
  readonly servedAtMs?: number;
}

/** Error codes with which REST says that it has no rows, or none for this country. */
export const NOT_IN_REST: ReadonlySet<string> = new Set([
  'before-history',
  'symbol-closed',
  'contract-unknown',
  'symbol-unknown',
  'location-restricted',
]);

/** The last rows of a day appear seconds after its end, and the local clock may be ahead of the exchange. */
export const SETTLE_MS = HOUR_MS;

export interface PeriodRows {
  readonly rows: readonly RestRow[];
  /** The span has no row before the end of the period. */
  readonly isBeforeFirst: boolean;
  /** The time of the host at its last answer, in epoch milliseconds; NaN if it does not tell. */
  readonly servedAtMs: number;
}

/** Requests pages only when a period needs them, one at a time, in order. */
export class SpanRows {
  readonly #pages: AsyncIterator<Page>;
  #rows: RestRow[] = [];
  #knownMs: number;
  #first: number | undefined;
  #servedAtMs = Number.NaN;
  #tail: Promise<void> = Promise.resolve();

  constructor(pages: AsyncIterable<Page>, fromMs: number) {
    this.#pages = pages[Symbol.asyncIterator]();
    this.#knownMs = fromMs;
  }

  /** The rows of a period; each row is returned once. After a failed page, all later calls reject with the same error. */
  async take({ fromMs, toMs }: TimeSpan): Promise<PeriodRows> {
    this.#tail = this.#tail.then(() => this.#read(toMs));
    await this.#tail;
    const rows = this.#rows.filter(({ atMs }) => atMs >= fromMs && atMs < toMs);
    this.#rows = this.#rows.filter(({ atMs }) => atMs < fromMs || atMs >= toMs);
    const isBeforeFirst = this.#first === undefined || this.#first >= toMs;
    return { rows, isBeforeFirst, servedAtMs: this.#servedAtMs };
  }

  async #read(toMs: number): Promise<void> {
    while (this.#knownMs < toMs) {
      const next = await this.#pages.next();
      if (next.done === true) {
        this.#knownMs = Number.POSITIVE_INFINITY;
        return;
      }
      const { rows, knownMs, servedAtMs = Number.NaN } = next.value;
      this.#servedAtMs = servedAtMs;
      this.#first ??= rows[0]?.atMs;
      // Not push(...rows): a page may have more rows than a call may have arguments.
      for (const row of rows) this.#rows.push(row);
      this.#knownMs = knownMs;
    }
  }
}

/** Like SpanRows, for several routes as one series: rows of the same time are joined. */
export class JoinedRows {
  readonly #parts: readonly (readonly [dataset: string, rows: SpanRows])[];

  constructor(parts: readonly (readonly [dataset: string, pages: AsyncIterable<Page>])[], fromMs: number) {
    this.#parts = parts.map(([dataset, pages]) => [dataset, new SpanRows(pages, fromMs)]);
  }

  /** Cells are named `dataset.field`. Cells of a part without a row at this time stay blank. */
  async take(span: TimeSpan): Promise<PeriodRows> {
    const taken = await Promise.all(
      this.#parts.map(async ([dataset, part]) => ({ dataset, ...(await part.take(span)) })),
    );
    const byTime = new Map<number, Record<string, unknown>>();
    for (const { dataset, rows } of taken) {
      for (const { atMs, cells } of rows) {
        const joined = byTime.get(atMs) ?? { timestamp: atMs };
        for (const [field, value] of Object.entries(cells)) joined[`${dataset}.${field}`] = value;
        byTime.set(atMs, joined);
      }
    }
    const rows = [...byTime]
      .sort(([a], [b]) => a - b)
      .map(([atMs, cells]): RestRow => ({ atMs, id: 0, cells }));
    const servedAtMs = Math.min(...taken.map((part) => part.servedAtMs));
    return { rows, isBeforeFirst: taken.every(({ isBeforeFirst }) => isBeforeFirst), servedAtMs };
  }
}
