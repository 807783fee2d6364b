/** `cryptodl runs`: the list of runs and its trends, from real and from prepared records. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lakePaths } from '../../src/lake/layout.js';
import { readRuns } from '../../src/monitor/run-record.js';
import type { RunRecord } from '../../src/monitor/run-record.js';
import { cryptodl } from '../helpers/cli.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT --days 3',
});

const runs = (lake: string, ...flags: string[]) => cryptodl(['runs', '--out', lake, ...flags]);
const folderOf = (lake: string): string => join(lake, '.cryptodl/runs');

interface Figures {
  readonly start: string;
  readonly job?: string;
  readonly symbols?: string;
  readonly ok?: number;
  readonly failed?: number;
  readonly requests?: number;
  readonly retries?: number;
  readonly p95?: number;
  readonly refusals?: number;
  readonly elapsedMs?: number;
  readonly workMs?: number;
  readonly exitCode?: number;
  readonly alerts?: RunRecord['summary']['alerts'];
}

/** A lake with these records, made from the record of a real run. */
async function lakeWith(records: readonly Figures[]): Promise<string> {
  const { lake: real } = await scene.vision();
  const [run] = (await readRuns(lakePaths(real))).runs;
  if (run === undefined) throw new Error('the run left no record');
  const lake = scene.newFolder();
  mkdirSync(folderOf(lake), { recursive: true });
  for (const [at, figures] of records.entries()) {
    const { start, job, ok = 10, failed = 0, requests = 1000, retries = 3, p95 = 50, refusals = 0 } = figures;
    const { elapsedMs = 10_000, workMs = 5000, exitCode = 0, alerts = [] } = figures;
    const { network } = run.summary;
    const options =
      figures.symbols === undefined ? run.options : { ...run.options, symbols: [figures.symbols] };
    const id = `${start.replaceAll(/[-:.]/g, '')}-${String(at).padStart(8, '0')}`;
    const summary = {
      ...run.summary,
      outcomes: { ok, partial: 0, skipped: 2, absent: 0, failed },
      requests,
      elapsedMs,
      exitCode,
      alerts,
      times: { ...run.summary.times, workMs },
      network: {
        ...network,
        retries: { ...network.retries, total: retries },
        attemptMs: { ...network.attemptMs, p95 },
        limiter: { ...network.limiter, refusals },
      },
    };
    const record = { ...run, id, job, options, startedAt: start, endedAt: start, summary };
    writeFileSync(join(folderOf(lake), `${id}.json`), JSON.stringify(record));
  }
  return lake;
}

const startOf = (minute: number): string => new Date(Date.UTC(2026, 10, 20, 6, minute)).toISOString();

describe('the list', () => {
  it('has a healthy run with its figures, and no trend of a single run', async () => {
    const { lake } = await scene.vision();
    const { code, stdout, stderr } = await runs(lake);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.split('\n')).toEqual([
      'healthy: exit code 0 and no alert in the newest run',
      '',
      expect.stringMatching(/^started \(UTC\) {5}run +took +new +held +failed +retries +p95 +exit$/),
      expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d {2}vision +[\d.]+m?s +3 +0 +0 +0 % +\d+ms +0$/),
      '',
      'newest run of vision: no earlier run to compare with',
      '',
    ]);
  });

  it('says that the newest run is not healthy, with its alerts', async () => {
    const lake = 'unhealthy';
    scene.refuse(isZip, 403);
    const { lake: root } = await scene.vision([], { lake });
    await scene.vision([], { lake });
    const { stdout } = await runs(root);
    const [first, second] = stdout.split('\n');
    expect(first).toMatch(/^not healthy: vision of 2\S+ \S+ ended with exit code 4, 3 failed$/);
    expect(second).toMatch(
      /^ {2}alert {2}failed objects in two runs in a row: 3 now, 3 before: cryptodl doctor/,
    );
    scene.archive.fault = undefined;
    await scene.vision([], { lake });
    expect((await runs(root)).stdout).toMatch(/^healthy: /);
  });

  it('judges each job by its newest run', async () => {
    const lake = await lakeWith([
      { start: startOf(0), job: 'bars', exitCode: 3, failed: 1200 },
      { start: startOf(1), job: 'trades', exitCode: 1 },
      { start: startOf(2), job: 'trades' },
    ]);
    const { stdout } = await runs(lake);
    expect(stdout.split('\n\n')[0]).toBe(
      'not healthy: vision bars of 2026-11-20 06:00 ended with exit code 3, 1,200 failed',
    );
    expect((await runs(lake, '--last', '2')).stdout).toMatch(/^not healthy: vision bars /);
    expect((await runs(lake, '--json', '--last', '2')).events.at(-1)?.['healthy']).toBe(false);
  });

  it('judges each command of the last seven days by its newest run', async () => {
    const day = (number: number): string => new Date(Date.UTC(2026, 10, number, 6)).toISOString();
    const before = { start: day(12), symbols: 'XRPUSDT', exitCode: 3 };
    const bad = { start: day(13), symbols: 'LTCUSDT', exitCode: 3, failed: 2 };
    const good = { start: day(20), symbols: 'ETHUSDT' };
    const { stdout } = await runs(await lakeWith([before, bad, good]));
    expect(stdout.split('\n')[0]).toBe(
      'not healthy: vision of 2026-11-13 06:00 ended with exit code 3, 2 failed',
    );
    const mended = await lakeWith([before, bad, { start: day(19), symbols: 'LTCUSDT' }, good]);
    expect((await runs(mended)).stdout.split('\n')[0]).toBe(
      'healthy: exit code 0 and no alert in the newest run of each of 2 commands (last 7 days)',
    );
    expect((await runs(mended, '--json')).events.at(-1)?.['healthy']).toBe(true);
  });

  it('says that a run with an alert is not healthy, also with exit code 0', async () => {
    const alert = { id: 'retry-rate', text: 'retry rate 12 %', advice: 'cryptodl doctor' };
    const { stdout } = await runs(await lakeWith([{ start: startOf(0), alerts: [alert] }]));
    expect(stdout.split('\n').slice(0, 2)).toEqual([
      'not healthy: vision of 2026-11-20 06:00 ended with exit code 0',
      '  alert  retry rate 12 %: cryptodl doctor',
    ]);
  });

  it('has the newest 20 runs or as many as --last, the newest first, with whole names in a pipe', async () => {
    const job = 'a-job-with-a-very-long-name-that-does-not-fit';
    const many = Array.from({ length: 25 }, (_, at) => ({
      start: startOf(at),
      job,
      ok: 1_234_567,
      failed: 123_456,
      retries: 123,
      elapsedMs: 5_999_000,
      p95: 1234,
      exitCode: 3,
    }));
    const lake = await lakeWith(many);
    const rowsOf = (text: string): string[] => text.split('\n').filter((line) => line.startsWith('2026-'));
    const { stdout } = await runs(lake);
    expect(rowsOf(stdout)).toHaveLength(20);
    expect(rowsOf(stdout)[0]).toContain(`2026-11-20 06:24  vision ${job}  `);
    expect(rowsOf((await runs(lake, '--last', '3')).stdout).map((line) => line.slice(0, 16))).toEqual(
      ['24', '23', '22'].map((minute) => `2026-11-20 06:${minute}`),
    );
  });
});

describe('the trends', () => {
  const FIGURES = { p95: 100, retries: 4, requests: 1000, refusals: 1, elapsedMs: 3_600_000, workMs: 10_000 };
  const before = Array.from({ length: 31 }, (_, at) => ({
    start: startOf(at),
    job: 'bars',
    ...FIGURES,
    // Rates are those of all runs together: 31 of 20,000 requests in the run before the last thirty does not count.
    ...(at === 0 ? { retries: 31_000, requests: 31_000 } : {}),
    failed: at % 2,
  }));
  const records = [
    ...before,
    { start: startOf(31), job: 'trades', retries: 900, p95: 9000 },
    { start: startOf(32), job: 'bars', ...FIGURES, p95: 200, retries: 30, refusals: 2, workMs: 5000, ok: 20 },
  ];

  it('compare the newest run with the mean of the last 30 of its job', async () => {
    const { stdout } = await runs(await lakeWith(records));
    expect(stdout.trimEnd().split('\n').slice(-7)).toEqual([
      'newest run of vision bars, and the 30 runs before it',
      '  retry rate                 3 %, last 30 runs 0.4 %',
      '  failed objects             0, last 30 runs 0.5',
      '  latency (p95)              200ms, last 30 runs 100ms',
      '  objects per second         4, last 30 runs 1',
      '  limiter triggers per hour  2, last 30 runs 1',
      '  duration                   60m, last 30 runs 60m',
    ]);
  });

  it('are the last object of --json, after an object per run', async () => {
    const { events, stdout } = await runs(await lakeWith(records), '--json', '--last', '2');
    expect(stdout.trim().split('\n')).toHaveLength(3);
    expect(events.map(({ event, job }) => [event, job])).toEqual([
      ['run', 'trades'],
      ['run', 'bars'],
      ['trend', 'bars'],
    ]);
    expect(events[1]).toMatchObject({
      id: expect.stringMatching(/^20261120T063200000Z-/),
      startedAt: startOf(32),
      verb: 'vision',
      outcomes: { ok: 20, failed: 0 },
      retryRate: 0.03,
      p95Ms: 200,
      limiterTriggers: 2,
      alerts: [],
      exitCode: 0,
    });
    expect(events[2]).toMatchObject({
      runs: 30,
      healthy: true,
      figures: { retryRate: { newest: 0.03, before: 0.004 }, failedObjects: { newest: 0, before: 0.5 } },
    });
  });

  it('have no rate for runs without a request or a new object', async () => {
    const idle = { requests: 0, retries: 0, ok: 0, p95: 0 };
    const lake = await lakeWith([
      { start: startOf(0), ...idle },
      { start: startOf(1), ...idle },
    ]);
    const { stdout } = await runs(lake);
    expect(stdout).toContain('retry rate                 -, last 1 run -\n');
    expect(stdout).toContain('objects per second         -, last 1 run -\n');
    const { events } = await runs(lake, '--json');
    expect(events.at(-1)).toMatchObject({ figures: { p95Ms: { newest: null, before: null } } });
  });
});

describe('a lake', () => {
  it('without a record gives one line, and the next step', async () => {
    const lake = scene.newFolder();
    const { code, stdout, stderr } = await runs(lake);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('has no record of a run\n');
    expect(stderr).toContain('cryptodl vision -s BTCUSDT -d 7');
    expect(readdirSync(lake)).toEqual([]);
    const file = join(lake, 'file');
    writeFileSync(file, '');
    expect((await runs(file)).stderr).toContain('is a file, not a folder');
  });

  it('with unreadable records names them and lists the others', async () => {
    const lake = await lakeWith([{ start: startOf(0) }, { start: startOf(1) }]);
    const [name = ''] = readdirSync(folderOf(lake));
    const text = readFileSync(join(folderOf(lake), name), 'utf8');
    writeFileSync(join(folderOf(lake), name), text.slice(0, 50));
    const { code, stdout, stderr } = await runs(lake);
    expect([code, stderr]).toEqual([
      0,
      `warning: no records of runs, left out: ${join(folderOf(lake), name)}\n`,
    ]);
    expect(stdout.split('\n').filter((line) => line.startsWith('2026'))).toHaveLength(1);
  });

  it('is found below the home folder, and is not changed', async () => {
    const lake = await lakeWith([{ start: '2020-01-01T00:00:00.000Z' }]);
    const env = { HOME: dirname(lake) };
    const { stdout } = await cryptodl(['runs', '--out', `~/${basename(lake)}`], { env });
    expect(stdout).toContain('2020-01-01 00:00  vision');
    const before = readdirSync(folderOf(lake));
    await runs(lake);
    expect(readdirSync(folderOf(lake))).toEqual(before);
  });
});
