/** Bars of random lakes: a source that gets days, gaps and revisions gives, after the same command again, the files of a lake without bars. */
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import { tradesOf, writeAggTrades, writeKlines, writeTrades } from '../helpers/bar-archive.js';
import { FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';
import { sized } from '../helpers/tier-size.js';

const scratch = scratchFolder();
const NOW = '2024-03-20T08:00:00Z';
const MINUTE = 60_000;
const DAYS = Array.from({ length: 14 }, (_, at) =>
  new Date(Date.UTC(2024, 0, 25 + at)).toISOString().slice(0, 10),
);
const LENGTHS = ['7m', '15m', '1h', '5h', '20h', '1d', '36h', '3d', '1w'];
const SETTINGS = [
  [],
  ['--numbers', 'string'],
  ['--format', 'csv'],
  ['--partition', 'day'],
  ['--partition', 'month'],
];

function randomOf(seed: number): (below: number) => number {
  let state = BigInt(seed) * 7919n + 12_345n;
  return (below) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) % (1n << 64n);
    return Number((state >> 33n) % BigInt(below));
  };
}

function barsIn(lake: string): unknown {
  const folder = join(lake, 'binance/um/bars');
  return filesBelow(folder).map((file) => [file, readFileSync(join(folder, file)).toString('base64')]);
}

it.each(sized([1, 2, 3, 4, 5, 6], [1, 5]))('seed %i', async (seed) => {
  const random = randomOf(seed);
  const one = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  const dataset = one(['klines', 'aggTrades', 'trades']);
  const bar = one(LENGTHS);
  const canFill = dataset !== 'klines';
  const words = ['bars', bar, '--now', NOW, ...(canFill && random(2) === 0 ? ['--fill-empty'] : [])];
  const settings = one(SETTINGS);
  const [archive, lake, other] = ['archive', 'lake', 'other'].map((name) =>
    join(scratch, `${name}-${seed}`),
  ) as [string, string, string];
  const write = (day: string, version: number): void => {
    const trades = tradesOf(day, one([3, 40, 300]), version);
    const gap = Date.parse(`${day}T00:00:00Z`) + random(1440) * MINUTE;
    const gapMs = random(3) === 0 ? random(600) * MINUTE : 0;
    const series = { symbol: 'BTCUSDT', day, interval: '1m' };
    if (dataset === 'klines') writeKlines(archive, series, trades, (at) => at >= gap && at < gap + gapMs);
    else (dataset === 'trades' ? writeTrades : writeAggTrades)(archive, 'BTCUSDT', day, trades);
  };
  const download = async (): Promise<void> => {
    const served = await startArchive(archive);
    const selection = argv`-s BTCUSDT --dataset ${dataset} -i 1m --from 2024-01-25 --to 2024-02-08`;
    try {
      const places = ['--archive-url', served.url, '--out', lake, '--now', NOW, '--recheck-days', '60'];
      await cryptodl(['vision', ...places, ...FAST, ...selection, ...settings]);
    } finally {
      await served.close();
    }
  };
  const first = DAYS.filter((_, at) => at === 0 || (at < 8 && random(4) > 0));
  for (const day of first) write(day, 1);
  await download();
  await cryptodlOk([...words, '--out', lake]);
  for (const day of DAYS) if (random(first.includes(day) ? 4 : 2) === 0) write(day, 2);
  await download();
  cpSync(lake, other, { recursive: true, filter: (path) => !path.endsWith('/um/bars') });
  for (const each of [lake, other]) await cryptodlOk([...words, '--out', each]);
  expect(barsIn(lake)).toEqual(barsIn(other));
  expect((await cryptodlOk(['verify', '--deep', '--out', lake])).stdout).toBe('');
  expect((await cryptodlOk([...words, '--out', lake])).stderr).not.toContain(' made ');
});
