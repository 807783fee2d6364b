import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { describeColumns } from '../../src/exchange/describe.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';
import { datasetsOf, intervalsOf } from '../../src/exchange/exchange-spec.js';
import { MARKETS } from '../../src/exchange/names.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const SPECS = MARKETS.flatMap((market) =>
  datasetsOf(loadBinance(), market).map((spec) => ({ market, name: spec.name, spec })),
);

const scratch = scratchFolder();
const folder = join(scratch, 'archive');
/** Keys by what they are of. */
const made: Record<'daily' | 'monthly' | 'short' | 'ended', string[]> = {
  daily: [],
  monthly: [],
  short: [],
  ended: [],
};
let archive: TestArchive;
let place: readonly string[];

beforeAll(async () => {
  const klines = { market: 'um', dataset: 'klines', interval: '1h', to: '2026-11-20' } as const;
  const btc = { ...klines, symbols: ['BTCUSDT'] };
  made.daily = makeArchive(folder, { ...btc, from: '2026-10-30', cadence: 'daily' }).keys;
  made.monthly = makeArchive(folder, {
    ...btc,
    from: '2026-09-01',
    to: '2026-10-31',
    cadence: 'monthly',
  }).keys;
  const short = { ...klines, symbols: ['ETHUSDT', 'BTCUSDC'], from: '2026-11-19' };
  made.short = makeArchive(folder, { ...short, cadence: 'daily' }).keys;
  made.ended = makeArchive(folder, {
    market: 'um',
    dataset: 'bookTicker',
    symbols: ['BTCUSDT'],
    from: '2024-03-28',
    to: '2024-03-30',
    cadence: 'daily',
    rowsPerDay: 5,
  }).keys;
  archive = await startArchive(folder);
  place = ['--archive-url', archive.url, '--now', '2026-11-21', '--retry-delay', '2ms', '--max-wait', '2s'];
});
afterAll(() => archive.close());

function list(...args: readonly string[]): Promise<CliResult> {
  return cryptodlOk(['list', ...args, ...place]);
}

function urlsIn(log: string): unknown[] {
  return linesOf(readFileSync(log, 'utf8'))
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { url?: unknown }).url);
}

function linesOf(text: string): string[] {
  return text.trimEnd().split('\n');
}

function cellsOf({ stdout }: CliResult): string[][] {
  return linesOf(stdout).map((line) => line.split('\t'));
}

/** As `list periods` has it. */
function periodLine(key: string): string[] {
  const period = /-(\d{4}-\d\d(-\d\d)?)\.zip$/.exec(key)?.[1] ?? '';
  return [period, period.length === 7 ? 'monthly' : 'daily', String(bytesOf([key])), key];
}

function bytesOf(keys: readonly string[]): number {
  return keys.reduce((sum, key) => sum + statSync(join(folder, key)).size, 0);
}

describe('list markets and datasets', () => {
  it('markets: one per line, with its datasets', async () => {
    const markets = await cryptodlOk(['list', 'markets']);
    expect(cellsOf(markets).map(([market]) => market)).toEqual(MARKETS);
    expect(markets.stderr).toBe('4 markets\n');
    const { events } = await cryptodlOk(['list', 'markets', '--json']);
    for (const [at, market] of MARKETS.entries()) {
      const names = datasetsOf(loadBinance(), market).map(({ name }) => name);
      expect(cellsOf(markets)[at]?.[2]).toBe(names.join(','));
      expect(events[at]).toEqual({ market, title: cellsOf(markets)[at]?.[1], datasets: names });
    }
  });

  it('datasets: of all markets or of the named one, with all fields', async () => {
    const all = await cryptodlOk(['list', 'datasets']);
    expect(cellsOf(all).map(([name, market]) => ({ market, name }))).toEqual(
      SPECS.map(({ market, name }) => ({ market, name })),
    );
    expect(all.stderr).toBe(`${SPECS.length} datasets\n`);
    const option = await cryptodlOk(['list', 'datasets', '--market', 'option']);
    expect(cellsOf(option).map(([name]) => name)).toEqual(['BVOLIndex', 'EOHSummary']);
    const { stdout, events } = await cryptodlOk(['list', 'datasets', '--json']);
    expect(linesOf(stdout)).toHaveLength(SPECS.length);
    for (const [at, { market, name, spec }] of SPECS.entries()) {
      expect(events[at]).toMatchObject({
        dataset: name,
        market,
        title: spec.title,
        intervals: intervalsOf(spec) ?? [],
        partition: spec.partition,
        removed: spec.removed,
        rest: spec.rest !== undefined,
      });
      expect(Object.keys(events[at]?.['cadences'] ?? {})).toEqual(spec.cadences);
    }
    expect(
      events.find((event) => event['market'] === 'um' && event['dataset'] === 'bookTicker'),
    ).toMatchObject({ cadences: { daily: { last: '2024-03-30' } } });
  });

  it('neither sends a request', async () => {
    const before = archive.requests.length;
    for (const what of ['markets', 'datasets']) await list(what);
    expect(archive.requests).toHaveLength(before);
  });
});

describe('list symbols', () => {
  it('prints one name per line, filtered by pattern and by quote asset', async () => {
    const { stdout, stderr } = await list('symbols');
    expect(stdout).toBe('BTCUSDC\nBTCUSDT\nETHUSDT\n');
    expect(stderr).toBe('3 symbols\n');
    expect((await list('symbols', '--quote', 'USDC')).stdout).toBe('BTCUSDC\n');
    expect((await list('symbols', '--symbols', '*USDT,!ETH*')).stdout).toBe('BTCUSDT\n');
    expect((await list('symbols', '--dataset', 'klines,bookTicker', '--quiet')).stderr).toBe('');
    const { events } = await list('symbols', '--json');
    expect(events).toEqual([{ symbol: 'BTCUSDC' }, { symbol: 'BTCUSDT' }, { symbol: 'ETHUSDT' }]);
  });

  it('--long prints first and last period, number of objects and bytes, equal to the files in the folder', async () => {
    const keys = [...made.daily, ...made.monthly];
    const ofEth = made.short.filter((key) => key.includes('ETHUSDT'));
    const expected = [
      { symbol: 'BTCUSDT', first: '2026-09', last: '2026-11-20', objects: keys.length, bytes: bytesOf(keys) },
      { symbol: 'ETHUSDT', first: '2026-11-19', last: '2026-11-20', objects: 2, bytes: bytesOf(ofEth) },
    ];
    const args = ['symbols', '--long', '--interval', '1h', '--quote', 'USDT'];
    expect((await list(...args, '--json')).events).toEqual(expected);
    expect(cellsOf(await list(...args))).toEqual(expected.map((line) => Object.values(line).map(String)));
    const daily = await list(...args, '--cadence', 'daily', '--symbols', 'BTCUSDT', '--json');
    expect(daily.events).toMatchObject([{ first: '2026-10-30', objects: 22, bytes: bytesOf(made.daily) }]);
  });
});

describe('list periods', () => {
  const args = ['periods', '--interval', '1h', '--symbols'];

  it('prints daily and monthly objects with the sizes of their files, and the totals', async () => {
    const result = await list(...args, 'BTCUSDT');
    const keys = [...made.daily, ...made.monthly];
    expect(cellsOf(result)).toEqual(keys.map(periodLine));
    const [count, range, ...more] = result.stderr.trimEnd().split('; ');
    expect(count).toBe(`${keys.length} objects`);
    expect(range).toMatch(/^2026-09-01 … 2026-11-20, \d+ kB$/);
    expect(Number(/(\d+) kB/.exec(range ?? '')?.[1])).toBeCloseTo(bytesOf(keys) / 1000, -1);
    expect(more).toEqual([]);
  });

  it('--json has the series, the key and all known fields of an object, and no others', async () => {
    const { stdout, events } = await list(...args, 'BTCUSDT', '--json');
    expect(linesOf(stdout)).toHaveLength(events.length);
    const keys = [...made.daily, ...made.monthly];
    for (const [at, key] of keys.entries()) {
      const [period, cadence] = periodLine(key);
      const series = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' };
      const version = { etag: expect.any(String) as unknown, lastModified: expect.any(String) as unknown };
      expect(events[at]).toEqual({ ...series, cadence, period, key, bytes: bytesOf([key]), ...version });
    }
  });

  it('filters by range, cadence and several symbols', async () => {
    const keysOf = async (...more: readonly string[]): Promise<(string | undefined)[]> =>
      cellsOf(await list(...args, ...more)).map(([, , , key]) => key);
    const between = (keys: readonly string[], from: string, to: string): string[] =>
      keys.filter((key) => (periodLine(key)[0] ?? '') >= from && (periodLine(key)[0] ?? '') <= to);
    expect(
      await keysOf('BTCUSDT', '--cadence', 'daily', '--from', '2026-11-03', '--to', '2026-11-05'),
    ).toEqual(between(made.daily, '2026-11-03', '2026-11-05'));
    expect(await keysOf('BTCUSDT', '--from', '2026-11-18')).toEqual(
      between(made.daily, '2026-11-18', '2026-11-20'),
    );
    expect(await keysOf('BTCUSDT', '--to', '2026-09-30')).toEqual(made.monthly.slice(0, 1));
    expect(await keysOf('BTCUSDT', '--cadence', 'monthly')).toEqual(made.monthly);
    expect(await keysOf('BTCUSDT', '--days', '2')).toEqual(made.daily.slice(-2));
    expect(await keysOf('ETHUSDT,BTCUSDC', '--symbols', 'BTC*', '--days', '1')).toEqual([
      ...made.short.filter((key) => key.endsWith('BTCUSDC-1h-2026-11-20.zip')),
      ...made.daily.slice(-1),
      ...made.short.filter((key) => key.endsWith('ETHUSDT-1h-2026-11-20.zip')),
    ]);
  });

  it('says when a dataset ended', async () => {
    const { stdout, stderr } = await list('periods', '--dataset', 'bookTicker', '--symbols', 'BTCUSDT');
    expect(linesOf(stdout)).toHaveLength(made.ended.length);
    expect(stderr).toMatch(
      /^3 objects; 2024-03-28 … 2024-03-30, \d[\d.]* k?B; um bookTicker ended 2024-03-30/,
    );
  });
});

describe('unknown names', () => {
  it.each([
    [
      'an unknown list',
      ['simbols'],
      'is not one of markets, datasets, symbols, periods\n  did you mean symbols?',
    ],
    ['no list', [], 'list needs one of markets'],
    ['a dataset with a slip', ['symbols', '--dataset', 'klinse'], 'did you mean klines?'],
    ['periods of what', ['periods', '--interval', '1h'], '--symbols BTCUSDT'],
  ])('%s gives an error with a hint', async (_name, args, hint) => {
    const answer = await cryptodl(['list', ...args, ...place]);
    expect(answer).toMatchObject({ code: 2, stdout: '' });
    expect(answer.stderr).toMatch(/^cryptodl: .+\n/);
    expect(answer.stderr).toContain(hint);
  });

  it('an unavailable listing ends with exit code 1 and names the fault', async () => {
    for (const args of [['symbols'], ['periods', '--symbols', 'BTCUSDT']]) {
      const nowhere = ['--archive-url', 'http://127.0.0.1:9', '--retries', '0', '--max-wait', '50ms'];
      const { code, stdout, stderr } = await cryptodl(['list', ...args, ...nowhere]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/^cryptodl: .*127\.0\.0\.1:9.*\n/);
      expect(stderr).not.toMatch(/\n\s+at /);
    }
  });
});

describe('schema', () => {
  it.each(SPECS)('$market $name: every column, as text and as JSON', async ({ market, name, spec }) => {
    const text = await cryptodlOk(['schema', name, '--market', market]);
    const json = await cryptodlOk(['schema', name, '--market', market, '--json']);
    const columns = describeColumns(spec);
    expect(columns.length).toBeGreaterThan(1);
    expect(text.stderr + json.stderr).toBe('');
    expect(text.stdout).toMatch(new RegExp(`^${market} ${name}: `));
    const shown = linesOf(text.stdout).slice(2, 2 + columns.length);
    expect(shown.map((line) => line.trim().split(/ +/).slice(0, 2))).toEqual(
      columns.map((column) => [column.name, column.type]),
    );
    expect(json.stdout.split('\n')).toHaveLength(2);
    expect(json.events).toMatchObject([{ market, dataset: name, columns }]);
    for (const { doc } of columns) expect(doc).not.toBe('');
    for (const note of spec.notes) expect(text.stdout).toContain(note);
    expect(text.stdout).not.toMatch(/undefined|null|NaN|\[object/);
  });

  it('of cm klines names contracts and the base coin', async () => {
    const { stdout } = await cryptodlOk(['schema', 'klines', '--market', 'cm']);
    expect(stdout).toMatch(/^ {2}volume +DOUBLE +contracts /m);
    expect(stdout).toMatch(/^ {2}quote_volume +DOUBLE +base coin /m);
    expect((await cryptodlOk(['schema', 'klines'])).stdout).toMatch(/^ {2}volume +DOUBLE +base asset /m);
  });

  it('of metrics says that the labels were shifted on 2026-06-25', async () => {
    expect((await cryptodlOk(['schema', 'metrics'])).stdout).toMatch(/00:05 … 00:00 .* before 2026-06-25/);
  });

  it('of a dataset that only REST has names no archive object', async () => {
    const { stdout } = await cryptodlOk(['schema', 'openInterestHist']);
    expect(stdout).toMatch(/^ {2}REST +the last 30 days, by cryptodl metrics$/m);
    expect(stdout).not.toMatch(/^ {2}(objects|header) /m);
    const both = (await cryptodlOk(['schema', 'fundingRate'])).stdout;
    expect(both).toMatch(/^ {2}objects +monthly 2020-01 …$/m);
    expect(both).toMatch(/^ {2}REST +2019-09-10 …, by cryptodl metrics and cryptodl vision --fill rest$/m);
    expect((await cryptodlOk(['schema', 'trades'])).stdout).not.toMatch(/^ {2}REST /m);
  });

  it('names only intervals that the market has', async () => {
    for (const market of ['spot', 'um', 'cm']) {
      const { stdout } = await cryptodlOk(['schema', 'klines', '--market', market]);
      expect({ market, is: /\b1s\b/.test(stdout) }).toEqual({ market, is: market === 'spot' });
    }
  });

  it('finds the market of a dataset that exists in one market only', async () => {
    expect((await cryptodlOk(['schema', 'EOHSummary'])).stdout).toMatch(/^option EOHSummary: /);
    const answer = await cryptodl(['schema', 'EOHSummary', '--market', 'um']);
    expect([answer.code, answer.stderr]).toEqual([
      2,
      expect.stringContaining('option has it: --market option'),
    ]);
  });

  it.each([
    ['candles', 'um klines: '],
    ['agg_trades', 'um aggTrades: '],
    ['EOHsummary', 'option EOHSummary: '],
  ])('takes %s', async (word, begin) => {
    expect((await cryptodlOk(['schema', word])).stdout.slice(0, begin.length)).toBe(begin);
  });

  it('without a dataset names the list of them', async () => {
    const answer = await cryptodl(['schema']);
    expect([answer.code, answer.stderr]).toEqual([2, expect.stringContaining('cryptodl list datasets')]);
  });
});

it.each(['list symbols', 'audit --symbols BTCUSDT --interval 1h --from 2026-10-30 --to 2026-10-31'])(
  '%s --log-level debug logs each request, and info none',
  async (line) => {
    const [verb = ''] = line.split(' ');
    const env = { CRYPTODL_OUT: join(scratch, `log-${verb}`) };
    const logged = async (...flags: readonly string[]): Promise<unknown[]> => {
      const log = join(scratch, `${verb}-${flags.length}.log`);
      const { requests } = archive;
      const before = requests.length;
      await cryptodl([...line.split(' '), ...place, ...flags, '--log-file', log], { env });
      expect(requests.length).toBeGreaterThan(before);
      return urlsIn(log);
    };
    expect(await logged('--log-level', 'debug')).toContainEqual(expect.stringContaining(archive.url));
    expect(await logged('--log-level', 'info', '--json')).toEqual([]);
  },
);
