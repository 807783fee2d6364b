/**
 * Files of Lean (QuantConnect): zips with one CSV each, and funding rates as margin interest. Layout: Data/crypto/readme.md of Lean; of futures
 * Data/cryptofuture, and Common/Data/Market/MarginInterestRate.cs.
 */
import { quoteName } from '../convert/sql.js';
import { safeName } from '../lake/layout.js';
import { dayText } from '../model/calendar.js';
import type { Series } from '../model/task.js';
import { daysOf, oneForEachPath, onDay, rowSource } from './export-file.js';
import type {
  Candidate,
  Engine,
  ExportFile,
  HeldData,
  EngineInput,
  Refused,
  RowSource,
} from './export-file.js';
import { epochUs, numberText, timeText } from './value-text.js';

/** The resolutions of Lean, by interval. */
const RESOLUTIONS: Readonly<Record<string, string>> = {
  '1s': 'second',
  '1m': 'minute',
  '1h': 'hour',
  '1d': 'daily',
};
const TRADES = ['aggTrades', 'trades'];
const CANDLES = ['klines', 'bars'];

export const LEAN: Engine = {
  name: 'lean',
  datasets: ['klines', 'bars', 'bookTicker', 'fundingRate', ...TRADES],
  onlyNamed: [],
  anyInterval: ['fundingRate'],
  groupBy: 'symbol',
  files: (input) => {
    const candidates: Candidate[] = [];
    const refused: Refused[] = [];
    for (const held of input.held) {
      const { series } = held;
      const { dataset, interval = '' } = series;
      if (CANDLES.includes(dataset) && !Object.hasOwn(RESOLUTIONS, interval))
        refused.push({ series, reason: `Lean has no resolution of ${interval}; it has 1s, 1m, 1h and 1d` });
      else {
        const rank = ['trades', 'bars'].includes(dataset) ? 0 : 1;
        candidates.push(...filesOf(held, input).map((file) => ({ ...file, rank })));
      }
    }
    const { files, refused: others } = oneForEachPath(candidates);
    return { files, refused: [...refused, ...others] };
  },
  notes: ['copy the folders crypto and cryptofuture into the data folder of Lean'],
};

function filesOf(held: HeldData, { venue, range }: EngineInput): ExportFile[] {
  const source = rowSource(held, range);
  if (source === undefined) return [];
  const { series } = source;
  const root = `${series.market === 'spot' ? 'crypto' : 'cryptofuture'}/${venue.name}`;
  const name = safeName(series.symbol.replace(/_PERP$/, '').toLowerCase());
  if (series.dataset === 'fundingRate')
    return [
      {
        ...whole(source),
        path: `${root}/margin_interest/${name}.csv`,
        select: ([rows = '']) =>
          `SELECT ${timeText('calc_time', '%Y%m%d %H:%M:%S')} AS time, ${numberText('last_funding_rate')} AS rate FROM (${rows})`,
        form: { kind: 'csv', hasHeader: false, delimiter: ',', isCompressed: false },
        order: ['time'],
      },
    ];
  const resolution = RESOLUTIONS[series.interval ?? ''] ?? 'tick';
  const type = series.dataset === 'bookTicker' ? 'quote' : 'trade';
  if (resolution === 'hour' || resolution === 'daily')
    return [
      {
        ...whole(source),
        path: `${root}/${resolution}/${name}_${type}.zip`,
        select: ([rows = '']) => candles(timeText('open_time', '%Y%m%d %H:%M'), rows),
        form: { kind: 'zip', member: `${name}.csv` },
        order: ['time'],
      },
    ];
  return daysOf([source]).map((day) => {
    const date = dayText(day).replaceAll('-', '');
    return {
      ...whole(onDay(source, day)),
      path: `${root}/${resolution}/${name}/${date}_${type}.zip`,
      select: ([rows = '']) => dayQuery(series, rows),
      form: { kind: 'zip', member: `${date}_${name}_${resolution}_${type}.csv` },
      order: ['time'],
    };
  });
}

function whole(source: RowSource): Pick<ExportFile, 'sources' | 'days' | 'isUnique'> {
  return { sources: [source], days: source.days, isUnique: false };
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
        'transaction_time',
        ['best_bid_price', 'best_bid_qty', 'best_ask_price', 'best_ask_qty'],
        `SELECT * FROM (${rows}) ORDER BY transaction_time, update_id`,
      );
    case 'trades':
      return values('time', ['price', 'qty'], rows);
    default:
      return values('transact_time', ['price', 'quantity'], rows);
  }
}

function values(column: string, numbers: readonly string[], from: string): string {
  const texts = numbers.map((name) => `${numberText(name)} AS ${quoteName(name)}`);
  return `SELECT ${sinceMidnight(column)} AS time, ${texts.join(', ')} FROM (${from})`;
}

function candles(time: string, rows: string): string {
  const texts = ['open', 'high', 'low', 'close', 'volume'].map((name) => `${numberText(name)} AS ${name}`);
  return `SELECT ${time} AS time, ${texts.join(', ')} FROM (${rows})`;
}
