import { describe, expect, it } from 'vitest';
import { joinOrders } from '../../../src/lake/change-orders.js';
import { isOrderedBy } from '../../../src/lake/order.js';
import type { AskedOrder, Order } from '../../../src/lake/order.js';
import { objectLine } from '../../helpers/conversion.js';

const AT = '2026-11-21T12:00:00.000Z';
const LATER = '2026-11-22T12:00:00.000Z';

/** Symbols and first day of an open order; with a third word, the last day of a closed one. */
function asked(text: string, more: Partial<AskedOrder> = {}): AskedOrder {
  const [symbols = '', first = '', last = null] = text.split(' ');
  return {
    verb: 'vision',
    exchange: 'binance',
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    words: symbols.split(','),
    quote: [],
    settings: objectLine('2026-11-20').settings,
    first,
    last,
    symbols: symbols.split(','),
    ...more,
  };
}

function ordersAfter(...runs: readonly AskedOrder[]): readonly Order[] {
  return runs.reduce<readonly Order[]>(
    (held, run, index) => joinOrders(held, [run], index === 0 ? AT : LATER).orders,
    [],
  );
}

const shown = ({ words, symbols, first, last }: Order): string =>
  [words.join(), symbols.join(), first, last ?? 'open'].join(' ');

describe('an open order', () => {
  it.each([
    [
      'goes on from the earliest first day',
      ['A,B 2026-11-01', 'A,B 2026-11-14'],
      ['A,B A,B 2026-11-01 open'],
    ],
    ['begins earlier if a run asks for it', ['A 2026-11-14', 'A 2026-11-01'], ['A A 2026-11-01 open']],
    ['takes further symbols', ['A,B 2026-11-01', 'B,C,A 2026-11-14'], ['B,C,A A,B,C 2026-11-01 open']],
    [
      'keeps symbols that one run leaves out',
      ['A,B 2026-11-01', 'A 2026-11-14'],
      ['A,B A,B 2026-11-01 open'],
    ],
    [
      'takes no symbols of another selection',
      ['A,B 2026-11-01', 'B,C 2026-11-14'],
      ['A,B A,B 2026-11-01 open', 'B,C B,C 2026-11-14 open'],
    ],
    [
      'and a closed one stay apart',
      [
        'A 2026-11-14',
        'A,B 2026-01-01 2026-01-31',
        'A 2026-01-01 2026-01-31',
        'A 2025-12-01 2026-01-31',
        'A 2026-02-01 2026-02-28',
      ],
      [
        'A A 2026-11-14 open',
        'A,B A,B 2026-01-01 2026-01-31',
        'A A 2025-12-01 2026-01-31',
        'A A 2026-02-01 2026-02-28',
      ],
    ],
    [
      'selects what an exclusion left out once a run asks for it',
      ['A*,!AB 2026-11-01', 'A* 2026-11-14', 'A*,!AB,!AC 2026-11-14'],
      ['A* !AB,!AC,A* 2026-11-01 open'],
    ],
  ])('%s', (_, runs, orders) => {
    const after = ordersAfter(...runs.map((run) => asked(run)));
    expect(after.map(shown)).toEqual(orders);
    expect(new Set(after.map(({ id }) => id)).size).toBe(orders.length);
  });

  it('has the symbols of each run that a glob selected', () => {
    const glob = { words: ['*USDT'] };
    const [order] = ordersAfter(asked('A 2026-11-01', glob), asked('B 2026-11-14', glob));
    expect([order?.symbols, order?.first, order?.at]).toEqual([['A', 'B'], '2026-11-01', AT]);
  });

  it('begins with the first day that REST had when a symbol joined, and no longer once the archive is joined', () => {
    const [run, later] = [
      asked('A 2026-11-01', { reach: '2026-11-05' }),
      asked('A,B 2026-12-01', { reach: '2026-12-20' }),
    ];
    const orders = [[run], [run, later], [run, later, asked('A,B 2026-11-01', { join: 'archive' })]];
    expect(orders.map((runs) => ordersAfter(...runs)[0]?.starts)).toEqual([
      { A: '2026-11-05' },
      { A: '2026-11-05', B: '2026-12-20' },
      undefined,
    ]);
  });

  it('does not begin earlier by a clock that lies before its first run: the days of this run are an order of their own', () => {
    const held = ordersAfter(asked('A 2026-11-01'));
    const { changed } = joinOrders(held, [asked('A 2020-01-01')], '2020-01-08T00:00:00.000Z');
    expect(changed.map(shown)).toEqual(['A A 2020-01-01 2020-01-07']);
    // The clock was set back less far, and the order has these days.
    expect(joinOrders(held, [asked('A 2026-11-05')], '2026-11-12T00:00:00.000Z').changed).toEqual([]);
  });

  it('begins earlier by a run that has begun before the first one was ordered', () => {
    const held = ordersAfter(asked('A 2026-11-14'));
    const [order] = joinOrders(held, [asked('A 2026-11-01')], '2026-11-21T11:59:59.000Z').orders;
    expect(order?.first).toBe('2026-11-01');
  });

  it('never has the id of another one, which may have lost the words that its id comes from', () => {
    const [lost] = ordersAfter(asked('A 2026-11-01'));
    const held = lost === undefined ? [] : [{ ...lost, words: ['B'], symbols: ['B'] }];
    const { orders } = joinOrders(held, [asked('A 2026-11-14')], LATER);
    expect(orders.map(shown)).toEqual(['B B 2026-11-01 open', 'A A 2026-11-14 open']);
  });

  it('is not written again without a change', () => {
    const held = ordersAfter(asked('A,B 2026-11-01'));
    const changedBy = (text: string): number => joinOrders(held, [asked(text)], LATER).changed.length;
    expect(['A,B 2026-11-14', 'B 2026-11-14', 'B,A,C 2026-11-14', 'A,B 2026-10-01'].map(changedBy)).toEqual([
      0, 0, 1, 1,
    ]);
  });

  it.each([
    { market: 'spot' },
    { dataset: 'trades' },
    { interval: '1m' },
    { verb: 'metrics' as const },
    { quote: ['USDT'] },
    { shard: '0/2' },
    { settings: { ...objectLine('2026-11-20').settings, format: 'zip' as const } },
  ])('is another one with $market$dataset$interval$verb$quote$shard$settings.format', (other) => {
    expect(ordersAfter(asked('A 2026-11-01'), asked('A 2026-11-14', other))).toHaveLength(2);
  });
});

it('a series belongs to the orders of its layers that name its symbol', () => {
  const [order] = ordersAfter(asked('A,B 2026-11-01'));
  const series = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'B' } as const;
  const is = (more: object): boolean => order !== undefined && isOrderedBy(order)({ ...series, ...more });
  expect(
    [{}, { symbol: 'C' }, { market: 'spot' }, { dataset: 'trades' }, { interval: '1m' }].map(is),
  ).toEqual([true, false, false, false, false]);
});
