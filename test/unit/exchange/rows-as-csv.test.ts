import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { Market } from '../../../src/model/task.js';
import { rowsAsCsv, type CsvOptions } from '../../../src/exchange/rest-csv.js';
import type { RestRow } from '../../../src/exchange/rest-rows.js';
import { specOf } from '../../helpers/conversion.js';

const AT = Date.UTC(2026, 8, 1);

type Cells = Readonly<Record<string, unknown>>;

function linesOf(
  [market, dataset]: readonly [Market, string],
  cells: readonly Cells[],
  options: Partial<CsvOptions> = {},
): string[] {
  const rows = cells.map((row): RestRow => ({ atMs: AT, id: 0, cells: row }));
  const csv = rowsAsCsv(rows, {
    spec: specOf(market, dataset),
    symbol: 'BTCUSDT',
    microseconds: false,
    ...options,
  }).toString('utf8');
  expect(csv.endsWith('\n')).toBe(true);
  return csv.slice(0, -1).split('\n');
}

const KLINE = [AT, '1.10', '2.0', '0.50', '1.5', '10.000', AT + 59_999, '15.0', 7, '4.0', '6.0', '0'];
const asCells = (list: readonly unknown[]): Cells => list as unknown as Cells;

describe('rows of REST as CSV', () => {
  it('have the header of the archive, and the digits as they were answered', () => {
    expect(linesOf(['um', 'klines'], [asCells(KLINE)])).toEqual([
      'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore',
      `${AT},1.10,2.0,0.50,1.5,10.000,${AT + 59_999},15.0,7,4.0,6.0,0`,
    ]);
  });

  it('are a header only where there are none', () => {
    expect(linesOf(['um', 'aggTrades'], [])).toEqual([
      'agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker',
    ]);
  });

  it('are found by name, and undeclared fields are left out', () => {
    const trade = { nq: '0.1', m: true, T: AT, l: 12, f: 11, q: '0.2', p: '3.0', a: 5, new: 'field' };
    expect(linesOf(['um', 'aggTrades'], [trade])[1]).toBe(`5,3.0,0.2,11,12,${AT},true`);
  });

  it('have empty cells for missing, null and empty values', () => {
    const funding = { fundingTime: AT, fundingRate: '-0.00000743', intervalHours: 8 };
    const lines = linesOf(
      ['um', 'fundingRate'],
      [
        { ...funding, markPrice: '85516.50151449' },
        { ...funding, markPrice: '' },
        { ...funding, markPrice: null },
        funding,
        { ...funding, markPrice: ' ' },
      ],
    );
    expect(lines).toEqual([
      'calc_time,funding_interval_hours,last_funding_rate,mark_price',
      `${AT},8,-0.00000743,85516.50151449`,
      ...Array.from({ length: 4 }, () => `${AT},8,-0.00000743,`),
    ]);
  });

  it('lose the spaces around a cell', () => {
    expect(linesOf(['um', 'klines'], [asCells(['1', ' 2', '3  '])])[1]).toBe('1,2,3,,,,,,,,,');
  });

  it('name the symbol of the series, and tell times as text where the archive does', () => {
    const cells = {
      timestamp: AT,
      'openInterestHist.sumOpenInterest': '94731.04600000',
      'openInterestHist.symbol': 'another',
      'takerLongShortRatio.buySellRatio': '0.9752',
    };
    expect(linesOf(['um', 'metrics'], [cells], { symbol: '币安人生USDT' })[1]).toBe(
      '2026-09-01 00:00:00,币安人生USDT,94731.04600000,,,,,0.9752',
    );
  });
});

describe('times', () => {
  it('become microseconds: a start with 000, an inclusive end with 999', () => {
    const [, line] = linesOf(['spot', 'klines'], [asCells(KLINE)], { microseconds: true });
    const cells = line?.split(',');
    expect([cells?.[0], cells?.[6]]).toEqual([`${AT}000`, `${AT + 59_999}999`]);
    // No other cell, whatever it looks like.
    expect(cells?.filter((_, index) => index !== 0 && index !== 6)).toEqual(
      KLINE.filter((_, index) => index !== 0 && index !== 6).map(String),
    );
  });

  it('of trades become microseconds with 000', () => {
    const trade = { a: AT, p: '1', q: '2', f: 3, l: 4, T: `${AT}`, m: false, M: true };
    expect(linesOf(['spot', 'aggTrades'], [trade], { microseconds: true })[1]).toBe(
      `${AT},1,2,3,4,${AT}000,false,true`,
    );
  });

  it('that are microseconds do not change', () => {
    const [, line] = linesOf(['spot', 'klines'], [asCells([`${AT}000`])], { microseconds: true });
    expect(line).toBe(`${AT}000,,,,,,,,,,,`);
  });
});

describe('a cell that no CSV can hold', () => {
  it.each<[string, unknown, string]>([
    ['a comma', '1,5', '"1,5"'],
    ['a quote', '1"5', '"1\\"5"'],
    ['a line end', '1\n5', '"1\\n5"'],
    ['a carriage return', '1\r5', '"1\\r5"'],
    ['an object', { value: 1 }, '{"value":1}'],
    ['a list', [1, 2], '[1,2]'],
  ])('%s is an answer that is malformed', (_, value, shown) => {
    const cells = asCells(KLINE.with(1, value as string));
    let error: unknown;
    try {
      linesOf(['um', 'klines'], [cells]);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(CryptodlError);
    expect(error).toMatchObject({ code: 'answer-malformed', message: `REST answered ${shown} for open` });
  });
});
