/** CSV files for any program: chosen columns, delimiter and form of times, one file per symbol or one per dataset. */
import { quoteName, quoteText } from '../../convert/sql.js';
import { safeName } from '../../lake/safe-names.js';
import { usage } from '../../model/errors.js';
import type { ColumnSpec } from '../../exchange/facts.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { didYouMean } from '../../text/did-you-mean.js';
import { csvForm, rowOrder, type ExportProgram, type ProgramInput, type ExportFile } from './export-file.js';

/** `datasets` is empty: all. */
export const CSV: ExportProgram = {
  name: 'csv',
  datasets: [],
  flags: ['columns', 'delimiter', 'time-format', 'one-file'],
  groupBy: 'dataset',
  files: exportFilesOf,
};

/** Rows are ordered by time, then by the keys of the dataset, and by symbol in one file of all symbols. */
function exportFilesOf({ sources, options }: ProgramInput): ExportFile[] {
  const { oneFile, delimiter } = options;
  const sets = oneFile ? [sources] : sources.map((source) => [source]);
  return sets.flatMap((set): ExportFile[] => {
    const [first] = set;
    if (first === undefined) return [];
    const { series, spec } = first;
    const { market, dataset, interval = '', symbol } = series;
    // `um_klines_1h`
    const folder = [market, dataset, interval].filter(Boolean).map(safeName).join('_');
    const rows = set.map((_, at) => `(FROM r${at})`).join(' UNION ALL BY NAME ');
    const order = [rowOrder(spec), ...(oneFile ? [quoteName('symbol')] : [])].join(', ');
    return [
      {
        path: oneFile ? `${folder}.csv` : `${folder}/${safeName(symbol)}.csv`,
        sources: set,
        select: `SELECT ${columnsOf(spec, options, symbol)} FROM (SELECT * FROM (${rows}) ORDER BY ${order})`,
        form: { copy: csvForm({ delimiter: quoteText(delimiter) }) },
      },
    ];
  });
}

/** SQL. `symbol`: that of a file of one symbol. Throws usage errors for unknown columns. */
function columnsOf(spec: DatasetSpec, options: ProgramInput['options'], symbol: string): string {
  const { oneFile } = options;
  const known = new Map(
    spec.columns
      .filter(({ type }) => type !== 'symbol')
      .map((column) => [column.name, valueOf(column, options)]),
  );
  const all = [...(oneFile ? ['symbol'] : []), ...known.keys()];
  known.set('symbol', oneFile ? quoteName('symbol') : quoteText(symbol));
  const columns = (options.columns ?? all).map((text) => {
    const [, name, value = ''] = /^(?:([^=]+)=)?(.+)$/.exec(text) ?? [];
    return { name, value };
  });
  if (oneFile && !columns.some(({ value }) => value === 'symbol'))
    throw usage(
      '--columns has no symbol, and with --one-file the rows of all symbols are in one file',
      'add it, or leave out --one-file',
    );
  const values = columns.map(({ name, value }) => {
    const isNumber = name !== undefined && /^-?\d+(\.\d+)?$/.test(value);
    const sql = known.get(value) ?? (isNumber ? value : undefined);
    if (sql !== undefined) return `${sql} AS ${quoteName(name ?? value)}`;
    throw usage(
      `--columns: ${spec.name} has no column ${value}; it has ${[...known.keys()].join(', ')}`,
      didYouMean(value, [...known.keys()]) ?? 'choose the dataset of these columns with --dataset',
    );
  });
  return values.join(', ');
}

/** All times of a column have equally many digits. */
function valueOf({ name, type }: ColumnSpec, { timeFormat }: ProgramInput['options']): string {
  const column = quoteName(name);
  if (type !== 'time' && type !== 'datetime') return type === 'number' ? `num(${column})` : column;
  const us = `epoch_us(${column})`;
  const iso = `stamp(${column}, '%Y-%m-%dT%H:%M:%S') || '.' || lpad(CAST(${us} % 1000000 AS VARCHAR), 6, '0') || 'Z'`;
  const forms: Readonly<Record<string, string>> = { us, ms: `${us} // 1000`, s: `${us} // 1000000`, iso };
  return forms[timeFormat] ?? `stamp(${column}, ${quoteText(timeFormat)})`;
}
