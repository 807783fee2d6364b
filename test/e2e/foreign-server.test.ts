/** A lake in a bucket of a server that does not come from this repository. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { all } from '../helpers/bucket-contract.js';
import { bucketOf } from '../helpers/bucket.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { s3rver } from '../helpers/s3rver.js';
import type { ForeignServer } from '../helpers/s3rver.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
});
let server: ForeignServer;
beforeAll(async () => {
  server = await s3rver(join(scene.newFolder(), 's3rver'));
});
afterAll(() => server.close());

const read = (...words: string[]): Promise<CliResult> =>
  cryptodl([...words, '--out', 's3://lake/data'], { env: server.environment });

function vision(...flags: string[]): Promise<CliResult> {
  const what = ['vision', '--interval', '1h', '--symbols', 'BTCUSDT,ETHUSDT', ...flags];
  return read(...what, '--archive-url', scene.archive.url, '--now', scene.now, ...FAST);
}

it('has the rows of each run once, and is sound', async () => {
  for (const flags of [
    ['--days', '2'],
    ['--days', '4'],
    ['--days', '4', '--force', '--partition', 'day'],
  ]) {
    expect((await vision(...flags)).code).toBe(0);
    expect(await read('verify', '--deep')).toMatchObject({ code: 0, stdout: '' });
  }
  const sql =
    'SELECT symbol, count(*) AS bars, count(DISTINCT open_time) AS hours FROM um_klines GROUP BY 1 ORDER BY 1';
  expect((await read('sql', sql, '--csv')).stdout).toBe('symbol,bars,hours\nBTCUSDT,96,96\nETHUSDT,96,96\n');
  expect((await read('check', '--now', scene.now)).code).toBe(0);
});

it.each([
  ['key', 's3://lake/data', { AWS_ACCESS_KEY_ID: 'wrong-value' }, 'InvalidAccessKeyId'],
  ['bucket', 's3://nowhere/data', {}, 'NoSuchBucket'],
])('refuses a wrong %s with one line and a next step', async (_, out, changed, reason) => {
  const env = { ...server.environment, ...changed };
  const { code, stderr } = await cryptodl(['coverage', '--out', out], { env });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    new RegExp(`^cryptodl: ${out}: 127\\.0\\.0\\.1:\\d+ answered .*${reason}\\n  .+\\n$`),
  );
  expect(stderr).not.toContain('wrong-value');
});

it('stores a large file in parts, and keys with any character', async () => {
  const { bucket } = bucketOf({ environment: server.environment, partBytes: 5 * 1024 * 1024 });
  const large = Buffer.alloc(12 * 1024 * 1024, 'abcdefg');
  const path = join(scene.newFolder(), 'file');
  writeFileSync(path, large);
  const key = "symbol=币安人生 a+b%20c&d'(e)*.parquet";
  await bucket.put(key, path);
  const sha256 = createHash('sha256').update(large).digest('hex');
  expect(await bucket.head(key)).toMatchObject({ bytes: large.length, sha256 });
  expect((await all(bucket.list('symbol=币'))).map((object) => object.key)).toEqual([key]);
  expect((await bucket.get(key, `${path}-received`))?.bytes).toBe(large.length);
  expect(readFileSync(`${path}-received`).equals(large)).toBe(true);
  await bucket.remove(key);
  expect(await bucket.head(key)).toBeUndefined();
});
