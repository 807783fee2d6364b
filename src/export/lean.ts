/**
 * Files of Lean (QuantConnect): zips with one CSV each, and funding rates as margin interest. Layout: Data/crypto/readme.md of Lean; of futures
 * Data/cryptofuture, and Common/Data/Market/MarginInterestRate.cs.
 */
import { quoteName } from '../convert/sql.js';
import { safeName } from '../lake/layout.js';
import { dayText } from '../model/calendar.js';
import type { Series } from '../model/task.js';
import { csvForm, daysOf, fileOf, onDay } from './export-file.js';
import type { Engine, ExportFile, FileForm, Refused, RowSource } from './export-file.js';
import { epochUs, numberText, timeText } from './value-text.js';

/** The resolutions of Lean, by interval. */
const RESOLUTIONS: Readonly<Record<string, string>> = {
  '1s': 'second',
  '1m': 'minute',
  '1h': 'hour',
  '1d': 'daily',
};
const CANDLES = ['klines', 'bars'];

export const LEAN: Engine = {
  name: 'lean',
  datasets: ['klines', 'bars', 'bookTicker', 'fundingRate', 'aggTrades', 'trades'],
  onlyNamed: [],
  anyInterval: ['fundingRate'],
  groupBy: 'pair',
  files: ({ sources, venue }) =>
    sources.flatMap((source): (ExportFile | Refused)[] => {
      const { series } = source;
      if (!hasNone(source)) return filesOf(source, venue.name);
      const reason = `Lean has no resolution of ${series.interval ?? ''}; it has 1s, 1m, 1h and 1d`;
      return [{ series, reason }];
    }),
  notes: ['copy the folders crypto and cryptofuture into the data folder of Lean'],
};

function hasNone({ series: { dataset, interval = '' } }: RowSource): boolean {
  return CANDLES.includes(dataset) && !Object.hasOwn(RESOLUTIONS, interval);
}

function filesOf(source: RowSource, venue: string): ExportFile[] {
  const { series } = source;
  const root = `${series.market === 'spot' ? 'crypto' : 'cryptofuture'}/${venue}`;
  const name = safeName(series.symbol.replace(/_PERP$/, '').toLowerCase());
  if (series.dataset === 'fundingRate')
    return [
      fileOf(`${root}/margin_interest/${name}.csv`, source, PLAIN, (rows) => {
        const time = timeText('calc_time', '%Y%m%d %H:%M:%S');
        return `SELECT ${time} AS time, ${numberText('last_funding_rate')} AS rate FROM (${rows}) ORDER BY calc_time`;
      }),
    ];
  const resolution = RESOLUTIONS[series.interval ?? ''] ?? 'tick';
  const type = series.dataset === 'bookTicker' ? 'quote' : 'trade';
  if (resolution === 'hour' || resolution === 'daily')
    return [
      fileOf(`${root}/${resolution}/${name}_${type}.zip`, source, zipOf(`${name}.csv`), (rows) =>
        candles(timeText('open_time', '%Y%m%d %H:%M'), rows),
      ),
    ];
  return daysOf([source]).map((day) => {
    const date = dayText(day).replaceAll('-', '');
    const form = zipOf(`${date}_${name}_${resolution}_${type}.csv`);
    const path = `${root}/${resolution}/${name}/${date}_${type}.zip`;
    return fileOf(path, onDay(source, day), form, (rows) => dayQuery(series, rows));
  });
}

const PLAIN = { copy: csvForm({ header: false }) } as const;

function zipOf(member: string): FileForm {
  return { ...PLAIN, member };
}

/** Milliseconds since midnight. */
function sinceMidnight(column: string): string {
  return `${epochUs(column)} // 1000 % 86400000`;
}

function dayQuery({ dataset }: Series, rows: string): string {
  switch (dataset) {
    case 'klines':
    case 'bars':
      return candles(sinceMidnight('open_time'), rows);
    case 'bookTicker':
      return values(
        ['transaction_time', 'update_id'],
        ['best_bid_price', 'best_bid_qty', 'best_ask_price', 'best_ask_qty'],
        rows,
      );
    case 'trades':
      return values(['time', 'id'], ['price', 'qty'], rows);
    default:
      return values(['transact_time', 'agg_trade_id'], ['price', 'quantity'], rows);
  }
}

function values([time = '', ...ids]: readonly string[], numbers: readonly string[], rows: string): string {
  const texts = numbers.map((name) => `${numberText(name)} AS ${quoteName(name)}`);
  return `SELECT ${sinceMidnight(time)} AS milliseconds, ${texts.join(', ')} FROM (${rows}) ORDER BY ${[time, ...ids].map(quoteName).join(', ')}`;
}

function candles(time: string, rows: string): string {
  const texts = ['open', 'high', 'low', 'close', 'volume'].map((name) => `${numberText(name)} AS ${name}`);
  return `SELECT ${time} AS milliseconds, ${texts.join(', ')} FROM (${rows}) ORDER BY open_time`;
}
