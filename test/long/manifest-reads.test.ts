/** How often a run reads the manifest of a series: once, however many partitions it writes. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeArchive, makeCsv } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { manifestLines } from '../helpers/lake.js';
import { publish } from '../helpers/published.js';

const scratch = scratchFolder();
const folder = join(scratch, 'archive');
const counter = join(scratch, 'counter.mjs');
let archive: TestArchive;

/** Counts how often the program opens a manifest only to read it. */
const COUNTER = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
let reads = 0;
for (const [owner, name] of [[fs.promises, 'open'], [fs, 'openSync']]) {
  const usual = owner[name];
  owner[name] = (path, flags, mode) => {
    const isRead = (Number(flags) & (fs.constants.O_WRONLY | fs.constants.O_RDWR)) === 0;
    if (isRead && /_manifests.*jsonl$/.test(String(path))) reads += 1;
    return usual(path, flags, mode);
  };
}
syncBuiltinESMExports();
process.on('exit', () => fs.writeFileSync(process.env.READS, String(reads)));
`;

beforeAll(async () => {
  writeFileSync(counter, COUNTER);
  const days = { market: 'um', symbols: ['BTCUSDT'], cadence: 'daily' } as const;
  makeArchive(folder, { ...days, dataset: 'aggTrades', from: '2026-06-01', to: '2026-06-08' });
  makeArchive(folder, { ...days, dataset: 'klines', interval: '1h', from: '2026-06-01', to: '2026-06-30' });
  rmSync(join(folder, 'data/futures/um/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-2026-06-05.zip'));
  const lastDay = {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbol: 'BTCUSDT',
    period: '2026-06-30',
  } as const;
  publish(folder, 'data/futures/um/monthly/klines/BTCUSDT/1h/BTCUSDT-1h-2026-06.zip', makeCsv(lastDay).csv);
  archive = await startArchive(folder);
});
afterAll(() => archive.close());

/** Reads of manifests in one run. */
async function readsOf(args: readonly string[]): Promise<number> {
  const READS = join(scratch, 'reads');
  const env = { NODE_OPTIONS: `--import ${pathToFileURL(counter).href}`, READS };
  const where = ['--archive-url', archive.url, '--out', join(scratch, 'lake'), '--symbols', 'BTCUSDT'];
  await cryptodlOk(['vision', ...args, ...where, ...FAST], { env });
  return Number(readFileSync(READS, 'utf8'));
}

it.each<[string, readonly string[]]>([
  ['parquet', []],
  ['zip', ['--format', 'zip']],
])(
  'a run reads the manifest of a series once: day partitions as %s, and a missing day',
  async (_, format) => {
    const trades = ['--dataset', 'aggTrades', ...format, '--from', '2026-06-01'];
    // The first run of a series has none to read.
    expect(await readsOf([...trades, '--to', '2026-06-02'])).toBe(format.length === 0 ? 0 : 1);
    expect(await readsOf([...trades, '--to', '2026-06-08'])).toBe(1);
    const lines = manifestLines(join(scratch, 'lake/binance/um/aggTrades/symbol=BTCUSDT'));
    const ofFormat = lines.filter(({ file }) => String(file).endsWith(format[1] ?? 'parquet'));
    expect(ofFormat).toHaveLength(7);
    expect(lines.filter(({ kind }) => kind === 'absent')).toMatchObject([{ first: '2026-06-05' }]);
  },
);

it('a run reads no manifest that it has made: a short month, then its days', async () => {
  const bars = ['--dataset', 'klines', '--interval', '1h', '--from', '2026-06-01', '--to', '2026-06-30'];
  expect(await readsOf(bars)).toBe(0);
  const lines = manifestLines(join(scratch, 'lake/binance/um/klines/interval=1h/symbol=BTCUSDT'));
  expect(lines.map(({ cadence }) => cadence)).toEqual(['monthly', ...Array<string>(30).fill('daily')]);
});
