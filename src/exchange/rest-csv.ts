/** Rows of REST as CSV. */
import { CryptodlError } from '../model/errors.js';
import type { DatasetSpec } from './exchange-spec.js';
import type { ColumnSpec } from './facts.js';
import type { RestRow } from './rest-rows.js';

export interface CsvOptions {
  readonly spec: DatasetSpec;
  readonly symbol: string;
  /** Write times in microseconds like the archive: an inclusive end becomes …999999. */
  readonly microseconds: boolean;
}

/** CSV with a header. Digits stay unchanged. Throws `answer-malformed` for a value that does not fit into a cell. */
export function rowsAsCsv(rows: readonly RestRow[], options: CsvOptions): Buffer {
  const { columns } = options.spec;
  const lines = [columns.map((column) => column.published ?? column.name).join(',')];
  for (const row of rows) lines.push(columns.map((column) => cellOf(row, column, options)).join(','));
  return Buffer.from(`${lines.join('\n')}\n`);
}

function cellOf({ atMs, cells }: RestRow, column: ColumnSpec, options: CsvOptions): string {
  if (column.type === 'symbol') return options.symbol;
  const value = cells[column.field ?? ''];
  if (column.type === 'datetime') return new Date(atMs).toISOString().slice(0, 19).replace('T', ' ');
  const text = plainText(value);
  if (text === undefined || /[",\n\r]/.test(text))
    throw new CryptodlError('answer-malformed', `REST answered ${shownValue(value)} for ${column.name}`);
  if (column.type !== 'time' || !options.microseconds || !/^\d{13}$/.test(text)) return text;
  return text + (column.name.startsWith('close') ? '999' : '000');
}

/** Blank for a missing value: the converter checks which columns may be blank. */
function plainText(value: unknown): string | undefined {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value.trim();
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

export const shownValue = (value: unknown): string =>
  (JSON.stringify(value) as string | undefined)?.slice(0, 40) ?? 'missing';
