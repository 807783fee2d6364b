/** The notes for intervals that a series never had. */
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../src/model/errors.js';
import { seriesName } from '../../src/model/task.js';
import type { Series } from '../../src/model/task.js';
import type { SeriesRequest } from '../../src/plan/series-request.js';
import { lackingIntervals } from '../../src/select/lacking-intervals.js';
import { loadBinance } from '../../src/source/binance/binance.js';
import type { Listing } from '../../src/source/listing.js';

const venue = loadBinance();
const bars = (symbol: string, interval = '4h'): Series => ({
  market: 'um',
  dataset: 'klines',
  interval,
  symbol,
});
const FUNDING: Series = { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT' };

interface Case {
  readonly unpublished?: readonly Series[];
  /** Number of series of the plan, of its objects to fetch, and of its held objects. */
  readonly series?: number;
  readonly fetch?: number;
  readonly skip?: number;
  readonly verb?: 'vision' | 'metrics' | 'repair';
  readonly interval?: readonly string[];
  readonly symbols?: readonly string[] | undefined;
  readonly hasListing?: boolean;
  /** Series that REST has. */
  readonly ofRest?: readonly Series[];
  /** The intervals that the archive lists, by cadence and symbol. */
  readonly listed?: Readonly<Record<string, readonly string[]>>;
  readonly fault?: CryptodlError;
}

/** The notes, and the prefixes that were listed. */
async function notesOf(given: Case): Promise<{ readonly notes: string[]; readonly asked: string[] }> {
  const {
    unpublished = [bars('BTCUSDT')],
    series = 2,
    fetch = 1,
    skip = 0,
    verb = 'vision',
    ofRest = [],
  } = given;
  const { interval = ['4h'], hasListing = true, listed = { 'daily BTCUSDT': ['1h'] }, fault } = given;
  const symbols = 'symbols' in given ? given.symbols : ['BTCUSDT'];
  const asked: string[] = [];
  const listing = {
    folders: async function* (prefix: string) {
      asked.push(prefix);
      if (fault !== undefined) throw fault;
      const [, cadence = '', symbol = ''] = /um\/(daily|monthly)\/klines\/(\w+)\/$/.exec(prefix) ?? [];
      yield* listed[`${cadence} ${symbol}`] ?? [];
      await Promise.resolve();
    },
  } as unknown as Listing;
  const requests = [bars('ETHUSDT', '1h'), ...unpublished].map((one) => ({
    series: one,
    ...(ofRest.includes(one) ? { rest: {} } : {}),
  })) as unknown as SeriesRequest[];
  const context = { listing, venue, options: { interval, symbols } };
  const notes = await lackingIntervals(
    context as Parameters<typeof lackingIntervals>[0],
    { verb, requests, hasListing },
    { totals: { series, fetch, skip }, unpublished } as unknown as Parameters<typeof lackingIntervals>[2],
  );
  return { notes, asked };
}

const NOTE = 'lacking    the archive has no um klines 4h BTCUSDT; it has 1h';

describe('a series without an object of its interval', () => {
  it('is named with the intervals that it has in any cadence, in the order of the exchange', async () => {
    const listed = { 'daily BTCUSDT': ['1h', '4h', '1m', 'x'], 'monthly BTCUSDT': ['1mo', '1h'] };
    const { notes, asked } = await notesOf({ listed });
    expect(notes).toEqual(['lacking    the archive has no um klines 4h BTCUSDT; it has 1m, 1h, 1mo']);
    expect(asked.toSorted()).toEqual([
      'data/futures/um/daily/klines/BTCUSDT/',
      'data/futures/um/monthly/klines/BTCUSDT/',
    ]);
  });

  it('is no note if the archive has none of its intervals, or if its listing fails', async () => {
    expect((await notesOf({ listed: {} })).notes).toEqual([]);
    expect((await notesOf({ fault: new CryptodlError('unreachable', 'x') })).notes).toEqual([]);
    await expect(notesOf({ fault: new CryptodlError('bug', 'x') })).rejects.toThrow('x');
  });

  it.each<[string, Case]>([
    ['no series lacks an object', { unpublished: [] }],
    ['the verb is not vision', { verb: 'metrics' }],
    ['the series come from the lake', { symbols: undefined }],
    ['there is no listing', { hasListing: false }],
    ['all intervals are selected', { interval: ['all'] }],
    ['the dataset has no intervals', { unpublished: [FUNDING] }],
    ['REST has the series', { unpublished: [bars('BTCUSDT')], ofRest: [] }],
  ])('is not listed if %s', async (name, given) => {
    const one = given.unpublished?.[0];
    const ofRest = name.startsWith('REST') && one !== undefined ? [one] : [];
    expect(await notesOf({ ...given, ofRest })).toEqual({ notes: [], asked: [] });
  });

  it('is a usage error if the plan has nothing else', async () => {
    const alone = { series: 1, fetch: 0 };
    await expect(notesOf(alone)).rejects.toThrow(
      new CryptodlError('usage', 'the archive has no um klines 4h BTCUSDT; it has 1h'),
    );
    expect((await notesOf({ ...alone, series: 2 })).notes).toEqual([NOTE]);
    expect((await notesOf({ ...alone, fetch: 1 })).notes).toEqual([NOTE]);
    expect((await notesOf({ ...alone, skip: 1 })).notes).toEqual([NOTE]);
    expect((await notesOf({ ...alone, listed: {} })).notes).toEqual([]);
  });
});

describe('several series without an object of their interval', () => {
  const symbols = ['A', 'B', 'C', 'D', 'E'];
  const listed = Object.fromEntries(symbols.map((symbol) => [`daily ${symbol}`, ['1h']]));
  const of = (count: number): Case => ({
    unpublished: symbols.slice(0, count).map((one) => bars(one)),
    listed,
  });
  const named = (symbol: string): string =>
    `lacking    the archive has no ${seriesName(bars(symbol))}; it has 1h`;

  it('are three notes at most, and the last of them counts the others', async () => {
    expect((await notesOf({ ...of(3), series: 9 })).notes).toEqual(['A', 'B', 'C'].map(named));
    const { notes, asked } = await notesOf({ ...of(5), series: 9 });
    expect(notes).toEqual([named('A'), named('B'), `${named('C')} (and 2 more series lack their interval)`]);
    expect(asked.filter((prefix) => prefix.includes('/D/'))).toEqual([]);
  });

  it('are one usage error if the plan has nothing else', async () => {
    await expect(notesOf({ ...of(5), series: 5, fetch: 0 })).rejects.toThrow(
      'the archive has no um klines 4h A; it has 1h (and 2 more series lack their interval)',
    );
  });
});
