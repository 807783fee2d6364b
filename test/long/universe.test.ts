/** `cryptodl universe`: members of periods, from days before each period only. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { FAST, argv, cryptodl, cryptodlOk, cryptodlProcessOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { daysBetween, writeTraded } from '../helpers/universe-archive.js';
import type { DayVolume, TradedSymbol } from '../helpers/universe-archive.js';

const scratch = scratchFolder();
const NOW = '2024-05-03T08:00:00Z';
const LAST = '2024-05-02';
let archive: TestArchive;

/** A symbol with the same volume on all days of a range. */
function steady(symbol: string, from: string, to: string, volume: number | DayVolume): TradedSymbol {
  const one = typeof volume === 'number' ? { quote: String(volume) } : volume;
  return { symbol, days: new Map(daysBetween(from, to).map((day) => [day, one])) };
}

/** Listings, ends and volumes of the archive. */
const SYMBOLS: readonly TradedSymbol[] = [
  // 0.1 + 0.2 is no double, so a sum of doubles has other digits.
  steady('BTCUSDT', '2024-01-01', LAST, { quote: '1000.1', base: '10', count: 7 }),
  steady('ETHUSDT', '2024-01-01', LAST, { quote: '500.25', base: '2000', count: 9 }),
  // Listed in the middle of February, with large volumes.
  steady('NEWUSDT', '2024-02-15', LAST, { quote: '900', base: '1', count: 1 }),
  // Delisted on March 10: a member of March, and not of April.
  steady('OLDUSDT', '2024-01-01', '2024-03-10', { quote: '800', base: '3', count: 2 }),
  // Ends two days before March: its sum in the window of March is large, but it is not traded any more.
  steady('ENDUSDT', '2024-01-01', '2024-02-28', { quote: '700', base: '3', count: 2 }),
  // Two symbols with equal sums.
  steady('TIEBUSDT', '2024-01-01', LAST, { quote: '50', base: '4', count: 3 }),
  steady('TIEAUSDT', '2024-01-01', LAST, { quote: '50', base: '4', count: 3 }),
  steady('ETHUSDC', '2024-01-01', LAST, { quote: '600', base: '4', count: 3 }),
  // Two days are missing in March.
  {
    symbol: 'HOLEUSDT',
    days: new Map(
      daysBetween('2024-01-01', LAST)
        .filter((day) => day !== '2024-03-12' && day !== '2024-03-13')
        .map((day) => [day, { quote: '60' }]),
    ),
  },
  steady('BTCUSDT_240628', '2024-01-01', LAST, { quote: '950', base: '3', count: 2 }),
];

const LAKE = join(scratch, 'lake');

beforeAll(async () => {
  const folder = join(scratch, 'archive');
  for (const traded of SYMBOLS) writeTraded(folder, traded, NOW);
  for (const [symbol, quote] of [
    ['BTCUSDT', '10'],
    ['ETHBTC', '20'],
  ] as const)
    writeTraded(folder, { ...steady(symbol, '2024-03-01', LAST, { quote }), market: 'spot' }, NOW);
  writeTraded(
    folder,
    { ...steady('BTCUSD_PERP', '2024-03-01', LAST, { quote: '10', count: 4 }), market: 'cm' },
    NOW,
  );
  archive = await startArchive(folder);
  await download(LAKE, '-s', 'all', '-i', '1d', '--from', '2024-01-01');
  await download(LAKE, '-m', 'spot,cm', '-s', 'all', '-i', '1d', '--from', '2024-03-01');
});
afterAll(() => archive.close());

function download(lake: string, ...args: readonly string[]): Promise<unknown> {
  return cryptodlOk(['vision', '--archive-url', archive.url, '--out', lake, '--now', NOW, ...FAST, ...args]);
}

function universe(...args: readonly string[]) {
  return cryptodl(['universe', '--now', NOW, ...(args.includes('--out') ? [] : ['--out', 'lake']), ...args], {
    cwd: scratch,
  });
}

interface Row {
  readonly period: string;
  readonly symbol: string;
  readonly rank: number;
  readonly value: string;
  readonly days: number;
  readonly firstDay: string;
}

function rowsOf(csv: string): Row[] {
  return csv
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => {
      const [period = '', symbol = '', rank, value = '', days, firstDay = ''] = line.split(',');
      return { period, symbol, rank: Number(rank), value, days: Number(days), firstDay };
    });
}

// An independent computation of members.

const DAY_MS = 86_400_000;
const dayNumber = (day: string): number => Date.parse(day) / DAY_MS;
const dayOf = (number: number): string => new Date(number * DAY_MS).toISOString().slice(0, 10);

const BEGINS: Readonly<Record<string, (date: Date) => boolean>> = {
  day: () => true,
  week: (date) => date.getUTCDay() === 1,
  month: (date) => date.getUTCDate() === 1,
  quarter: (date) => date.getUTCDate() === 1 && date.getUTCMonth() % 3 === 0,
  year: (date) => date.getUTCDate() === 1 && date.getUTCMonth() === 0,
};

interface Rules {
  readonly every: string;
  readonly from: string;
  readonly window: number;
  readonly by?: 'quote_volume' | 'volume' | 'count';
  readonly top?: number;
  readonly minAge?: number;
  readonly has?: (symbol: string) => boolean;
}

/** Up to ten decimals, as a whole number. */
function scaled(text: string): bigint {
  const [whole = '0', part = ''] = text.split('.');
  return BigInt(whole + part.padEnd(10, '0'));
}

function decimal(number: bigint): string {
  const text = String(number).padStart(11, '0');
  return `${text.slice(0, -10)}.${text.slice(-10)}`.replace(/\.?0+$/, '');
}

/** All symbols traded on the day before the period, by the sums of the days of the window. */
function expected(symbols: readonly TradedSymbol[], rules: Rules): Row[] {
  const { every, from, window, by = 'quote_volume', top = Infinity, minAge = 0 } = rules;
  const { has = (symbol) => !symbol.includes('_') } = rules;
  const rows: Row[] = [];
  for (let start = dayNumber(from); start <= dayNumber(LAST) + 1; start += 1) {
    if (BEGINS[every]?.(new Date(start * DAY_MS)) !== true) continue;
    const members = symbols.flatMap(({ symbol, days }) => {
      const first = [...days.keys()].sort()[0] ?? '';
      const used = Array.from({ length: window }, (_, at) => days.get(dayOf(start - 1 - at)));
      if (!has(symbol) || used[0] === undefined || dayNumber(first) > start - minAge) return [];
      const traded = used.filter((day) => day !== undefined);
      const textOf = ({ quote, base = '1', count = 1 }: DayVolume): string =>
        ({ quote_volume: quote, volume: base, count: String(count) })[by];
      const sum = traded.reduce((total, day) => total + scaled(textOf(day)), 0n);
      return [{ symbol, sum, days: traded.length, firstDay: first }];
    });
    members.sort((a, b) => (a.sum === b.sum ? (a.symbol < b.symbol ? -1 : 1) : a.sum > b.sum ? -1 : 1));
    for (const [at, { symbol, sum, days, firstDay }] of members.slice(0, top).entries())
      rows.push({ period: dayOf(start), symbol, rank: at + 1, value: decimal(sum), days, firstDay });
  }
  return rows;
}

describe('members', () => {
  const isUsdt = (symbol: string): boolean => symbol.endsWith('USDT');
  const cases: readonly (readonly [args: string, rules: Rules])[] = [
    ['--from 2024-02', { every: 'month', from: '2024-02-01', window: 30 }],
    ['', { every: 'month', from: '2024-02-01', window: 30 }],
    ['--top 3 --quote USDT', { every: 'month', from: '2024-02-01', window: 30, top: 3, has: isUsdt }],
    ['--every week --window 7d --from 2024-01-08', { every: 'week', from: '2024-01-08', window: 7 }],
    [
      '--every day --window 3d --top 2 --from 2024-04',
      { every: 'day', from: '2024-04-01', window: 3, top: 2 },
    ],
    ['--every quarter --window 60d', { every: 'quarter', from: '2024-04-01', window: 60 }],
    ['--by count --from 2024-03', { every: 'month', from: '2024-03-01', window: 30, by: 'count' }],
    ['--by volume --from 2024-03', { every: 'month', from: '2024-03-01', window: 30, by: 'volume' }],
    ['--min-age 60d --from 2024-04', { every: 'month', from: '2024-04-01', window: 30, minAge: 60 }],
    ['--min-age 46d --from 2024-04', { every: 'month', from: '2024-04-01', window: 30, minAge: 46 }],
    ['--min-age 47d --from 2024-04', { every: 'month', from: '2024-04-01', window: 30, minAge: 47 }],
    ['--contract all --from 2024-03', { every: 'month', from: '2024-03-01', window: 30, has: () => true }],
    [
      '--contract dated --from 2024-03',
      { every: 'month', from: '2024-03-01', window: 30, has: (symbol) => symbol.includes('_') },
    ],
    [
      '--symbols *USDT,!TIE* --from 2024-03',
      { every: 'month', from: '2024-03-01', window: 30, has: (symbol) => /^(?!TIE).*USDT$/.test(symbol) },
    ],
  ];

  it.each(cases)('of universe %s are those of an independent computation', async (args, rules) => {
    const { code, stdout } = await universe(...args.split(' ').filter((word) => word !== ''));
    expect(code).toBe(0);
    const rows = expected(SYMBOLS, rules);
    expect(rows.length).toBeGreaterThan(1);
    expect(rowsOf(stdout)).toEqual(rows);
  });

  it('do not depend on the time zone of the machine', async () => {
    // Symbols end, and have holes.
    const days = ['--every', 'day', '--window', '2d', '--from', '2024-03-08', '--to', '2024-03-15'];
    const args = ['universe', '--now', NOW, '--out', LAKE, ...days];
    const utc = await cryptodlOk(args);
    for (const TZ of ['America/New_York', 'Asia/Tokyo'])
      expect((await cryptodlProcessOk(args, { env: { TZ } })).stdout).toBe(utc.stdout);
  });

  it('of a range begin with the period of --from, and end with the period of --to', async () => {
    const { stdout } = await universe('--from', '2024-03-15', '--to', '2024-04-10', '--top', '1');
    expect(rowsOf(stdout).map(({ period }) => period)).toEqual(['2024-03-01', '2024-04-01']);
  });

  it('of the next period are known on its first day', async () => {
    const lake = join(scratch, 'until-april');
    await download(lake, '-s', 'BTCUSDT,ETHUSDT', '-i', '1d', '--from', '2024-03-01', '--to', '2024-03-31');
    const { stdout } = await universe('--out', lake);
    expect(rowsOf(stdout).map(({ period }) => period)).toEqual(['2024-04-01', '2024-04-01']);
  });
});

it('begins age and sums of a symbol anew that was listed again', async () => {
  const folder = join(scratch, 'twice');
  writeTraded(folder, steady('BTCUSDT', '2024-01-01', LAST, { quote: '10' }), NOW);
  const days = [...daysBetween('2024-01-01', '2024-02-10'), ...daysBetween('2024-03-14', LAST)];
  writeTraded(folder, { symbol: 'TWICEUSDT', days: new Map(days.map((day) => [day, { quote: '50' }])) }, NOW);
  const twice = await startArchive(folder);
  const flags = ['--out', join(scratch, 'lake-twice'), '--archive-url', twice.url, '--now', NOW, ...FAST];
  await cryptodl(['vision', ...flags, '-s', 'all', '-i', '1d', '--from', '2024-01-01', '--to', '2024-04-30']);
  await twice.close();
  const members = await universe(...argv`--out lake-twice --window 60d --from 2024-04 --to 2024-04`);
  expect(rowsOf(members.stdout).find(({ symbol }) => symbol === 'TWICEUSDT')).toEqual({
    period: '2024-04-01',
    symbol: 'TWICEUSDT',
    rank: 1,
    value: '900',
    days: 18,
    firstDay: '2024-03-14',
  });
  const old = await universe(...argv`--out lake-twice --min-age 60d --from 2024-04 --to 2024-04`);
  expect(rowsOf(old.stdout).map(({ symbol }) => symbol)).toEqual(['BTCUSDT']);
});

describe('missing data', () => {
  it('is told with the names of the symbols', async () => {
    const { stderr } = await universe('--quote', 'USDT', '--from', '2024-02');
    expect(stderr).toMatch(
      /1 symbol lacks days of the windows.*: HOLEUSDT; cryptodl coverage shows the days/,
    );
  });

  it('is no hole where a symbol was delisted, or not listed yet', async () => {
    const { stderr } = await universe('-s', 'OLDUSDT,NEWUSDT,ENDUSDT,BTCUSDT', '--from', '2024-02');
    expect(stderr).not.toContain('lack');
  });

  it('of all symbols on the last day lets the day before decide, and is told', async () => {
    const folder = join(scratch, 'halted');
    const without = (traded: TradedSymbol): TradedSymbol => ({
      ...traded,
      days: new Map([...traded.days].filter(([day]) => day !== '2024-03-31')),
    });
    const symbols = SYMBOLS.map(without);
    for (const traded of symbols) writeTraded(folder, traded, NOW);
    const halted = await startArchive(folder);
    const lake = join(scratch, 'halted-lake');
    try {
      const range = ['--from', '2024-02-01', '--to', '2024-04-30'];
      await download(lake, '-s', 'all', '-i', '1d', ...range, '--archive-url', halted.url);
    } finally {
      await halted.close();
    }
    for (const range of [
      ['--from', '2024-04'],
      ['--from', '2024-04', '--to', '2024-04'],
    ]) {
      const { stdout, stderr } = await universe('--out', lake, ...range);
      const april = rowsOf(stdout).filter(({ period }) => period === '2024-04-01');
      expect(april.map(({ symbol }) => symbol).join(' ')).toBe(
        'BTCUSDT NEWUSDT ETHUSDC ETHUSDT HOLEUSDT TIEAUSDT TIEBUSDT',
      );
      expect(stderr).toContain('no um klines of any symbol on 1 day of the windows: 2024-03-31');
    }
    // The other symbols of the market show that the market was open on the day before May.
    const { stdout } = await universe('--out', lake, '-s', 'OLDUSDT', '--from', '2024-03');
    expect(rowsOf(stdout).map(({ period }) => period)).toEqual(['2024-03-01']);
  });

  it('before the first window is told', async () => {
    const { stdout, stderr } = await universe('--from', '2024-01-15', '--every', 'week', '--top', '1');
    expect(rowsOf(stdout)[0]).toMatchObject({ period: '2024-01-15', days: 14 });
    expect(stderr).toContain('no um klines of any symbol on 16 days of the windows: 2023-12-16, ');
  });
});

describe('klines of several intervals', () => {
  it('count once for each day, from the longest interval that has the day', async () => {
    const folder = join(scratch, 'mixed');
    const days = (from: string, to: string, quote: string): TradedSymbol['days'] =>
      new Map(daysBetween(from, to).map((day) => [day, { quote }]));
    const write = (symbol: string, interval: '1d' | '6h' | '1h', of: TradedSymbol['days']): void => {
      writeTraded(folder, { symbol, interval, days: of }, NOW);
    };
    // The hours of the same days are wrong on purpose: they must not be read.
    write('AUSDT', '1d', days('2024-02-01', '2024-03-31', '240'));
    write('AUSDT', '1h', days('2024-01-01', '2024-03-31', '480'));
    write('BUSDT', '1h', days('2024-01-01', '2024-03-31', '360'));
    write('CUSDT', '6h', days('2024-01-01', '2024-01-31', '400'));
    write('CUSDT', '1h', days('2024-01-01', '2024-03-31', '240'));
    const mixed = await startArchive(folder);
    const lake = join(scratch, 'mixed-lake');
    try {
      for (const interval of ['1d', '6h', '1h'])
        await cryptodlOk(
          argv`vision --archive-url ${mixed.url} --out ${lake} --now ${NOW} ${FAST} -s * -i ${interval}`.concat(
            ['--from', '2024-01-01', '--to', '2024-03-31'],
          ),
        );
    } finally {
      await mixed.close();
    }
    const { stdout } = await universe('--out', lake, '--from', '2024-02', '--window', '31d');
    const sums = rowsOf(stdout).map(({ period, symbol, value, days: used }) =>
      [period, symbol, value, used].join(' '),
    );
    expect(sums).toEqual([
      '2024-02-01 AUSDT 14880 31',
      '2024-02-01 CUSDT 12400 31',
      '2024-02-01 BUSDT 11160 31',
      '2024-03-01 BUSDT 11160 31',
      // January 30 and 31, and 29 days of February.
      `2024-03-01 AUSDT ${2 * 480 + 29 * 240} 31`,
      `2024-03-01 CUSDT ${2 * 400 + 29 * 240} 31`,
      '2024-04-01 BUSDT 11160 31',
      '2024-04-01 AUSDT 7440 31',
      '2024-04-01 CUSDT 7440 31',
    ]);
  });

  it('count once for each day also within one file of the shorter interval', async () => {
    const folder = join(scratch, 'half');
    const days = (from: string, quote: string): TradedSymbol['days'] =>
      new Map(daysBetween(from, LAST).map((day) => [day, { quote }]));
    writeTraded(folder, { symbol: 'AUSDT', interval: '1d', days: days('2024-05-01', '240') }, NOW);
    writeTraded(folder, { symbol: 'AUSDT', interval: '1h', days: days('2024-04-29', '480') }, NOW);
    const half = await startArchive(folder);
    const lake = join(scratch, 'half-lake');
    try {
      for (const [interval, from] of [
        ['1d', '2024-05-01'],
        ['1h', '2024-04-29'],
      ] as const) {
        const range = ['--from', from, '--to', LAST, '--archive-url', half.url];
        await download(lake, '-s', 'AUSDT', '-i', interval, ...range);
      }
    } finally {
      await half.close();
    }
    const { stdout } = await universe('--out', lake, '--every', 'day', '--window', '4d');
    expect(rowsOf(stdout).map(({ period, value, days: used }) => [period, value, used])).toEqual([
      ['2024-05-03', String(2 * 480 + 2 * 240), 4],
    ]);
  });

  it('above a day are not read, because they end after the beginning of a period', async () => {
    const folder = join(scratch, 'weeks');
    const key = 'data/futures/um/monthly/klines/BTCUSDT';
    mkdirSync(join(folder, key), { recursive: true });
    const { makeArchive } = await import('../../scripts/synthetic-archive.js');
    for (const interval of ['1mo', '1w', '3d'])
      makeArchive(folder, {
        market: 'um',
        dataset: 'klines',
        interval,
        symbols: ['BTCUSDT'],
        cadence: 'monthly',
        from: '2024-01-01',
        to: '2024-03-31',
      });
    const weeks = await startArchive(folder);
    const lake = join(scratch, 'weeks-lake');
    try {
      await download(
        lake,
        ...'-s BTCUSDT -i 3d,1w,1mo --from 2024-01-01 --to 2024-03-31 --archive-url'.split(' '),
        weeks.url,
      );
    } finally {
      await weeks.close();
    }
    const { code, stdout, stderr } = await universe('--out', lake);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('has no um klines with an interval of at most 1d');
  });
});

it('takes no old symbol for one that was listed again, if later symbols were listed before the window', async () => {
  const folder = join(scratch, 'listed-later');
  writeTraded(folder, steady('OLDUSDT', '2023-06-01', LAST, 50), NOW);
  for (const month of ['07', '08', '09', '10', '11'])
    writeTraded(folder, steady(`M${month}USDT`, `2023-${month}-01`, LAST, 5), NOW);
  const later = await startArchive(folder);
  const lake = join(scratch, 'lake-later');
  await download(lake, '-s', 'all', '-i', '1d', '--from', '2023-06-01', '--archive-url', later.url);
  await later.close();
  const { stdout } = await universe('--out', lake, '--from', '2024-04', '--min-age', '200d');
  expect(rowsOf(stdout).map(({ period, symbol, firstDay }) => [period, symbol, firstDay])).toEqual([
    ['2024-04-01', 'OLDUSDT', '2023-06-01'],
    ['2024-04-01', 'M07USDT', '2023-07-01'],
    ['2024-04-01', 'M08USDT', '2023-08-01'],
    ['2024-04-01', 'M09USDT', '2023-09-01'],
    ['2024-05-01', 'OLDUSDT', '2023-06-01'],
    ['2024-05-01', 'M07USDT', '2023-07-01'],
    ['2024-05-01', 'M08USDT', '2023-08-01'],
    ['2024-05-01', 'M09USDT', '2023-09-01'],
    ['2024-05-01', 'M10USDT', '2023-10-01'],
  ]);
});

describe('forms', () => {
  const FEW = ['--quote', 'USDT', '--top', '3', '--from', '2024-03'];

  it('--json has the same members, with sums as text', async () => {
    const rows = rowsOf((await universe(...FEW)).stdout);
    const { events } = await universe(...FEW, '--json');
    expect(events).toEqual(
      rows.map(({ firstDay, value, ...row }) => ({ ...row, quote_volume: value, first_day: firstDay })),
    );
    const counted = await universe(...FEW, '--json', '--by', 'count');
    expect(counted.events[0]).toMatchObject({ symbol: 'ETHUSDT', count: 270 });
  });

  it('--as list has each symbol once, and --symbols takes list and CSV', async () => {
    const csv = (await universe(...FEW)).stdout;
    const list = (await universe(...FEW, '--as', 'list')).stdout;
    const symbols = [...new Set(rowsOf(csv).map(({ symbol }) => symbol))].sort();
    expect(list).toBe(symbols.map((symbol) => `${symbol}\n`).join(''));
    writeFileSync(join(scratch, 'universe.csv'), csv);
    writeFileSync(join(scratch, 'universe.txt'), list);
    for (const file of ['universe.csv', 'universe.txt']) {
      const plan = await cryptodlOk(
        ['vision', '--archive-url', archive.url, '--out', 'planned', '--now', NOW, '-i', '1d'].concat([
          '-s',
          `@${file}`,
          ...'--from 2024-02-20 --to 2024-02-20 -n'.split(' '),
        ]),
        { cwd: scratch },
      );
      const planned = new Set([...plan.stdout.matchAll(/klines\/(\w+)\//g)].map(([, symbol = '']) => symbol));
      expect([...planned].sort()).toEqual(symbols);
    }
    // Also through a pipe.
    const piped = await universe('-s', '-', '--from', '2024-03', '--as', 'list', '--out', LAKE);
    expect(piped.stderr).toContain('--symbols names no symbol');
    const again = await cryptodlOk(['universe', '--now', NOW, '--out', LAKE, '-s', '-', '--as', 'list'], {
      stdin: csv,
    });
    expect(again.stdout).toBe(list);
  });

  it.each([
    ['um', ['--contract', 'all', '-s', 'BTCUSDT,BTCUSDT_240628'], ['BTC/USDT:USDT', 'BTC/USDT:USDT-240628']],
    ['spot', ['--quote', 'USDT'], ['BTC/USDT']],
    ['cm', ['--by', 'count'], ['BTC/USD:BTC']],
  ])('--as freqtrade writes a list of pairs of %s for each period', async (market, args, pairs) => {
    const folder = join(scratch, `pairs-${market}`);
    const all = ['-m', market, ...args, '--from', '2024-04', '--as', 'freqtrade', '--target', folder];
    const { code, stdout } = await universe(...all);
    expect([code, stdout]).toEqual([0, '']);
    expect(readdirSync(folder).sort()).toEqual(['pairlist-2024-04-01.json', 'pairlist-2024-05-01.json']);
    const path = join(folder, 'pairlist-2024-05-01.json');
    const content: unknown = JSON.parse(readFileSync(path, 'utf8'));
    expect(content).toEqual({
      made_by: 'cryptodl universe',
      digest: createHash('sha256').update(JSON.stringify(pairs)).digest('hex'),
      exchange: { pair_whitelist: pairs },
      pairlists: [{ method: 'StaticPairList' }],
    });
    expect((await universe(...all)).code).toBe(0);
    writeFileSync(path, JSON.stringify({ ...(content as object), stake_currency: 'USDT' }));
    const refused = await universe(...all);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('is not an unchanged list of cryptodl universe, and is not replaced');
    expect(readFileSync(path, 'utf8')).toContain('stake_currency');
    expect((await universe(...all, '--force')).code).toBe(0);
    expect(readFileSync(path, 'utf8')).not.toContain('stake_currency');
  });

  it('--as freqtrade writes no list if a later one would replace a file of the user', async () => {
    const folder = join(scratch, 'lists-of-user');
    mkdirSync(folder);
    writeFileSync(join(folder, 'pairlist-2024-05-01.json'), '{}');
    const refused = await universe('--from', '2024-04', '--as', 'freqtrade', '--target', folder);
    expect(refused.code).toBe(2);
    expect(readdirSync(folder)).toEqual(['pairlist-2024-05-01.json']);
  });

  it.each([
    ['string', '1234567890123.12345678'],
    ['double', '98765432.12345679'],
  ])('a sum has all digits of a lake with numbers as %s', async (numbers, quote) => {
    const folder = join(scratch, `digits-${numbers}`);
    writeTraded(folder, steady('BTCUSDT', '2024-03-01', '2024-03-31', { quote }), NOW);
    const digits = await startArchive(folder);
    const lake = join(scratch, `digits-${numbers}-lake`);
    try {
      await download(
        lake,
        ...'-s BTCUSDT -i 1d --from 2024-03-01 --to 2024-03-31 --numbers'.split(' '),
        numbers,
        '--archive-url',
        digits.url,
      );
    } finally {
      await digits.close();
    }
    const [row] = rowsOf((await universe('--out', lake)).stdout);
    expect(row?.value).toBe(decimal(scaled(quote) * 30n));
  });
});

describe('units', () => {
  it('coin-margined futures have no volume in a common unit', async () => {
    for (const by of [[], ['--by', 'volume']]) {
      const { code, stderr } = await universe('-m', 'cm', ...by);
      expect(code).toBe(2);
      expect(stderr).toContain('does not compare symbols');
      expect(stderr).toContain('--by count');
    }
    expect((await universe('-m', 'cm', '--by', 'count')).code).toBe(0);
  });
});

describe('mistakes', () => {
  it.each([
    [
      '--from 2024-08',
      'has the days 2024-01-01 … 2024-05-02, and no month of the range begins after 30 days of them',
      'change --from or --to',
    ],
    ['--as freqtrade', '--as freqtrade needs --target', '--target universe'],
    [
      '--out nowhere',
      'nowhere has no um klines with an interval of at most 1d',
      'download them: cryptodl vision --market um',
    ],
  ])('universe %s', async (args, says, next) => {
    const { code, stdout, stderr } = await universe(...args.split(' '));
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(says);
    expect(stderr).toContain(next);
  });
});
