/** A large object while it arrives, and when a signal ends the run within its conversion. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
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
  let zipBytes = 0;

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
    ({ zipBytes } = facts);
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

  it('is in a file, not in memory, while it arrives', async () => {
    const out = join(scratch, randomUUID());
    let residentBytes = 0;
    let pid = 0;
    archive.fault = (path, request, response) => {
      if (!path.endsWith('.zip')) return false;
      const body = readFileSync(join(scratch, 'archive', KEY));
      response.writeHead(200, { 'content-length': body.length });
      // All but the last byte, and that when the rest has arrived.
      response.write(body.subarray(0, -1), () => {
        const wait = setInterval(() => {
          const spool = filesBelow(join(out, '.cryptodl')).find((name) => name.endsWith('.zip'));
          if (spool === undefined) return;
          const { length } = readFileSync(join(out, '.cryptodl', spool));
          if (length < zipBytes * 0.9) return;
          clearInterval(wait);
          const status = readFileSync(`/proc/${pid}/status`, 'utf8');
          residentBytes = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
          response.end(body.subarray(-1));
        }, 50);
        request.socket.once('close', () => {
          clearInterval(wait);
        });
      });
      return true;
    };
    const { code } = await download(out, ['--format', 'zip', '--idle-timeout', '20s'], {
      onSpawn: (child) => {
        pid = child.pid ?? 0;
      },
    });
    expect(code).toBe(0);
    expect(zipBytes).toBeGreaterThan(90_000_000);

    expect(residentBytes).toBeGreaterThan(0);
    // The process itself is below 120 MB.
    expect(residentBytes).toBeLessThan(zipBytes + 60_000_000);
  });

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
