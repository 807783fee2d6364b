/** Sound CSVs: every type of column, with and without a header. */
import type { Series } from '../../src/model/task.js';
import type { ColumnSpec } from '../../src/exchange/facts.js';
import { specOf } from '../helpers/conversion.js';

export interface SoundCsv {
  readonly name: string;
  readonly series: Series;
  readonly bytes: Buffer;
}

const SYMBOL = 'BTCUSDT_240329';
const NUMBERS = '42283.58 0.1 -1.8E-7 2E3 12345678901.12345678 .5 7. 0E-8 1271 -0.00'.split(' ');
const FLAGS = ['true', 'false', 'True', 'False'];

function cellOf(column: ColumnSpec, row: number, at: number): string {
  const day = `2024-01-${15 + row}`;
  switch (column.type) {
    case 'time':
      return String((1_705_276_800_000 + row * 60_000 + at) * (row < 2 ? 1 : 1000));
    case 'datetime':
      return row === 3 ? day : `${day} 00:0${row}:00`;
    case 'date':
      return day;
    case 'hour':
      return String(row);
    case 'integer':
      return String(9_007_199_254_740_000 + row * 7);
    case 'number':
      return column.nullable && (row + at) % 5 === 0
        ? (['', '""'][row % 2] ?? '')
        : (NUMBERS[(row * 3 + at) % 10] ?? '');
    case 'flag':
      return FLAGS[(row + at) % 4] ?? '';
    case 'text':
      return ['LIMIT', 'BTC-240329-42000-C', 'IOC', '币安'][(row + at) % 4] ?? '';
    case 'symbol':
      return SYMBOL;
  }
}

function soundCsv(
  series: Omit<Series, 'symbol'>,
  rows: number,
  form: 'bare' | 'header' | 'CRLF' = 'bare',
): SoundCsv {
  const columns = specOf(series.market, series.dataset).columns.filter((column) => !column.restOnly);
  const lines = Array.from({ length: rows }, (_, row) =>
    columns.map((column, at) => cellOf(column, row, at)).join(','),
  );
  if (form !== 'bare') lines.unshift(columns.map((column) => column.published ?? column.name).join(','));
  const text = form === 'CRLF' ? `\uFEFF${lines.join('\r\n')}\r\n` : `${lines.join('\n')}\n`;
  return {
    name: `${series.market} ${series.dataset} ${form}`,
    series: { ...series, symbol: SYMBOL },
    bytes: Buffer.from(text),
  };
}

export const CSVS: readonly [SoundCsv, ...SoundCsv[]] = [
  soundCsv({ market: 'spot', dataset: 'klines', interval: '1m' }, 4),
  soundCsv({ market: 'um', dataset: 'klines', interval: '1m' }, 4, 'header'),
  soundCsv({ market: 'um', dataset: 'klines', interval: '1m' }, 2, 'CRLF'),
  soundCsv({ market: 'um', dataset: 'metrics' }, 4, 'header'),
  soundCsv({ market: 'um', dataset: 'metrics' }, 4),
  soundCsv({ market: 'spot', dataset: 'aggTrades' }, 4),
  soundCsv({ market: 'um', dataset: 'aggTrades' }, 4, 'header'),
  soundCsv({ market: 'um', dataset: 'trades' }, 4, 'header'),
  soundCsv({ market: 'spot', dataset: 'trades' }, 3),
  soundCsv({ market: 'um', dataset: 'fundingRate' }, 4),
  soundCsv({ market: 'um', dataset: 'bookDepth' }, 4, 'header'),
  soundCsv({ market: 'cm', dataset: 'liquidationSnapshot' }, 3, 'header'),
  soundCsv({ market: 'option', dataset: 'BVOLIndex' }, 4),
  soundCsv({ market: 'option', dataset: 'EOHSummary' }, 3, 'header'),
];
