/** Descriptions of datasets, for `schema`, docs/datasets.md and Parquet metadata. */
import { periodText } from '../model/calendar.js';
import { HOUR_MS } from '../model/units.js';
import type { Cadence, Market } from '../model/task.js';
import type { ColumnSpec } from './facts.js';
import { reachMs, routesOf } from './routes.js';
import { findDataset, intervalsOf, isArchived, isMade, isMetric, marketNames } from './exchange-spec.js';
import type { DatasetSpec, ExchangeSpec } from './exchange-spec.js';

const TYPES: Readonly<Record<Exclude<ColumnSpec['type'], 'symbol'>, string>> = {
  time: 'TIMESTAMP',
  datetime: 'TIMESTAMP',
  date: 'DATE',
  hour: 'BIGINT',
  integer: 'BIGINT',
  number: 'DOUBLE',
  flag: 'BOOLEAN',
  text: 'VARCHAR',
};

const HEADERS: Readonly<Record<DatasetSpec['header'], string>> = {
  never: 'published files have none',
  some: 'some published files have one; each file is checked',
  always: 'published files have one',
};

/** `type`: the Parquet type if `--numbers` is not `string`. */
export const describeColumns = (spec: DatasetSpec) =>
  spec.columns.flatMap(({ name, type, unit, doc, nullable }) =>
    type === 'symbol' ? [] : [{ name, type: TYPES[type], unit: unitText(type, unit), doc, nullable }],
  );

function unitText(type: ColumnSpec['type'], unit: string | undefined): string {
  if (unit === undefined) return '';
  return type === 'time' || type === 'datetime' ? `UTC (published: ${unit})` : unit;
}

/** Columns are in the order of the written file. */
export function describeDataset(exchange: ExchangeSpec, market: Market, spec: DatasetSpec) {
  const intervals = intervalsOf(spec);
  const byDay = spec.dayPartitionIntervals.filter((interval) => intervals?.includes(interval) === true);
  const exception = byDay.length === 0 ? '' : ` (one per day for ${byDay.join(', ')})`;
  const objects = spec.cadences.map((cadence) => cadence + sinceText(spec, cadence));
  const hasInterval = intervals !== undefined || isMade(spec);
  const facts: readonly (readonly [label: string, text: string | undefined])[] = [
    ['objects', isArchived(spec) ? objects.join(', ') : undefined],
    ['REST', spec.rest && restText(exchange, market, spec)],
    ['made by', isMade(spec) ? `cryptodl ${spec.name} INTERVAL, from rows of the lake` : undefined],
    ['state', endedText(exchange, market, spec.name)],
    ['intervals', intervals && intervalText(spec, intervals)],
    ['files', `one per ${spec.partition}${exception}`],
    ['sorted by', spec.sort.join(', ')],
    ['header', isArchived(spec) ? HEADERS[spec.header] : undefined],
    ['path', `${hasInterval ? 'symbol and interval come' : 'symbol comes'} from the folder names`],
  ];
  return {
    market,
    dataset: spec.name,
    title: spec.title,
    columns: describeColumns(spec),
    facts: facts.flatMap(([label, text]) => (text === undefined ? [] : [[label, text] as const])),
    notes: spec.notes,
  };
}

/** `the last 30 days, by cryptodl metrics` */
function restText(exchange: ExchangeSpec, market: Market, spec: DatasetSpec): string {
  const verbs = [
    ...(isMetric(spec) ? ['cryptodl metrics'] : []),
    ...(isArchived(spec) ? ['cryptodl vision --fill rest'] : []),
  ];
  return `${reachText(exchange, market, spec)}, by ${verbs.join(' and ')}`;
}

const DAY_HOURS = 24;
const FEW_DAYS = 3;

export function reachText(exchange: ExchangeSpec, market: Market, { name }: DatasetSpec): string {
  const series = { market, dataset: name, symbol: '' };
  const reach = reachMs(exchange, series);
  if (reach === undefined) {
    const first = routesOf(exchange, series).find(({ route }) => route.first !== undefined)?.route.first;
    return first === undefined ? 'all days' : `${first} …`;
  }
  const hours = reach / HOUR_MS;
  return hours < FEW_DAYS * DAY_HOURS ? `the last ${hours} hours` : `the last ${hours / DAY_HOURS} days`;
}

function sinceText(spec: DatasetSpec, cadence: Cadence): string {
  const { first, last } = spec.spans[cadence] ?? {};
  if (first === undefined && last === undefined) return '';
  const from = first === undefined ? '' : `${periodText(first)} `;
  return ` ${from}…${last === undefined ? '' : ` ${periodText(last)}`}`;
}

function intervalText(spec: DatasetSpec, all: readonly string[]): string {
  const rest = all.filter((interval) => spec.intervals?.daily.includes(interval) !== true);
  const text = all.join(' ');
  return rest.length === 0 ? text : `${text} (${rest.join(' ')} monthly only)`;
}

/** The default market if it has the dataset, else the first market with it. */
export function marketWith(exchange: ExchangeSpec, dataset: string): Market | undefined {
  return [exchange.defaultMarket, ...marketNames(exchange)].find(
    (market) => findDataset(exchange, market, dataset) !== undefined,
  );
}

// Datasets that have ended.

/** The day number after the last period of these cadences; undefined if one of them has no known end. */
export function endOfDataset(
  spec: DatasetSpec,
  cadences: readonly Cadence[] = spec.cadences.slice(0, 1),
): number | undefined {
  const ends = cadences.flatMap((cadence) => spec.spans[cadence]?.last?.to ?? []);
  return ends.length === 0 || ends.length < cadences.length ? undefined : Math.max(...ends);
}

/** `um bookTicker ended 2024-03-30`; undefined if this market still has the dataset. */
export function endedText(exchange: ExchangeSpec, market: Market, dataset: string): string | undefined {
  const spec = findDataset(exchange, market, dataset);
  if (spec?.removed === true) return `${market} ${dataset} was removed by Binance`;
  const last = spec?.spans[spec.cadences[0] ?? 'daily']?.last;
  return last === undefined ? undefined : `${market} ${dataset} ended ${periodText(last)}`;
}
