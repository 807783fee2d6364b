/** `cryptodl export`: which series of the lake go to a file, and exports that have nothing to write. */
import { cpSync, existsSync, mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import { FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { exportsOf, filesOf, linesOf } from '../helpers/exports.js';
import { filesBelow } from '../helpers/lake.js';
import { writeObject } from '../helpers/published.js';
import { useScene } from '../helpers/scene.js';

const DAYS = { cadence: 'daily', from: '2024-01-01', to: '2024-01-04' } as const;
const scene = useScene({
  now: '2024-03-10T12:00:00Z',
  archive: [
    { ...DAYS, market: 'um', dataset: 'trades', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'aggTrades', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'klines', interval: '1m', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'klines', interval: '1h', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'markPriceKlines', interval: '1h', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'metrics', symbols: ['BTCUSDT'] },
    {
      ...DAYS,
      cadence: 'monthly',
      to: '2024-01-31',
      market: 'um',
      dataset: 'fundingRate',
      symbols: ['BTCUSDT'],
    },
    {
      ...DAYS,
      cadence: 'monthly',
      to: '2024-01-31',
      market: 'cm',
      dataset: 'fundingRate',
      symbols: ['BTCUSD_PERP'],
    },
    { ...DAYS, market: 'cm', dataset: 'indexPriceKlines', interval: '1h', symbols: ['BTCUSD', 'ETHUSD'] },
    { ...DAYS, market: 'cm', dataset: 'aggTrades', symbols: ['BTCUSD_PERP'] },
    { ...DAYS, market: 'cm', dataset: 'klines', interval: '1h', symbols: ['BTCUSD_PERP'] },
  ],
});
const ALL = '--from 2024-01-01 --to 2024-01-04';

const { exported, newExport, newTarget } = exportsOf(scene);

/** A new lake with these downloads. */
const lakeOf = (...downloads: readonly string[]): Promise<string> => scene.lakeOf(downloads);

describe('trades and aggTrades of a symbol', () => {
  it('complete each other in files of a day', async () => {
    const lake = await lakeOf(
      '-m um --dataset trades -s BTCUSDT --from 2024-01-02 --to 2024-01-02',
      `-m um --dataset aggTrades -s BTCUSDT ${ALL}`,
    );
    const target = newTarget();
    const trades = ['01', '02', '03', '04'].map(
      (day) => `binance-futures/trades/2024/01/${day}/BTCUSDT.csv.gz`,
    );
    expect((await exported('tardis', lake, target)).code).toBe(0);
    expect(filesOf(target)).toEqual(trades);
    const { target: other } = await newExport('tardis', lake, '--dataset', 'aggTrades');
    const isSame = trades.map((file) => {
      const [own, aggregated] = [target, other].map((folder) => linesOf(folder, file).slice(1).join('\n'));
      return own === aggregated;
    });
    expect(isSame).toEqual([true, false, true, true]);
    const { target: lean } = await newExport('lean', lake);
    expect(filesOf(lean)).toHaveLength(4);
    // In a file of a month, a day in the middle is missing.
    const months = await lakeOf(
      '-m um --dataset trades -s BTCUSDT --from 2024-01-01 --to 2024-01-01 --partition month',
      '-m um --dataset trades -s BTCUSDT --from 2024-01-03 --to 2024-01-04 --partition month --recheck-days 0',
      `-m um --dataset aggTrades -s BTCUSDT ${ALL}`,
    );
    const third = newTarget();
    expect((await exported('tardis', months, third)).code).toBe(0);
    expect(filesOf(third)).toEqual(trades);
  });
});

describe('bars and klines of one interval', () => {
  it('go to the file of the one with more days, and the other is told', async () => {
    const lake = await lakeOf(
      `-m um -i 1m -s BTCUSDT ${ALL}`,
      '-m um -i 1h -s BTCUSDT --from 2024-01-02 --to 2024-01-03',
    );
    const bars = ['bars', '1h', '--out', lake, '--now', scene.now];
    await cryptodlOk(bars);
    const target = newTarget();
    for (const program of ['freqtrade', 'lean']) {
      const { code, stderr } = await exported(program, lake, target, '-i', '1h', '--json');
      expect([code, stderr]).toEqual([0, expect.not.stringContaining('left out') as string]);
    }
    const summary = (await exported('freqtrade', lake, newTarget(), '-i', '1h', '--json')).events.at(-1);
    expect(summary).toMatchObject({ files: { written: 1 }, rows: 96 });
    // 1h klines of the first and the last day span all days, and are fewer.
    const ends = await lakeOf(
      `-m um -i 1m -s BTCUSDT ${ALL}`,
      '-m um -i 1h -s BTCUSDT --from 2024-01-01 --to 2024-01-01',
      '-m um -i 1h -s BTCUSDT --from 2024-01-04 --to 2024-01-04 --recheck-days 0',
    );
    await cryptodlOk(['bars', '1h', '--out', ends, '--now', scene.now]);
    const whole = await exported('freqtrade', ends, newTarget(), '-i', '1h', '--json');
    expect(whole.events.at(-1)).toMatchObject({ files: { written: 1 }, rows: 96, leftOut: 0 });
    const later = await lakeOf(
      `-m um -i 1m -s BTCUSDT --from 2024-01-03 --to 2024-01-04`,
      '-m um -i 1h -s BTCUSDT --from 2024-01-01 --to 2024-01-03',
    );
    await cryptodlOk(['bars', '1h', '--out', later, '--now', scene.now]);
    const { stderr } = await exported('freqtrade', later, newTarget(), '-i', '1h');
    expect(stderr).toContain(
      'left out: um bars 1h BTCUSDT: files of another series have the same names, and lack days of this one',
    );
  });
});

describe('coin-margined contracts', () => {
  it('have the index price of their pair in the ticker of Tardis', async () => {
    const lake = await lakeOf(
      '-m cm --dataset fundingRate -s BTCUSD_PERP --from 2024-01 --to 2024-01',
      `-m cm --dataset indexPriceKlines -i 1h -s BTCUSD,ETHUSD ${ALL}`,
    );
    for (const flags of [['-s', 'BTCUSD_PERP'], []]) {
      const target = newTarget();
      const range = ['--from', '2024-01-02', '--to', '2024-01-02'];
      expect((await exported('tardis', lake, target, ...range, ...flags)).code).toBe(0);
      const file = 'binance-delivery/derivative_ticker/2024/01/02/BTCUSD_PERP.csv.gz';
      expect(filesOf(target).filter((path) => !path.includes('ETHUSD'))).toEqual([file]);
      const rows = linesOf(target, file)
        .slice(1)
        .map((line) => line.split(','));
      expect(rows.filter((row) => row[9] !== '' && row[1] === 'BTCUSD_PERP')).toHaveLength(24);
    }
    // The index price alone gives no files: BTCUSD is no contract, and a contract may have ended.
    const trades = await lakeOf(
      `-m cm --dataset aggTrades -s BTCUSD_PERP ${ALL}`,
      `-m cm --dataset indexPriceKlines -i 1h -s BTCUSD ${ALL}`,
    );
    const { target: others, ...result } = await newExport('tardis', trades, '--require-complete');
    expect([result.code, result.stderr]).toEqual([0, expect.not.stringContaining('left out') as string]);
    expect(filesOf(others).every((path) => path.startsWith('binance-delivery/trades/'))).toBe(true);
    const { target: freqtrade } = await newExport('freqtrade', lake, '-s', 'BTCUSD_PERP');
    expect(filesOf(freqtrade)).toContain('futures/BTC_USD_BTC-1h-index.parquet');
  });

  it('have no trades in freqtrade, because their amounts are contracts', async () => {
    const lake = await lakeOf(`-m cm --dataset aggTrades -s BTCUSD_PERP ${ALL}`);
    const result = await exported('freqtrade', lake, newTarget(), '--dataset', 'aggTrades');
    expect([result.code, result.stderr]).toEqual([
      4,
      expect.stringContaining(
        'left out: cm aggTrades BTCUSD_PERP: freqtrade has no trades of coin-margined contracts',
      ) as string,
    ]);
  });
});

describe('--interval', () => {
  it('leaves out no dataset without intervals that the program needs', async () => {
    const lake = await lakeOf(
      `-m um -i 1m,1h -s BTCUSDT ${ALL}`,
      `-m um --dataset markPriceKlines -i 1h -s BTCUSDT ${ALL}`,
      '-m um --dataset fundingRate -s BTCUSDT --from 2024-01 --to 2024-01',
      `-m um --dataset metrics,aggTrades -s BTCUSDT ${ALL}`,
    );
    const filesFor = async (program: string, ...flags: readonly string[]): Promise<string[]> => {
      const target = newTarget();
      expect((await exported(program, lake, target, ...flags)).code).toBe(0);
      return filesOf(target);
    };
    const place = 'futures/BTC_USDT_USDT';
    expect(await filesFor('freqtrade', '-i', '1m')).toEqual([
      `${place}-1h-funding_rate.parquet`,
      `${place}-1h-mark.parquet`,
      `${place}-1m-futures.parquet`,
      `${place}-8h-funding_rate.parquet`,
      `${place}-8h-mark.parquet`,
    ]);
    const lean = await filesFor('lean', '-i', '1h');
    expect(lean).toEqual([
      'cryptofuture/binance/hour/btcusdt_trade.zip',
      'cryptofuture/binance/margin_interest/btcusdt.csv',
    ]);
    const types = (await filesFor('tardis', '-i', '1h')).map((path) => path.split('/')[1]);
    expect(new Set(types)).toEqual(new Set(['derivative_ticker', 'trades']));
    const csv = (await filesFor('csv', '-i', '1h')).map((path) => path.split('/')[0]);
    expect(csv).toEqual(['um_klines_1h', 'um_markPriceKlines_1h']);
    expect(await filesFor('freqtrade', '--dataset', 'klines', '-i', '1h')).toEqual([
      `${place}-1h-futures.parquet`,
    ]);
  });
});

describe('a ticker of Tardis', () => {
  it('is made from mark prices alone, and from all datasets of the lake', async () => {
    const lake = await lakeOf(
      `-m um --dataset markPriceKlines -i 1h -s BTCUSDT ${ALL}`,
      `-m um --dataset metrics -s BTCUSDT ${ALL}`,
    );
    const target = newTarget();
    const day = ['--from', '2024-01-02', '--to', '2024-01-02'];
    const file = 'binance-futures/derivative_ticker/2024/01/02/BTCUSDT.csv.gz';
    expect((await exported('tardis', lake, target, '--dataset', 'markPriceKlines', ...day)).code).toBe(0);
    expect(linesOf(target, file).slice(1)).toHaveLength(24);
    expect((await exported('tardis', lake, target, ...day)).code).toBe(0);
    expect(linesOf(target, file).slice(1).length).toBeGreaterThan(24);
  });
});

describe('an export with nothing to write', () => {
  it('ends with exit code 4, and names the reason', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${ALL}`);
    const old = await exported('freqtrade', lake, newTarget(), '--from', '2020-01-01', '--to', '2020-02-01');
    expect([old.code, old.stderr]).toEqual([
      4,
      expect.stringContaining(
        'nothing is exported, because the lake has no rows of these series in the range',
      ) as string,
    ]);
    expect(await exported('freqtrade', lake, newTarget(), '--days', '7', '--quiet')).toMatchObject({
      code: 4,
    });
  });

  it('also if its files would have no rows', async () => {
    const folder = scene.newFolder();
    const times = Array.from(
      { length: 60 },
      (_, at) => Date.parse('2024-01-01T00:00:00Z') + at * 8 * 3_600_000,
    );
    writeObject(folder, 'data/futures/um/monthly/fundingRate/BTCUSDT/BTCUSDT-fundingRate-2024-01', [
      'calc_time,funding_interval_hours,last_funding_rate',
      ...times.map((time) => `${time},8,0.0001`),
    ]);
    const lake = join(scene.newFolder(), 'lake');
    const served = await startArchive(folder);
    const line = argv`vision --archive-url ${served.url} --out ${lake} --now ${scene.now} ${FAST} -m um`;
    try {
      await cryptodl([...line, ...'--dataset fundingRate -s BTCUSDT --from 2024-01 --to 2024-01'.split(' ')]);
    } finally {
      await served.close();
    }
    const day = ['--from', '2024-01-25', '--to', '2024-01-25'];
    const none = await exported('tardis', lake, newTarget(), ...day);
    expect([none.code, none.stderr]).toEqual([
      4,
      expect.stringContaining('nothing is exported, because the lake has no rows of these series') as string,
    ]);
  });
});

describe('the columns of --one-file', () => {
  it('have the symbol', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${ALL}`);
    const columns = (...flags: readonly string[]): Promise<CliResult> =>
      exported('csv', lake, newTarget(), '--columns', ...flags);
    expect(await columns('time=open_time,close', '--one-file')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--columns has no symbol') as string,
    });
    expect((await columns('time=open_time,name=symbol', '--one-file')).code).toBe(0);
  });
});

describe('a target', () => {
  it('may be above the lake, but no file of the export lies in it', async () => {
    const made = await lakeOf(`-m um -i 1h -s BTCUSDT ${ALL}`);
    const target = scene.newFolder();
    const lake = join(target, 'futures');
    renameSync(made, lake);
    const before = filesBelow(lake);
    const refused = await exported('freqtrade', lake, target);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('is in the lake') as string]);
    expect(filesBelow(lake)).toEqual(before);
    expect((await exported('csv', lake, target)).code).toBe(0);
    expect(existsSync(join(target, 'um_klines_1h/BTCUSDT.csv'))).toBe(true);
  });

  it('is in no other lake', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${ALL}`);
    const other = join(scene.newFolder(), 'other');
    cpSync(lake, other, { recursive: true });
    mkdirSync(join(other, 'a/_manifests'), { recursive: true });
    for (const place of ['', 'binance/x']) {
      const { code, stderr } = await exported('csv', lake, join(other, place));
      expect([code, stderr]).toEqual([2, expect.stringContaining(`is in the lake ${other}`) as string]);
    }
  });
});

describe('--require-complete', () => {
  it('refuses a lake with a series behind a link, or without its manifest', async () => {
    const lake = await lakeOf(`-m um -i 1m,1h -s BTCUSDT ${ALL}`);
    const folder = join(lake, 'binance/um/klines/interval=1m');
    const outside = join(scene.newFolder(), 'moved');
    renameSync(folder, outside);
    symlinkSync(outside, folder);
    const { target, ...linked } = await newExport('csv', lake, '--require-complete');
    expect([linked.code, existsSync(target)]).toEqual([4, false]);
    expect(linked.stderr).toContain('nothing is exported, because --require-complete is given');
    mkdirSync(target);
    expect((await exported('csv', lake, target)).code).toBe(0);
  });
});
