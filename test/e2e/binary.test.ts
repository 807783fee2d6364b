/** Each verb through the real binary: it ends and prints as the same run within a process. */
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { FAST, argv, cryptodl, cryptodlProcess, cryptodlProcessOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { metricsScene } from '../helpers/metrics-scene.js';
import { preload } from '../helpers/preload.js';

const scratch = scratchFolder();
const lake = join(scratch, 'lake');
let archive: TestArchive;
let failed: CliResult;

const WHAT = ['--symbols', 'BTCUSDT', '--interval', '1h', '--days', '3', '--now', '2026-11-21T12:00:00Z'];
const vision = (out: string): string[] =>
  argv`vision ${WHAT} --archive-url ${archive.url} --out ${out} ${FAST}`;

beforeAll(async () => {
  const days = { from: '2026-11-18', to: '2026-11-20', cadence: 'daily' } as const;
  const what = { market: 'um', dataset: 'klines', interval: '1h', symbols: ['BTCUSDT'] } as const;
  makeArchive(join(scratch, 'archive'), { ...what, ...days });
  archive = await startArchive(join(scratch, 'archive'));
  await cryptodlProcessOk(vision(lake));
  archive.fault = (path, _, response) => {
    if (!path.endsWith('2026-11-19.zip')) return false;
    response.writeHead(503).end();
    return true;
  };
  failed = await cryptodlProcess([...vision(join(scratch, 'failed')), '--retries', '0', '--json']);
  archive.fault = undefined;
}, 120_000);
afterAll(() => archive.close());

describe('the real binary', () => {
  it('has downloaded three days, and retries the failed one', async () => {
    expect(failed.code).toBe(3);
    const again = await cryptodlProcess([
      'retry',
      String(failed.events.at(-1)?.['failures']),
      '--json',
      ...FAST,
    ]);
    expect([again.code, again.events.at(-1)]).toEqual([
      0,
      expect.objectContaining({ rows: 24, outcomes: expect.objectContaining({ ok: 1, failed: 0 }) }),
    ]);
  });

  it('has at least four threads for files and zips', async () => {
    const file = join(scratch, 'threads');
    const env = preload(
      scratch,
      `
      import { writeFileSync } from 'node:fs';
      process.on('exit', () => writeFileSync(${JSON.stringify(file)}, process.env.UV_THREADPOOL_SIZE));
    `,
    );
    await cryptodlProcessOk(['list', 'symbols', '--archive-url', archive.url], { env });
    expect(Number(readFileSync(file, 'utf8'))).toBeGreaterThanOrEqual(4);
  });

  it('downloads metrics', async () => {
    const scene = await metricsScene(scratch, { symbols: [{ symbol: 'BTCUSDT', host: 'fapi' }] });
    const asked = ['metrics', '--symbols', 'BTCUSDT', '--dataset', 'openInterestHist', '--days', '2'];
    // A command in front of the binary, even an empty one, makes it a process of its own.
    const result = await scene.run([...asked, '--json'], { wrap: [] });
    await scene.close();
    expect([result.code, result.events.at(-1)]).toEqual([0, expect.objectContaining({ rows: 576 })]);
  });

  it('runs a file of jobs', async () => {
    const file = join(scratch, 'jobs.yaml');
    const job = `{ verb: vision, symbols: BTCUSDT, interval: 1h, days: 3, out: ${join(scratch, randomUUID())} }`;
    writeFileSync(file, `jobs:\n  bars: ${job}\n`);
    const flags = ['--archive-url', archive.url, '--now', '2026-11-21T12:00:00Z', '--json', ...FAST];
    const { code, events } = await cryptodlProcess(['run', file, ...flags]);
    expect([code, events.filter(({ outcome }) => outcome === 'ok').length]).toEqual([0, 3]);
  });

  it.each<[string, () => string[]]>([
    ['verify', () => ['verify', '--out', lake, '--deep']],
    ['coverage', () => ['coverage', '--out', lake, '--json', '--now', '2026-11-21T12:00:00Z']],
    ['sql', () => ['sql', '--out', lake, '--csv', 'SELECT count(*) FROM um_klines']],
    ['man', () => ['man']],
    ['no such verb', () => ['wish']],
  ])('%s ends and prints as within a process', async (_, words) => {
    const env = { CRYPTODL_STATE_DIR: join(scratch, 'state') };
    const within = await cryptodl(words(), { env });
    const itself = await cryptodlProcess(words(), { env });
    expect([itself.code, itself.stdout]).toEqual([within.code, within.stdout]);
  });

  it('looks at the machine', async () => {
    const { code, stdout } = await cryptodlProcess(
      argv`doctor --archive-url ${archive.url} --out ${lake} --json`,
    );
    expect(code).not.toBeNull();
    expect(stdout).toContain('cryptodl 0.');
  });
});
