/** A run of more than ten seconds tells where its time went. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const scratch = scratchFolder();
const SLOW_MS = 5200;
let archive: TestArchive;

beforeAll(async () => {
  makeArchive(join(scratch, 'archive'), {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: ['BTCUSDT'],
    from: '2026-11-20',
    to: '2026-11-20',
    cadence: 'daily',
  });
  archive = await startArchive(join(scratch, 'archive'));
  let pages = 0;
  archive.fault = (path, request, response) => {
    const isPage = path.includes('prefix=');
    if (isPage) pages += 1;
    if (isPage ? pages > 1 : !path.endsWith('.zip')) return false;
    setTimeout(() => {
      archive.serve(request, response);
    }, SLOW_MS);
    return true;
  };
});
afterAll(() => archive.close());

it('by phase, and of the objects by stage', async () => {
  const what = ['--interval', '1h', '--symbols', 'BTCUSDT', '--days', '1', '--now', '2026-11-21T12:00:00Z'];
  const where = ['--out', join(scratch, 'lake'), '--archive-url', archive.url];
  const { code, stderr } = await cryptodl(['vision', ...what, ...where, ...FAST]);
  expect(code).toBe(0);
  const [, plan, work, shares] =
    /^ {2}time {7}plan ([\d.]+)s, work ([\d.]+)s; of the objects' time (.*)$/m.exec(stderr) ?? [];
  expect(Number(plan)).toBeGreaterThanOrEqual(SLOW_MS / 1000);
  expect(Number(work)).toBeGreaterThanOrEqual(SLOW_MS / 1000);
  expect(shares).toMatch(/\d+ % transfer/);
  const [, whole] = /^1 ok in ([\d.]+)s$/m.exec(stderr) ?? [];
  expect(Math.abs(Number(whole) - Number(plan) - Number(work))).toBeLessThan(0.2);
});
