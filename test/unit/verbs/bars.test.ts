/** Boundaries of bars, and the exact way from doubles to decimals and back. */
import { array, assert, asyncProperty, bigInt, constantFrom, integer, property, tuple } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { barStart, nextStart, parseBar } from '../../../src/verbs/bars/bar-rule.js';
import { planMonths } from '../../../src/verbs/bars/bar-months.js';
import type { BarSource } from '../../../src/verbs/bars/source.js';
import { barColumns, barsOf, sourceRows } from '../../../src/verbs/bars/make-bars.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { findDataset } from '../../../src/exchange/exchange-spec.js';
import { SETTINGS as MONTHLY } from '../../helpers/conversion.js';
import { useSql } from '../../helpers/sql.js';

const DAY_MS = 86_400_000;
const MONDAY = 19_723; // 2024-01-01
const BARS = ['1m', '7m', '15m', '90m', '2h', '5h', '1d', '3d', '1w', '2w', '28d'];

const SETTINGS = { ...MONTHLY, partition: 'day' } as const;

/** A source with a file for each day. */
function sourceOf(days: readonly number[], interval = '1m'): BarSource {
  const spec = findDataset(loadBinance(), 'um', 'klines');
  if (spec === undefined) throw new Error('no klines');
  const files = days.map((day) => ({
    path: `/lake/${day}`,
    sha256: `digest ${day}`,
    bytes: 1,
    days: { from: day, to: day + 1 },
    isWhole: true,
    missing: [],
    open: [],
    hasRest: false,
    rows: 1440,
    mayRepeat: false,
    firstInstant: undefined,
    lastInstant: undefined,
    settings: SETTINGS,
  }));
  return {
    series: { market: 'um', dataset: 'klines', interval, symbol: 'BTCUSDT' },
    spec,
    files,
    fault: undefined,
    days: new Set(days),
    from: Math.min(...days),
    to: Math.max(...days) + 1,
    isText: false,
    settings: SETTINGS,
  };
}

describe('a bar', () => {
  it.each([
    ['60m', '1h'],
    ['1440m', '1d'],
    ['24h', '1d'],
    ['90m', '90m'],
    ['7d', '7d'],
    ['1w', '1w'],
  ])('%s is in the folder of %s', (text, interval) => {
    expect(parseBar(text).interval).toBe(interval);
  });

  it('of a week begins on a Monday, and one of seven days on a Thursday', () => {
    const weekday = (text: string): number => new Date(barStart(parseBar(text), MONDAY * DAY_MS)).getUTCDay();
    expect([weekday('1w'), weekday('7d')]).toEqual([1, 4]);
  });

  it('has each time between its start and the next one', () => {
    assert(
      property(constantFrom(...BARS), integer({ min: 0, max: 3e12 }), (text, at) => {
        const rule = parseBar(text);
        const start = barStart(rule, at);
        expect(start).toBeLessThanOrEqual(at);
        expect(start + rule.lengthMs).toBeGreaterThan(at);
        expect(nextStart(rule, at)).toBe(start === at ? start : start + rule.lengthMs);
      }),
    );
  });
});

describe('the months of bars', () => {
  it('have each whole bar between the first and the last day once', () => {
    assert(
      property(
        constantFrom(...BARS),
        integer({ min: 0, max: 40 }),
        integer({ min: 1, max: 70 }),
        (text, skip, number) => {
          const rule = parseBar(text);
          const from = MONDAY + skip;
          const source = sourceOf(Array.from({ length: number }, (_, at) => from + at));
          const starts = planMonths({ rule, source, isFilled: false }).flatMap(({ starts: own }) => {
            const { from: first, to } = own;
            return Array.from(
              { length: (to - first) / rule.lengthMs },
              (_, at) => first + at * rule.lengthMs,
            );
          });
          const whole: number[] = [];
          const end = (from + number) * DAY_MS;
          for (let at = nextStart(rule, from * DAY_MS); at + rule.lengthMs <= end; at += rule.lengthMs)
            whole.push(at);
          expect(starts).toEqual(whole);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('aggregates that repeat trades', () => {
  const query = useSql();
  const spec = findDataset(loadBinance(), 'um', 'aggTrades');
  const ids = async (...rows: readonly (readonly [id: number, first: number, last: number])[]) => {
    if (spec === undefined) throw new Error('no aggTrades');
    const source = {
      ...sourceOf([MONDAY]),
      spec,
      series: { market: 'um', dataset: 'aggTrades', symbol: 'X' },
    };
    const all = rows.map(
      ([id, first, last]) =>
        `(TIMESTAMP '2024-01-01', ${id}, 1.0::DOUBLE, 1.0::DOUBLE, ${first}, ${last}, false)`,
    );
    const names =
      'transact_time, agg_trade_id, price, quantity, first_trade_id, last_trade_id, is_buyer_maker';
    const table = `SELECT * FROM (VALUES ${all.join(', ')}) AS rows(${names})`;
    return (await query(`SELECT seq FROM (${sourceRows(source, table)})`)).map(({ seq }) => Number(seq));
  };

  it('do not count, whether single or joined anew', async () => {
    expect(await ids([1, 1, 3], [2, 4, 4], [3, 1, 3], [4, 1, 4], [5, 5, 6])).toEqual([1, 2, 5]);
  });

  it('are not those of a second listing, of another order, or without trades', async () => {
    expect(await ids([7, 70, 71], [1, 1, 3], [2, 4, 4])).toEqual([7, 1, 2]);
    expect(await ids([1, 1, 3], [2, -1, -1], [3, 4, 9])).toEqual([1, 2, 3]);
  });
});

describe('sums', () => {
  const query = useSql();

  it('of doubles are those of the published decimals', async () => {
    const source = sourceOf([MONDAY]);
    await assert(
      asyncProperty(
        // 15 digits, of which up to 8 are behind the point: a double has them all.
        array(
          tuple(bigInt({ min: 0n, max: 10n ** 15n - 1n }), bigInt({ min: 0n, max: 5n })).map(
            ([digits, zeros]) => digits * 10n ** zeros,
          ),
          { minLength: 1, maxLength: 40 },
        ),
        async (values) => {
          const text = (value: bigint): string => {
            const digits = String(value).padStart(9, '0');
            return `${digits.slice(0, -8)}.${digits.slice(-8)}`;
          };
          const rows = values.map((value, at) => {
            const number = Number(text(value));
            return `SELECT make_timestamp(${at}) AS open_time, 1.0::DOUBLE AS "open", 1.0::DOUBLE AS high, 1.0::DOUBLE AS low, 1.0::DOUBLE AS "close",
              ${number}::DOUBLE AS volume, ${number}::DOUBLE AS quote_volume, 1 AS "count", ${number}::DOUBLE AS taker_buy_volume, ${number}::DOUBLE AS taker_buy_quote_volume`;
          });
          const bars = barsOf(sourceRows(source, rows.join(' UNION ALL ')), '0', false);
          const [bar] = await query(`SELECT ${barColumns(false, '0')} FROM (${bars})`);
          const sum = Number(text(values.reduce((total, value) => total + value, 0n)));
          const { volume, quote_volume: quote, taker_buy_volume: taker } = bar ?? {};
          expect([volume, quote, taker]).toEqual([sum, sum, sum]);
        },
      ),
      { numRuns: 100 },
    );
  });
});
