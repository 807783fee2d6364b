/** A large object while it arrives, and when a signal ends the run within its conversion. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { aggTradeChunks, makeLargeZip } from '../../scripts/make-large-zip.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliOptions, CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { preload } from '../helpers/preload.js';

const scratch = scratchFolder();
let archive: TestArchive;

afterAll(() => archive.close());
afterEach(() => {
  archive.fault = undefined;
});

describe('a large object', () => {
  const MARCH = Date.UTC(2023, 2, 1);
  const HALF_MS = 43_200_000;
  const HALF_ROWS = 600_000;
  const KEY = 'data/spot/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-2023-03-01.zip';

  /** Its halves are swapped, so that its rows must be sorted. */
  function* swapped(): Generator<Buffer> {
    yield* aggTradeChunks({ rows: HALF_ROWS, fromMs: MARCH + HALF_MS, spanMs: HALF_MS });
    yield* aggTradeChunks({ rows: HALF_ROWS, fromMs: MARCH, spanMs: HALF_MS });
  }

  beforeAll(async () => {
    const path = join(scratch, 'archive', KEY);
    mkdirSync(join(path, '..'), { recursive: true });
    const name = 'BTCUSDT-aggTrades-2023-03-01';
    // Stored, so that the zip is as large as its text.
    const facts = await makeLargeZip(path, { name: `${name}.csv`, chunks: swapped(), level: 0 });
    writeFileSync(`${path}.CHECKSUM`, `${facts.sha256}  ${name}.zip\n`);
    archive = await startArchive(join(scratch, 'archive'));
  });

  function download(
    out: string,
    flags: readonly string[] = [],
    options: CliOptions = {},
  ): Promise<CliResult> {
    const what = ['--market', 'spot', '--dataset', 'aggTrades', '--symbols', 'BTCUSDT', '--cadence', 'daily'];
    const when = ['--from', '2023-03-01', '--to', '2023-03-01', '--now', '2023-06-01T00:00:00Z'];
    const where = ['--out', out, '--archive-url', archive.url];
    return cryptodl(['vision', ...what, ...when, ...where, ...FAST, ...flags], options);
  }

  const filesBelow = (folder: string): string[] =>
    existsSync(folder) ? (readdirSync(folder, { recursive: true }) as string[]) : [];

  /** Ctrl-C as soon as rows are converted. */
  async function interruptConversion(out: string, env: Record<string, string> = {}): Promise<CliResult> {
    return download(out, [], {
      env,
      onSpawn: (child) => {
        void (async () => {
          while (child.exitCode === null) {
            // The notice is written in the same place, before the first request.
            const hasBegun = existsSync(join(out, '_NOTICE.md'));
            if (hasBegun && filesBelow(join(out, '.cryptodl')).some((name) => name.includes('.partial'))) {
              child.kill('SIGINT');
              return;
            }
            await sleep(5);
          }
        })();
      },
    });
  }
  /** Changes the time of the timers of five seconds and more, such as the ten seconds of a conversion after a signal. */
  const withLongTimers = (times: number): Record<string, string> =>
    preload(
      scratch,
      `
      const { setTimeout: usual } = globalThis;
      globalThis.setTimeout = (callback, ms, ...rest) => usual(callback, ms >= 5000 ? ms * ${times} : ms, ...rest);
    `,
    );
  const partition = (out: string): string =>
    join(out, 'binance/spot/aggTrades/symbol=BTCUSDT/2023-03-01.parquet');

  it('is written to its end after Ctrl-C when its conversion takes less than ten seconds more', async () => {
    const out = join(scratch, randomUUID());
    // Ten seconds are a hundred, for a slow machine.
    const { code } = await interruptConversion(out, withLongTimers(10));
    expect([code, existsSync(partition(out))]).toEqual([130, true]);
  });

  it('is left out after Ctrl-C when its conversion takes longer', async () => {
    const out = join(scratch, randomUUID());
    // Ten seconds are ten milliseconds.
    const { code } = await interruptConversion(out, withLongTimers(0.001));
    expect([code, existsSync(partition(out))]).toEqual([130, false]);
    expect(filesBelow(out).filter((name) => /partial|\.csv$/.test(name))).toEqual([]);
    expect((await download(out)).code).toBe(0);
    expect(existsSync(partition(out))).toBe(true);
  });
});
