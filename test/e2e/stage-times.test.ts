/** The time that a run tells: from the start of the command, by phase and by stage. Servers make the lower bounds. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { systemClock } from '../../src/model/clock.js';
import { acquireLock } from '../../src/lake/lock.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliOptions, CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { metricsScene } from '../helpers/metrics-scene.js';

interface Times {
  readonly planMs: number;
  readonly pausedMs: number;
  readonly workMs: number;
  readonly stagesMs: Readonly<Record<'wait' | 'transfer' | 'check' | 'convert' | 'commit', number>>;
}

const scratch = scratchFolder();
const OBJECTS = 4;
let archive: TestArchive;

beforeAll(async () => {
  makeArchive(join(scratch, 'archive'), {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: ['BTCUSDT'],
    from: '2026-11-17',
    to: '2026-11-20',
    cadence: 'daily',
  });
  archive = await startArchive(join(scratch, 'archive'));
});
afterAll(() => archive.close());
afterEach(() => {
  archive.fault = undefined;
});

function delay(isSlow: (path: string) => boolean, delayMs: number): void {
  archive.fault = (path, request, response) => {
    if (!isSlow(path)) return false;
    setTimeout(() => {
      archive.serve(request, response);
    }, delayMs);
    return true;
  };
}

const isListing = (path: string): boolean => path.includes('prefix=');
const isZip = (path: string): boolean => path.endsWith('.zip');

function run(name: string, flags: readonly string[] = [], options: CliOptions = {}): Promise<CliResult> {
  const what = ['--interval', '1h', '--symbols', 'BTCUSDT', '--days', String(OBJECTS)];
  const where = ['--out', join(scratch, name), '--archive-url', archive.url];
  return cryptodl(['vision', ...what, ...where, '--json', ...FAST, ...flags], {
    ...options,
    env: { CRYPTODL_NOW: '2026-11-21T12:00:00Z', ...options.env },
  });
}

function timesOf({ events }: CliResult): Times & { elapsedMs: number } {
  const { elapsedMs, times } = events.at(-1) as unknown as { elapsedMs: number; times: Times };
  return { elapsedMs, ...times };
}

/** What the whole of a run comes to; each figure is rounded by itself. */
function expectSum({ elapsedMs, planMs, pausedMs, workMs }: ReturnType<typeof timesOf>): void {
  expect(Math.abs(elapsedMs - planMs - pausedMs - workMs)).toBeLessThanOrEqual(3);
}

/** A process that takes so long until its first line of code. */
const SLOW_START = {
  NODE_OPTIONS: '--import data:text/javascript,await(new(Promise)(r=>setTimeout(r,1200)))',
};

describe('the time of a run', () => {
  it('includes the plan: a listing that takes its time', async () => {
    delay(isListing, 1500);
    const result = await run('slow listing');
    expect(result.code).toBe(0);
    const times = timesOf(result);
    expect(times.elapsedMs).toBeGreaterThanOrEqual(1500);
    expect(times.planMs).toBeGreaterThanOrEqual(1500);
    expect(times.pausedMs).toBe(0);
    expectSum(times);
    // People read the same, and no line of stages after a few seconds.
    const [, seconds] = /^4 ok in ([\d.]+)s$/m.exec(result.stderr) ?? [];
    expect(Math.abs(Number(seconds) * 1000 - times.elapsedMs)).toBeLessThanOrEqual(51);
    if (times.elapsedMs < 10_000) expect(result.stderr).not.toMatch(/^ {2}time /m);
  });

  it('begins with the process', async () => {
    const result = await run('slow start', [], { env: SLOW_START });
    expect(result.code).toBe(0);
    expect(timesOf(result).planMs).toBeGreaterThanOrEqual(1200);
  });

  it('begins with the process also of several jobs, but not for each of them', async () => {
    const file = join(scratch, 'jobs.yaml');
    writeFileSync(
      file,
      `defaults: { dataset: klines, interval: 1h, days: 1, symbols: BTCUSDT, archive-url: '${archive.url}', now: '2026-11-21T12:00:00Z' }
jobs: { one: { verb: vision, out: '${join(scratch, 'one')}' }, two: { verb: vision, out: '${join(scratch, 'two')}' } }`,
    );
    const { code, events } = await cryptodl(['run', file, '--json'], { env: SLOW_START });
    const ended = events.filter(({ event }) => event === 'summary').map(({ elapsedMs }) => Number(elapsedMs));
    expect([code, ended.length]).toEqual([0, 3]);
    const [one = 0, two = 0, whole = 0] = ended;
    expect(whole).toBeGreaterThanOrEqual(1200 + one + two);
  });

  it('tells pauses of the whole run apart: before another round', async () => {
    const seen = new Set<string>();
    archive.fault = (path, _, response) => {
      if (!isZip(path) || seen.has(path)) return false;
      seen.add(path);
      response.writeHead(503).end();
      return true;
    };
    const result = await run('rounds', [
      '--retries',
      '0',
      '--retry-delay',
      '100ms',
      '--breaker-failures',
      '99',
    ]);
    expect(result.code).toBe(0);
    const times = timesOf(result);
    expect(times.pausedMs).toBeGreaterThanOrEqual(1000);
    expectSum(times);
  });

  it('tells the wait for the publication apart', async () => {
    const result = await run('publication', ['--wait-for-publication', '1500ms'], {
      env: { CRYPTODL_NOW: '2026-11-22T12:00:00Z' },
    });
    const times = timesOf(result);
    const { delayMs } = result.events.find(({ event }) => event === 'not-published') ?? {};
    expect(Number(delayMs)).toBeGreaterThan(0);
    expect(times.pausedMs).toBeGreaterThanOrEqual(Number(delayMs) - 1);
    expectSum(times);
  });

  it('tells the time of --jitter apart', async () => {
    const result = await run('jitter', ['--jitter', '900ms']);
    const times = timesOf(result);
    const [, delayMs] = /^beginning in (\d+)ms/m.exec(result.stderr) ?? [];
    expect(times.pausedMs).toBeGreaterThanOrEqual(Number(delayMs) - 1);
    expectSum(times);
  });

  it('tells the wait for another run apart', async () => {
    const out = join(scratch, 'locked');
    mkdirSync(join(out, '.cryptodl'), { recursive: true });
    const lock = await acquireLock(join(out, '.cryptodl'), {
      command: 'test',
      clock: systemClock,
      onLost: () => undefined,
    });
    const released = new Promise((resolve) => setTimeout(resolve, 2500)).then(() => lock.release());
    const result = await run('locked', ['--wait-lock', '30s']);
    await released;
    expect(result.stderr).toContain('--wait-lock');
    const times = timesOf(result);
    // It looks every second.
    expect(times.pausedMs).toBeGreaterThanOrEqual(1000);
    expectSum(times);
  });
});

describe('the stages of objects in the summary', () => {
  it('have transfer, check, convert and commit', async () => {
    delay(isZip, 300);
    const result = await run('stages');
    expect(result.code).toBe(0);
    const { stagesMs } = timesOf(result);
    expect(stagesMs.transfer).toBeGreaterThanOrEqual(OBJECTS * 300);
    for (const stage of ['check', 'convert', 'commit'] as const) expect(stagesMs[stage]).toBeGreaterThan(0);
  });

  it('count what a retry waits as waiting', async () => {
    const seen = new Set<string>();
    archive.fault = (path, _, response) => {
      if (!isZip(path) || seen.has(path)) return false;
      seen.add(path);
      response.writeHead(503, { 'retry-after': '1' }).end();
      return true;
    };
    const result = await run('waits', ['--breaker-failures', '99']);
    expect(result.code).toBe(0);
    const { stagesMs, pausedMs } = timesOf(result);
    expect(pausedMs).toBe(0);
    expect(stagesMs.wait).toBeGreaterThanOrEqual(OBJECTS * 1000);
  });

  it('have the check of a zip that no digest vouches for', async () => {
    // Four zips of 24 rows are unpacked in less than half a millisecond.
    const archiveOfMinutes = {
      market: 'um',
      dataset: 'klines',
      interval: '1m',
      symbols: ['BTCUSDT'],
    } as const;
    const days = { from: '2026-11-17', to: '2026-11-20', cadence: 'daily' } as const;
    makeArchive(join(scratch, 'archive'), { ...archiveOfMinutes, ...days });
    const result = await run('unpacked zips', ['--interval', '1m', '--format', 'zip', '--verify', 'none']);
    expect(result.code).toBe(0);
    const { stagesMs } = timesOf(result);
    expect(stagesMs.check).toBeGreaterThan(0);
  });

  it('count the pages of REST, and have the check of files that are read back', async () => {
    const symbols = [{ symbol: 'BTCUSDT', host: 'fapi' as const }];
    const scene = await metricsScene(scratch, { symbols });
    const result = await scene.run(['metrics', '--symbols', 'BTCUSDT', '--days', '2', '--json']);
    await scene.close();
    expect(result.code).toBe(0);
    const { stagesMs } = timesOf(result);
    for (const stage of ['transfer', 'check', 'convert', 'commit'] as const)
      expect(stagesMs[stage]).toBeGreaterThan(0);
  });

  it('have no conversion where zips are kept', async () => {
    const result = await run('zips', ['--format', 'zip']);
    expect(result.code).toBe(0);
    const { stagesMs } = timesOf(result);
    expect(stagesMs).toMatchObject({ check: 0, convert: 0 });
    expect(stagesMs.commit).toBeGreaterThan(0);
  });
});
