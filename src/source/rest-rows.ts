/** Pages of a longer span, given out by periods: a page may hold rows of many, and a period may need many pages. */
import { CryptodlError } from '../model/errors.js';
import type { ColumnSpec } from './facts.js';
import type { DatasetSpec } from './venue.js';

/** Epoch milliseconds `[from, to)`. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** `cells` by name, or by position as text. */
export interface Row {
  readonly at: number;
  /** Of a trade; 0 where rows have none. */
  readonly id: number;
  readonly cells: Readonly<Record<string, unknown>>;
}

/** `known`: everything before this instant has been seen. Pages come in order of time. */
export interface Page {
  readonly rows: readonly Row[];
  readonly known: number;
}

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

// Several routes as one series: rows of the same time become one, with what each of them has.

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

// Rows of REST in the columns of their dataset, as the archive would have published them: the converter's input.

export interface CsvOptions {
  readonly spec: DatasetSpec;
  readonly symbol: string;
  /** Times in microseconds, as the archive has them: an inclusive end becomes …999999. */
  readonly microseconds: boolean;
}

/** With a header. Digits stay as they were answered. Throws `answer-malformed` for a cell that no CSV can hold. */
export function rowsAsCsv(rows: readonly Row[], options: CsvOptions): Buffer {
  const { columns } = options.spec;
  const lines = [columns.map((column) => column.published ?? column.name).join(',')];
  for (const row of rows) lines.push(columns.map((column) => cellOf(row, column, options)).join(','));
  return Buffer.from(`${lines.join('\n')}\n`);
}

function cellOf({ at, cells }: Row, column: ColumnSpec, options: CsvOptions): string {
  if (column.type === 'symbol') return options.symbol;
  const value = cells[column.field ?? ''];
  if (column.type === 'datetime') return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
  const text = plainText(value);
  if (text === undefined || /[",\n\r]/.test(text))
    throw new CryptodlError('answer-malformed', `REST answered ${shownValue(value)} for ${column.name}`);
  if (column.type !== 'time' || !options.microseconds || !/^\d{13}$/.test(text)) return text;
  return text + (column.name.startsWith('close') ? '999' : '000');
}

/** Blank when it is not there: the converter knows which columns may be. */
function plainText(value: unknown): string | undefined {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value.trim();
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

/** What a cell holds, for messages. */
export function shownValue(value: unknown): string {
  return (JSON.stringify(value) as string | undefined)?.slice(0, 40) ?? 'missing';
}
