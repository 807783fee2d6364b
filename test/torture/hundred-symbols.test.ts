import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlProcess, cryptodlProcessOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, parquetDigests, parquetMetadata } from '../helpers/lake.js';
import { SIZE } from './size.js';

const SYMBOLS = Array.from({ length: 100 }, (_, index) => `S${String(index).padStart(3, '0')}USDT`);
const KILLS = SIZE.killsOfLarge;

describe('100 symbols × 31 days of um metrics', () => {
  const scratch = scratchFolder();
  let archive: TestArchive;
  beforeAll(async () => {
    const folder = join(scratch, 'archive');
    const spec = {
      market: 'um',
      dataset: 'metrics',
      symbols: SYMBOLS,
      from: '2026-10-01',
      to: '2026-10-31',
    } as const;
    makeArchive(folder, { ...spec, cadence: 'daily' });
    archive = await startArchive(folder);
  });
  afterAll(() => archive.close());

  const command = (out: string, flags: readonly string[] = []): string[] => {
    const what = 'vision --dataset metrics --symbols all --from 2026-10-01 --to 2026-10-31'.split(' ');
    return [...what, '--concurrency', '50', '--archive-url', archive.url, '--out', out, ...flags, ...FAST];
  };

  it('ends with every object in a named outcome, 100 partitions and exit 0; the second run asks for no object', async () => {
    const out = join(scratch, 'plain');
    const first = await cryptodlProcessOk(command(out, ['--json']));
    expect(first.events.at(-1)).toMatchObject({
      event: 'summary',
      outcomes: { ok: 3100, partial: 0, skipped: 0, absent: 0, failed: 0 },
      rows: 3100 * 288,
      files: 100,
      exitCode: 0,
    });
    expect(first.events.filter((event) => event['event'] === 'object')).toHaveLength(3100);
    expect(filesBelow(join(out, 'binance'), '.parquet')).toHaveLength(100);
    archive.requests.length = 0;
    const second = await cryptodlProcessOk(command(out, ['--json']));
    expect(second.events.at(-1)).toMatchObject({ outcomes: { ok: 0, skipped: 3100 }, exitCode: 0 });
    expect(archive.objectRequests()).toEqual([]);
  });

  describe.each([
    { name: 'Parquet', flags: [] },
    { name: 'Parquet as published', flags: ['--as-published'] },
    { name: 'CSV', flags: ['--format', 'csv'] },
  ])('$name', ({ name, flags }) => {
    it(`survives ${KILLS} SIGKILLs at random moments with exactly the undisturbed rows`, async () => {
      const undisturbed = join(scratch, `${name}-undisturbed`);
      await cryptodlProcessOk(command(undisturbed, flags));
      const out = join(scratch, `${name}-killed`);
      for (let kill = 0; kill < KILLS; kill += 1) {
        await killedRun(command(out, flags));
        await expectWholeFiles(out);
      }
      await cryptodlProcessOk(command(out, flags));
      expect(await digests(out)).toEqual(await digests(undisturbed));
      expect(filesBelow(join(out, '.cryptodl', 'tmp'))).toEqual([]);
    }, 240_000);
  });

  /**
   * Killed when a random number of requests have come, and a random moment later: few enough that work is left for
   * every kill (100 of them are the listing).
   */
  async function killedRun(args: readonly string[]): Promise<void> {
    archive.requests.length = 0;
    const after = Math.floor(Math.random() * 450);
    const result = await cryptodlProcess(args, {
      onSpawn: (child) => {
        archive.fault = () => {
          if (archive.requests.length >= after) setTimeout(() => child.kill('SIGKILL'), Math.random() * 60);
          return false;
        };
      },
    });
    archive.fault = undefined;
    expect(result.signal).toBe('SIGKILL');
  }
});

/** Every file under a final name can be read, whole. */
async function expectWholeFiles(out: string): Promise<void> {
  if (!existsSync(join(out, 'binance'))) return;
  for (const path of filesBelow(join(out, 'binance'))) {
    const file = join(out, 'binance', path);
    if (path.endsWith('.parquet')) expect(Number((await parquetMetadata(file)).num_rows) % 288).toBe(0);
    else if (path.endsWith('.csv')) expect(readFileSync(file, 'latin1').split('\n').length % 288).toBe(2);
    else expect(path).toMatch(/_manifest\.jsonl$/);
  }
}

async function digests(out: string): Promise<string[]> {
  const csv = filesBelow(join(out, 'binance'), '.csv');
  if (csv.length === 0) return parquetDigests(out);
  return csv.map(
    (path) =>
      `${path} ${createHash('sha256')
        .update(readFileSync(join(out, 'binance', path)))
        .digest('hex')}`,
  );
}
