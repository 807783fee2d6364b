/** CSV files for any program: chosen columns, delimiter and form of times, one file per symbol or one per dataset. */
import { quoteName, quoteText } from '../convert/sql.js';
import { safeName } from '../lake/layout.js';
import { usage } from '../model/errors.js';
import type { ColumnSpec } from '../source/facts.js';
import type { DatasetSpec } from '../source/venue.js';
import { didYouMean } from '../text/did-you-mean.js';
import { csvForm } from './export-file.js';
import type { Engine, EngineInput, EngineSettings, ExportFile } from './export-file.js';
import { numberText, timeText } from './value-text.js';

/** `datasets` is empty: all. */
export const CSV: Engine = {
  name: 'csv',
  datasets: [],
  onlyNamed: [],
  anyInterval: [],
  groupBy: 'dataset',
  files: filesOf,
  notes: [],
};

/** `um_klines_1m` */
function folderOf({
  market,
  dataset,
  interval,
}: {
  market: string;
  dataset: string;
  interval?: string;
}): string {
  return [market, dataset, interval]
    .filter((part) => part !== undefined)
    .map(safeName)
    .join('_');
}

/** The rows of one file of all symbols are ordered by time, then by symbol. */
function filesOf({ sources, settings }: EngineInput): ExportFile[] {
  const { oneFile, delimiter } = settings;
  const sets = oneFile ? [sources] : sources.map((source) => [source]);
  return sets.flatMap((set): ExportFile[] => {
    const [first] = set;
    if (first === undefined) return [];
    const { series, spec } = first;
    const columns = columnsOf(spec, settings, oneFile ? undefined : series.symbol);
    const order = [...spec.sort, ...(oneFile ? ['symbol'] : [])].map(quoteName).join(', ');
    const values = columns.map(({ name, sql }) => `${sql} AS ${quoteName(name)}`).join(', ');
    return [
      {
        path: oneFile ? `${folderOf(series)}.csv` : `${folderOf(series)}/${safeName(series.symbol)}.csv`,
        sources: set,
        select: (relations) => {
          const rows = relations.map((one) => `(${one})`).join(' UNION ALL BY NAME ');
          return `SELECT ${values} FROM (SELECT * FROM (${rows}) ORDER BY ${order})`;
        },
        form: { copy: csvForm({ delimiter: quoteText(delimiter) }) },
      },
    ];
  });
}

interface NamedValue {
  readonly name: string;
  readonly sql: string;
}

/** `symbol`: the symbol of the file; undefined: the file has a column with the symbol of each row. Throws usage errors for unknown columns. */
function columnsOf(spec: DatasetSpec, settings: EngineSettings, symbol: string | undefined): NamedValue[] {
  const known = new Map(
    spec.columns
      .filter(({ type }) => type !== 'symbol')
      .map((column) => [column.name, valueOf(column, settings)]),
  );
  known.set('symbol', symbol === undefined ? quoteName('symbol') : quoteText(symbol));
  const all = [...known.keys()].filter((name) => name !== 'symbol');
  const { columns = symbol === undefined ? ['symbol', ...all] : all } = settings;
  if (symbol === undefined && !columns.some((text) => /^(?:[^=]+=)?symbol$/.test(text)))
    throw usage(
      '--columns has no symbol, and with --one-file the rows of all symbols are in one file',
      'add it, or leave out --one-file',
    );
  // Programs like DuckDB take names that differ only in upper and lower case for one name.
  const names = columns.map((text) => text.replace(/=.*/, '').toLowerCase());
  const at = names.findIndex((name, index) => names.indexOf(name) !== index);
  const repeated = columns[at];
  if (repeated !== undefined)
    throw usage(
      `--columns: ${repeated.replace(/=.*/, '')} is there twice`,
      `give one of them another name: other=${repeated.replace(/^[^=]+=/, '')}`,
    );
  return columns.map((text) => {
    const [, given, value = ''] = /^(?:([^=]+)=)?(.+)$/.exec(text) ?? [];
    const sql =
      known.get(value) ?? (given !== undefined && /^-?\d+(\.\d+)?$/.test(value) ? value : undefined);
    if (sql === undefined)
      throw usage(
        `--columns: ${spec.name} has no column ${value}; it has ${[...known.keys()].join(', ')}`,
        didYouMean(value, [...known.keys()]) ?? 'choose the dataset of these columns with --dataset',
      );
    return { name: given ?? value, sql };
  });
}

function valueOf({ name, type }: ColumnSpec, { timeFormat }: EngineSettings): string {
  if (type === 'time' || type === 'datetime') return timeText(name, timeFormat);
  return type === 'number' ? numberText(name) : quoteName(name);
}
