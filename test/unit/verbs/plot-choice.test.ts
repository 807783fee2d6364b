/** The series and the column that `cryptodl plot` chooses. */
import { VERBS } from '../../../src/main.js';
import { describe, expect, it } from 'vitest';
import type { Series } from '../../../src/model/task.js';
import type { FlagName } from '../../../src/plan/options/flags.js';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import { chooseDataset } from '../../../src/verbs/plot/choose-series.js';
import type { ChartDataset } from '../../../src/verbs/plot/choose-series.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';

const VENUE = loadBinance();

/** `um klines 1h` */
function seriesOf(name: string): Series {
  const [market = '', dataset = '', interval] = name.split(' ');
  return { market, dataset, symbol: 'BTCUSDT', ...(interval === undefined ? {} : { interval }) };
}

function choose(
  names: readonly string[],
  flags: Readonly<Partial<Record<FlagName, string>>> = {},
): ChartDataset {
  const values = Object.fromEntries(Object.entries(flags).map(([name, text]) => [name, [text]]));
  const layer = { origin: 'flag', values, nameOf: (name: FlagName) => `--${name}` } as const;
  return chooseDataset(names.map(seriesOf), resolveOptions(VERBS.plot, [layer], VENUE), VENUE);
}

const nameOf = ({ market, dataset, interval }: Series): string =>
  [market, dataset, interval].filter(Boolean).join(' ');

describe('of several datasets', () => {
  it.each<[string, string[]]>([
    ['um klines 1h', ['um markPriceKlines 1h', 'um klines 1h']],
    ['cm klines 1h', ['um markPriceKlines 1h', 'um fundingRate', 'cm klines 1h']],
    ['um markPriceKlines 1h', ['spot aggTrades', 'um fundingRate', 'um markPriceKlines 1h']],
    ['um klines 1h', ['spot klines 1h', 'cm klines 1h', 'um klines 1h']],
  ])('%s is the first of %j: candles of trades, other candles, the default market', (first, names) => {
    expect(choose(names).series.map(nameOf)).toEqual([first]);
  });
});

describe('the column of a line', () => {
  it.each([
    ['um liquidationSnapshot', 'price'],
    ['um fundingRate', 'last_funding_rate'],
  ])('of %s is %s', (name, column) => {
    expect(choose([name]).columns).toMatchObject({ kind: 'line', column: { name: column } });
  });

  it('is any column of numbers that is asked for, also of whole numbers', () => {
    expect(choose(['um klines 1h'], { column: 'count' }).columns).toMatchObject({
      kind: 'line',
      column: { name: 'count', type: 'integer' },
    });
  });
});

it('of several markets, the default one is drawn', () => {
  const { series } = choose(['cm klines 1h', 'um klines 1h'], { market: 'um,cm' });
  expect(series.map(nameOf)).toEqual(['um klines 1h']);
});
