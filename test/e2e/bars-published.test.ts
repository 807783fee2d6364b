/** `cryptodl bars` on real objects of the archive: against their own rows, and against rows that Binance published. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import { argv, cryptodlOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, readParquet } from '../helpers/lake.js';
import { publish } from '../helpers/published.js';
import { firstMember, readPublished, SAMPLES, samplesMissing } from '../helpers/samples.js';

const scratch = scratchFolder();
const COUNTS = ['open_time', 'close_time', 'count'];
let lakes = 0;

/** A lake with the objects of `folder` that `selection` names. */
async function lakeOf(folder: string, ...selection: readonly string[]): Promise<string> {
  lakes += 1;
  const lake = join(scratch, `lake-${lakes}`);
  const served = await startArchive(folder);
  try {
    const places = ['--archive-url', served.url, '--out', lake, '--verify', 'none'];
    await cryptodlOk(['vision', ...selection, ...places, ...FAST]);
  } finally {
    await served.close();
  }
  return lake;
}

/** Makes bars of spot BTCUSDT or of another series, and reads them; counts and times as numbers. */
async function barsOf(
  lake: string,
  bar: string,
  market = 'spot',
  symbol = 'BTCUSDT',
): Promise<Record<string, unknown>[]> {
  await cryptodlOk(['bars', bar, '--out', lake]);
  const folder = join(lake, `binance/${market}/bars/interval=${bar}/symbol=${symbol}`);
  const rows = await Promise.all(
    filesBelow(folder, '.parquet').map((file) => readParquet(join(folder, file))),
  );
  return rows
    .flat()
    .map((row) => ({ ...row, ...Object.fromEntries(COUNTS.map((name) => [name, Number(row[name])])) }));
}

const REAL = [
  ['spot', 'spot', 'BTCUSDT', '2020-01-01'],
  ['um', 'futures/um', 'BTCUSDT', '2022-09-05'],
  ['cm', 'futures/cm', 'BTCUSD_PERP', '2022-10-24'],
] as const;
const samples = samplesMissing(
  ...REAL.map(([, path, symbol, day]) => `data/${path}/daily/klines/${symbol}/1m/${symbol}-1m-${day}.zip`),
);

describe.skipIf(samples !== undefined)(`bars of real klines${samples ?? ''}`, () => {
  it.each(REAL)(
    'of %s have the prices, the sums and the counts of their minutes',
    async (market, path, symbol, day) => {
      const key = `data/${path}/daily/klines/${symbol}/1m/${symbol}-1m-${day}.zip`;
      const selection = ['-m', market, '-s', symbol, '-i', '1m', '--from', day, '--to', day];
      const lake = await lakeOf(SAMPLES, ...selection);
      const { rows } = readPublished(firstMember(readFileSync(join(SAMPLES, key))));
      const sum = (own: string[][], column: number): number => {
        const scaled = own.map((row) => {
          const [whole = '', fraction = ''] = (row[column] ?? '').split('.');
          return BigInt(whole + fraction.padEnd(8, '0'));
        });
        const text = String(scaled.reduce((total, value) => total + value, 0n)).padStart(9, '0');
        return Number(`${text.slice(0, -8)}.${text.slice(-8)}`);
      };
      const hours = Array.from({ length: 24 }, (_, hour) => rows.slice(hour * 60, hour * 60 + 60));
      expect(rows).toHaveLength(1440);
      expect(await barsOf(lake, '1h', market, symbol)).toEqual(
        hours.map((own) => ({
          open_time: Number(own[0]?.[0]),
          open: Number(own[0]?.[1]),
          high: Math.max(...own.map((row) => Number(row[2]))),
          low: Math.min(...own.map((row) => Number(row[3]))),
          close: Number(own.at(-1)?.[4]),
          volume: sum(own, 5),
          close_time: Number(own.at(-1)?.[6]),
          quote_volume: sum(own, 7),
          count: own.reduce((total, row) => total + Number(row[8]), 0),
          taker_buy_volume: sum(own, 9),
          taker_buy_quote_volume: sum(own, 10),
        })),
      );
    },
  );
});

const noDays = samplesMissing(
  ...['2020-01-01', '2020-01-02'].map((day) => `data/spot/daily/klines/BTCUSDT/1m/BTCUSDT-1m-${day}.zip`),
);

/** Klines of spot BTCUSDT as the REST interface of Binance gave them, in the columns of an object of klines. */
const PUBLISHED = {
  // As recorded in the test of download_bars of gbeced/basana.
  '1d': `1577836800000,7195.24,7255.00,7175.15,7200.85,16792.38816500,1577923199999,121214452.11606228,194010,8946.95553500,64597785.21233434
1577923200000,7200.77,7212.50,6924.74,6965.71,31951.48393200,1578009599999,225982341.30114030,302667,15141.61134000,107060829.07806464`,
  // The first kline of spot BTCUSDT, which many pages print.
  '1m': `1502942400000,4261.48,4261.48,4261.48,4261.48,1.77518300,1502942459999,7564.90685084,3,0.07518300,320.39085084`,
};
// The tutorial of vectorbt.pro on several time frames prints the prices and volumes of these hours.
const HOURS = `7195.24,7196.25,7175.46,7177.02,511.814901
7176.47,7230.00,7175.71,7216.27,883.052603
7215.52,7244.87,7211.41,7242.85,655.156809
7242.66,7245.00,7220.00,7225.01,783.724867`;

const COLUMNS = argv`open_time open high low close volume close_time quote_volume count taker_buy_volume taker_buy_quote_volume`;

/** Rows of comma-separated numbers as objects. */
const published = (text: string, columns: readonly string[]): Record<string, number>[] =>
  text.split('\n').map((line) => {
    const cells = line.split(',');
    return Object.fromEntries(columns.map((name, index) => [name, Number(cells[index])]));
  });

describe.skipIf(noDays !== undefined)(
  `bars of klines of 1m, as Binance published them${noDays ?? ''}`,
  () => {
    it('equal the klines of 1d and 1h', async () => {
      const days = ['--from', '2020-01-01', '--to', '2020-01-02'];
      const lake = await lakeOf(SAMPLES, '-m', 'spot', '-s', 'BTCUSDT', '-i', '1m', ...days);
      expect(await barsOf(lake, '1d')).toEqual(published(PUBLISHED['1d'], COLUMNS));
      const hours = await barsOf(lake, '1h');
      expect(hours).toHaveLength(48);
      expect(hours.slice(0, 4)).toMatchObject(published(HOURS, COLUMNS.slice(1, 6)));
      expect(hours.slice(0, 2).map((row) => row['count'])).toEqual([7640, 9033]);
    });
  },
);

const EXCERPT = 'csv-excerpts/data/spot/daily/trades/BTCUSDT/BTCUSDT-trades-2017-08-17.first30rows.csv';
const noTrades = samplesMissing(EXCERPT);

describe.skipIf(noTrades !== undefined)(`bars of trades, as Binance published them${noTrades ?? ''}`, () => {
  it('equal the first kline of 1m', async () => {
    const folder = join(scratch, 'trades');
    const day = '2017-08-17';
    const csv = readFileSync(join(SAMPLES, EXCERPT), 'utf8');
    publish(folder, `data/spot/daily/trades/BTCUSDT/BTCUSDT-trades-${day}.zip`, csv);
    const selection = ['-m', 'spot', '-s', 'BTCUSDT', '--dataset', 'trades', '--from', day, '--to', day];
    const lake = await lakeOf(folder, ...selection);
    expect((await barsOf(lake, '1m'))[0]).toEqual(published(PUBLISHED['1m'], COLUMNS)[0]);
  });
});
