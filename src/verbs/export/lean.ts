/**
 * Files of Lean (QuantConnect): zips with one CSV each, and funding rates as margin interest. Layout: Data/crypto/readme.md of Lean; of futures
 * Data/cryptofuture, and Common/Data/Market/MarginInterestRate.cs.
 */
import { instantExpression } from '../../convert/columns.js';
import { safeName } from '../../lake/safe-names.js';
import { dayText } from '../../model/calendar.js';
import { csvForm, exportedDaysOf, onDay, rowOrder } from './export-file.js';
import type { ExportProgram, ExportFile, Refused, SeriesRows } from './export-file.js';

const RESOLUTIONS: Readonly<Record<string, string>> = {
  '1s': 'second',
  '1m': 'minute',
  '1h': 'hour',
  '1d': 'daily',
};

/** The numbers behind the time of a row. */
const COLUMNS: Readonly<Record<string, string>> = {
  klines: 'open, high, low, close, volume',
  bars: 'open, high, low, close, volume',
  bookTicker: 'best_bid_price, best_bid_qty, best_ask_price, best_ask_qty',
  fundingRate: 'last_funding_rate',
  aggTrades: 'price, quantity',
  trades: 'price, qty',
};

export const LEAN: ExportProgram = {
  name: 'lean',
  datasets: Object.keys(COLUMNS),
  anyInterval: ['fundingRate'],
  groupBy: 'pair',
  files: ({ sources, exchange }) =>
    sources.flatMap((source): readonly (ExportFile | Refused)[] => {
      const { series } = source;
      const { interval } = series;
      if (interval === undefined || Object.hasOwn(RESOLUTIONS, interval))
        return exportFilesOf(source, exchange.name);
      return [{ series, reason: `Lean has no resolution of ${interval}; it has 1s, 1m, 1h and 1d` }];
    }),
  notes: ['copy the folders crypto and cryptofuture into the data folder of Lean'],
};

function exportFilesOf(source: SeriesRows, exchange: string): ExportFile[] {
  const { market, dataset, interval = '', symbol } = source.series;
  const root = `${market === 'spot' ? 'crypto' : 'cryptofuture'}/${exchange}`;
  const name = safeName(symbol.replace(/_PERP$/, '').toLowerCase());
  const time = instantExpression(source.spec);
  const values = COLUMNS[dataset]?.replaceAll(/\w+/g, 'num($&)') ?? '';
  const fileOf = (path: string, rows: SeriesRows, timeText: string, member?: string): ExportFile => ({
    path: `${root}/${path}`,
    sources: [rows],
    select: `SELECT ${timeText}, ${values} FROM r0 ORDER BY ${rowOrder(source.spec)}`,
    form: { copy: csvForm({ header: false }), ...(member === undefined ? {} : { member }) },
  });
  const type = dataset === 'bookTicker' ? 'quote' : 'trade';
  if (dataset === 'fundingRate')
    return [fileOf(`margin_interest/${name}.csv`, source, `stamp(${time}, '%Y%m%d %H:%M:%S')`)];
  const resolution = RESOLUTIONS[interval] ?? 'tick';
  if (resolution === 'hour' || resolution === 'daily') {
    const path = `${resolution}/${name}_${type}.zip`;
    return [fileOf(path, source, `stamp(${time}, '%Y%m%d %H:%M')`, `${name}.csv`)];
  }
  return exportedDaysOf([source]).map((day) => {
    const date = dayText(day).replaceAll('-', '');
    const member = `${date}_${name}_${resolution}_${type}.csv`;
    const sinceMidnight = `epoch_us(${time}) // 1000 % 86400000`;
    return fileOf(`${resolution}/${name}/${date}_${type}.zip`, onDay(source, day), sinceMidnight, member);
  });
}
