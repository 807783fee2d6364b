/** `--dataset all` and `--interval all`: one selection over everything that a market has. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const scratch = scratchFolder();
const keys: string[] = [];
let archive: TestArchive;
let place: string[];

beforeAll(async () => {
  const folder = join(scratch, 'archive');
  const days = { from: '2026-11-19', to: '2026-11-20', cadence: 'daily' } as const;
  const make = (dataset: 'klines' | 'trades', interval: string | undefined, symbols: string[]): void => {
    const layer = interval === undefined ? {} : { interval };
    keys.push(
      ...makeArchive(folder, { ...days, market: 'um', dataset, ...layer, symbols, rowsPerDay: 5 }).keys,
    );
  };
  make('klines', '1h', ['BTCUSDT', 'UMONLY']);
  make('klines', '1d', ['BTCUSDT']);
  make('trades', undefined, ['BTCUSDT']);
  archive = await startArchive(folder);
  place = ['--archive-url', archive.url, '--now', '2026-11-21T12:00:00Z', '--days', '2', ...FAST];
});
afterAll(() => archive.close());

/** Keys that a dry run would fetch. */
function keysIn(text: string): string[] {
  const lines = text.split('\n').filter((line) => line.startsWith('fetch'));
  return lines.map((line) => line.split('\t')[2] ?? '').sort();
}

const EVERYTHING = ['--dataset', 'all', '--interval', 'all'];

describe('vision over all datasets and all intervals', () => {
  it('plans every object of the market, and says how many each dataset has', async () => {
    const wanted = ['vision', ...EVERYTHING, '--symbols', 'all', '--dry-run', ...place];
    const { stdout, stderr } = await cryptodlOk(wanted, { cwd: scratch });
    expect(keysIn(stdout)).toEqual([...keys].sort());
    expect(stderr).toContain('um klines: 6 objects, ');
    expect(stderr).toContain('um trades: 2 objects, ');
  });

  it('asks for a named symbol where it is, and for an interval where a dataset has it', async () => {
    const wanted = ['--dataset', 'all', '--interval', '1d', '--symbols', 'BTCUSDT', '--dry-run'];
    const { stdout } = await cryptodlOk(['vision', ...wanted, ...place], { cwd: scratch });
    expect(keysIn(stdout)).toEqual(keys.filter((key) => !key.includes('-1h-')).sort());
  });

  it.each([
    ['all datasets', EVERYTHING],
    ['all intervals', ['--dataset', 'klines', '--interval', 'all']],
  ])('of %s leaves out days that the chosen cadence lacks', async (_, chosen) => {
    const wanted = ['--cadence', 'daily', '--symbols', 'BTCUSDT', '--dry-run'];
    const { stdout } = await cryptodlOk(['vision', ...chosen, ...wanted, ...place], { cwd: scratch });
    expect(keysIn(stdout)).toContain(keys.find((key) => key.includes('-1h-')));
  });
});
