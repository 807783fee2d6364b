/** `--market um,spot` and `--market all`: one selection over several markets. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';
import { publish } from '../helpers/published.js';

const scratch = scratchFolder();
const keys: string[] = [];
let archive: TestArchive;
let place: string[];

beforeAll(async () => {
  const folder = join(scratch, 'archive');
  const days = { from: '2026-11-19', to: '2026-11-20', cadence: 'daily', rowsPerDay: 5 } as const;
  const make = (market: 'spot' | 'um', interval: string, symbols: string[]): void => {
    keys.push(...makeArchive(folder, { ...days, market, dataset: 'klines', interval, symbols }).keys);
  };
  make('um', '1h', ['BTCUSDT', 'UMONLY']);
  make('spot', '1h', ['BTCUSDT', 'SPOTONLY']);
  for (const day of ['2026-11-19', '2026-11-20']) {
    const second = Date.parse(`${day}T12:00:00Z`);
    const key = `data/spot/daily/klines/BTCUSDT/1s/BTCUSDT-1s-${day}.zip`;
    publish(folder, key, `${second}000,1,1,1,1,1,${second}999,1,1,1,1,0\n`);
    keys.push(key);
  }
  const more = { ...days, dataset: 'trades', symbols: ['BTCUSDT'] } as const;
  keys.push(...makeArchive(folder, { ...more, market: 'um' }).keys);
  archive = await startArchive(folder);
  place = ['--archive-url', archive.url, '--now', '2026-11-21T12:00:00Z', '--days', '2', ...FAST];
});
afterAll(() => archive.close());

/** Keys that a dry run would fetch. */
async function planned(...wanted: string[]): Promise<string[]> {
  const { stdout } = await cryptodlOk(['vision', ...wanted, '--dry-run', ...place], { cwd: scratch });
  const lines = stdout.split('\n').filter((line) => line.startsWith('fetch'));
  return lines.map((line) => line.split('\t')[2] ?? '').sort();
}

const keysWith = (...parts: RegExp[]): string[] =>
  keys.filter((key) => parts.every((part) => part.test(key))).sort();

const ALL_MARKETS = ['--market', 'all', '--dataset', 'all', '--interval', 'all', '--symbols', 'all'];

describe('vision over several markets', () => {
  it('plans every object of the markets that are named, each market with its own symbols', async () => {
    expect(await planned('--market', 'um,spot', '--interval', '1h', '--symbols', 'all')).toEqual(
      keysWith(/klines/, /-1h-/),
    );
    const spot = await planned(...'--market spot,option --dataset all --interval 1h --symbols *'.split(' '));
    expect(spot).toEqual(keysWith(/spot/, /-1h-/));
  });

  it('says how many objects each dataset of each market has', async () => {
    const { stderr } = await cryptodlOk(['vision', ...ALL_MARKETS, '--dry-run', ...place], { cwd: scratch });
    expect(stderr).toContain('spot klines: 6 objects, ');
    expect(stderr).toContain('um klines: 4 objects, ');
    expect(stderr).toContain('um trades: 2 objects, ');
  });

  it.each([
    [
      'a market without the dataset',
      ['--dataset', 'premiumIndexKlines,klines', '--interval', '1h', '--symbols', 'all'],
      /-1h-/,
    ],
    ['a market without the interval', ['--interval', '1s', '--symbols', 'all'], /-1s-/],
    ['a market without the symbol', ['--interval', '1h', '--symbols', 'SPOTONLY'], /SPOTONLY/],
  ])('leaves out %s under --market all', async (_, wanted, part) => {
    expect(await planned('--market', 'all', ...wanted)).toEqual(keysWith(part));
  });

  it.each(['zip', 'parquet'])('downloads all of it as %s, and goes on without --symbols', async (format) => {
    const out = join(scratch, format);
    const told = ['--format', format, '--out', out, '--json'];
    const { events } = await cryptodlOk(['vision', ...ALL_MARKETS, ...told, ...place]);
    // The days of 1s have one row each; rows of zips are not counted.
    const partial = format === 'zip' ? 0 : keysWith(/-1s-/).length;
    const ok = keys.length - partial;
    expect(events.at(-1)).toMatchObject({ outcomes: { ok, partial, failed: 0 }, exitCode: 0 });
    if (format === 'zip')
      expect(filesBelow(join(out, 'data'), '.zip').map((path) => `data/${path}`)).toEqual([...keys].sort());
    const goOn = async (...market: string[]): Promise<unknown> =>
      (await cryptodlOk(['vision', ...market, ...told, ...place])).events.at(-1)?.['outcomes'];
    expect(await goOn('--market', 'all')).toMatchObject({ ok: 0, skipped: keys.length });
    expect(await goOn('--market', 'spot,cm')).toMatchObject({ skipped: keysWith(/spot/).length });
  });

  it('retries the failures of a run over all markets, and nothing else', async () => {
    const out = join(scratch, 'retried');
    const broken = keysWith(/BTCUSDT/, /-1h-/, /11-20/);
    expect(broken).toHaveLength(2);
    archive.fault = (path, _, response) => {
      if (!broken.some((key) => path.endsWith(key))) return false;
      response.writeHead(500).end();
      return true;
    };
    const failed = await cryptodl(argv`vision ${ALL_MARKETS} --out ${out} --json --retries 0 ${place}`);
    archive.fault = undefined;
    const summary = failed.events.at(-1);
    expect(summary).toMatchObject({ outcomes: { failed: 2 }, exitCode: 3 });
    archive.requests.length = 0;
    const report = String(summary?.['failures']);
    const again = await cryptodlOk(['retry', report, '--json', ...FAST]);
    expect(again.events.at(-1)).toMatchObject({ outcomes: { ok: 2, failed: 0 }, exitCode: 0 });
    const fetched = archive.objectRequests().filter((path) => path.endsWith('.zip'));
    expect(broken.every((key) => fetched.includes(`/${key}`))).toBe(true);
    const held = await cryptodlOk(['vision', ...ALL_MARKETS, '--out', out, '--json', ...place]);
    expect(held.events.at(-1)).toMatchObject({ outcomes: { ok: 0, skipped: keys.length } });
  });

  it('lists symbols of several markets', async () => {
    const { stdout } = await cryptodlOk([
      ...'list symbols --market um,spot --archive-url'.split(' '),
      archive.url,
    ]);
    expect(stdout.trim().split('\n')).toEqual(['BTCUSDT', 'SPOTONLY', 'UMONLY']);
  });
});
