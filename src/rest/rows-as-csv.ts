/** Rows of REST in the columns of their dataset, as the archive would have published them: the converter's input. */
import { CryptodlError } from '../errors.js';
import type { ColumnSpec } from '../venue/facts.js';
import type { DatasetSpec } from '../venue/venue.js';
import { shownValue } from './page.js';
import type { Row } from './page.js';

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
