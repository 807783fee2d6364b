/** The terms of the exchange about its data: the notice in a lake, the line of the first run, and the footers of Parquet files. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, parquetMetadata } from '../helpers/lake.js';
import { publishMetrics } from '../helpers/metrics-archive.js';
import { joinedScene } from '../helpers/metrics-scene.js';
import { preload } from '../helpers/preload.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';
import { useScene } from '../helpers/scene.js';

const NOTICE = '_NOTICE.md';
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const TERMS = /^ {2}terms {6}CC BY-NC-SA 4\.0 and Binance dataset terms since 2026-08-26: .*_NOTICE\.md$/m;

async function termsIn(file: string): Promise<Record<string, string>> {
  const { key_value_metadata: entries = [] } = await parquetMetadata(file);
  return Object.fromEntries(
    entries.flatMap(({ key, value }) =>
      key === 'license' || key === 'attribution' ? [[key, value ?? '']] : [],
    ),
  );
}

const ARCHIVE = {
  license: expect.stringMatching(
    /^CC BY-NC-SA 4\.0 and Binance Vision Dataset Terms 1\.0 of 2026-08-26 \(.*earlier terms\)$/,
  ) as string,
  attribution: 'Binance Vision, https://data.binance.vision',
};

describe('the notice of the terms', () => {
  const scene = useScene({
    archive: [{ from: '2026-11-14', to: '2026-11-20' }],
    flags: '--symbols BTCUSDT --interval 1h',
  });

  it('is written by the first run into a new lake, which says so in one line', async () => {
    const first = await scene.vision('--days 3', { lake: 'first' });
    expect(first.code).toBe(0);
    expect(first.stderr).toMatch(TERMS);
    const notice = readFileSync(join(first.lake, NOTICE), 'utf8');
    expect(notice).toContain('2026-08-26');
    expect(notice).toContain('CC BY-NC-SA 4.0');
    expect(notice).toMatch(/\n$/);
    const second = await scene.vision('--days 5', { lake: 'first' });
    expect([second.code, second.stderr]).toEqual([0, expect.not.stringMatching(TERMS)]);
    expect((await cryptodl(['verify', '--deep', '--out', first.lake])).stdout).not.toContain(NOTICE);
    expect((await cryptodl(['verify', '--fix', '--out', first.lake])).code).toBe(0);
    expect(readFileSync(join(first.lake, NOTICE), 'utf8')).toBe(notice);
  });

  it('is in the plan event of --json, and no line of --quiet', async () => {
    const json = await scene.vision('--days 2 --json', { lake: 'json' });
    expect(json.events.find(({ event }) => event === 'plan')).toHaveProperty('terms', {
      summary: 'CC BY-NC-SA 4.0 and Binance dataset terms since 2026-08-26',
      notice: join(json.lake, NOTICE),
    });
    const again = await scene.vision('--days 4 --json', { lake: 'json' });
    expect(again.events.find(({ event }) => event === 'plan')).not.toHaveProperty('terms');
    const quiet = await scene.vision('--days 2 --quiet', { lake: 'quiet' });
    expect([quiet.code, quiet.stderr]).toEqual([0, '']);
    expect(existsSync(join(quiet.lake, NOTICE))).toBe(true);
  });

  it('is not written over the edits of a user', async () => {
    const { lake } = await scene.vision('--days 2', { lake: 'edited' });
    writeFileSync(join(lake, NOTICE), 'our own contract\n');
    await scene.vision('--days 4', { lake: 'edited' });
    expect(readFileSync(join(lake, NOTICE), 'utf8')).toBe('our own contract\n');
  });

  it('is written into a lake without one, also by a run that fetches nothing', async () => {
    const { lake } = await scene.vision('--days 2', { lake: 'earlier' });
    for (const days of ['--days 2', '--days 4']) {
      rmSync(join(lake, NOTICE));
      const { code, stderr } = await scene.vision(days, { lake: 'earlier' });
      expect([code, stderr, existsSync(join(lake, NOTICE))]).toEqual([0, expect.stringMatching(TERMS), true]);
    }
  });

  it('does not follow a link in its place, and leaves a folder in its place', async () => {
    const lake = join(scene.scratch, 'linked');
    mkdirSync(lake);
    const target = join(scene.scratch, 'target of the link');
    symlinkSync(target, join(lake, NOTICE));
    const linked = await scene.vision('--days 2', { lake: 'linked' });
    expect([linked.code, linked.stderr]).toEqual([0, expect.not.stringMatching(TERMS)]);
    expect([existsSync(target), lstatSync(join(lake, NOTICE)).isSymbolicLink()]).toEqual([false, true]);
    mkdirSync(join(scene.scratch, 'folder', NOTICE), { recursive: true });
    const folder = await scene.vision('--days 2', { lake: 'folder' });
    expect([folder.code, readdirSync(join(folder.lake, NOTICE))]).toEqual([0, []]);
  });

  it('is only a warning if it cannot be written', async () => {
    const env = preload(
      scene.scratch,
      `import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { writeFile } = fs.promises;
fs.promises.writeFile = async (path, data, ...more) => {
  if (String(data).startsWith('# ')) throw Object.assign(new Error('refused'), { code: 'EROFS' });
  return writeFile(path, data, ...more);
};
syncBuiltinESMExports();`,
    );
    const { code, lake, stderr } = await scene.vision('--days 2', { env });
    expect(stderr).toMatch(/^warning: the terms of the data cannot be written to .*_NOTICE\.md \(EROFS\)$/m);
    expect(stderr).not.toMatch(TERMS);
    expect([code, existsSync(join(lake, NOTICE)), filesBelow(lake, '.parquet')]).toEqual([
      0,
      false,
      [`${SERIES}/2026-11.parquet`],
    ]);
  });
});

describe('the footer of a Parquet file', () => {
  const scene = useScene({
    archive: [{ from: '2026-11-14', to: '2026-11-20' }],
    flags: '--symbols BTCUSDT --interval 1h',
  });

  it('has license and attribution of the archive, also after days were added', async () => {
    const { lake } = await scene.vision('--days 2', { lake: 'footers' });
    expect(await termsIn(join(lake, SERIES, '2026-11.parquet'))).toEqual(ARCHIVE);
    await scene.vision('--days 4', { lake: 'footers' });
    expect(await termsIn(join(lake, SERIES, '2026-11.parquet'))).toEqual(ARCHIVE);
  });

  it('claims the terms of the archive only for rows of the archive', async () => {
    const scratch = scratchFolder();
    const { run, lake, folder, close } = await joinedScene(scratch, { symbols: [BTC] });
    try {
      publishMetrics(folder, BTC, Date.UTC(2026, 10, 18));
      const interest = 'openInterestHist --symbols BTCUSDT --days 2'.split(' ');
      expect((await run(['metrics', '--dataset', ...interest])).code).toBe(0);
      const both = (days: string): string[] => `--dataset metrics --symbols BTCUSDT ${days}`.split(' ');
      expect((await run(['vision', ...both('--from 2026-11-18 --to 2026-11-18')])).code).toBe(0);
      expect((await run(['metrics', ...both('--from 2026-11-19 --to 2026-11-20')])).code).toBe(0);
    } finally {
      await close();
    }
    const termsOf = (dataset: string): Promise<Record<string, string>> => {
      const below = join(lake, 'binance/um', dataset);
      return termsIn(join(below, filesBelow(below, '.parquet')[0] ?? ''));
    };
    const rest = await termsOf('openInterestHist');
    expect(rest['license']).toMatch(/^not known \(rows of the REST API/);
    expect(rest['license']).not.toContain('CC BY');
    const mixed = await termsOf('metrics');
    expect(mixed['license']).toMatch(/^CC BY-NC-SA 4\.0 .*; not known \(rows of the REST API/);
    expect(mixed['attribution']).toBe(
      'Binance Vision, https://data.binance.vision; Binance, https://www.binance.com',
    );
  });
});
