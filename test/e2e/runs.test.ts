/** `cryptodl runs`: the list of runs, from real and from prepared records. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lakePaths } from '../../src/lake/layout.js';
import { readRuns } from '../../src/run/monitor/run-files.js';
import type { RunRecord } from '../../src/run/monitor/run-record.js';
import { cryptodl } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';

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
    const { elapsedMs = 10_000, exitCode = 0, alerts = [] } = figures;
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
  it('has a run with its figures, and names the command of the verdict', async () => {
    const { lake } = await scene.vision();
    const { code, stdout, stderr } = await runs(lake);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^started \(UTC\) {5}run +took +new +held +failed +retries +p95 +exit$/),
      expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d {2}vision +[\d.]+m?s +3 +0 +0 +0 % +\d+ms +0$/),
      '',
      `whether the lake is complete: cryptodl check --out ${lake}`,
      '',
    ]);
  });

  it('has the alerts of the newest run', async () => {
    const alert = { id: 'retry-rate', text: 'retry rate 12 %', advice: 'cryptodl doctor' };
    const { stdout } = await runs(await lakeWith([{ start: startOf(0), alerts: [alert] }]));
    expect(stdout).toContain('\nalert of the newest run: retry rate 12 %: cryptodl doctor\n');
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

  it('is an object per run with --json; a run without a request has no rates', async () => {
    const lake = await lakeWith([
      { start: startOf(0), job: 'trades', requests: 0, retries: 0, ok: 0, p95: 0 },
      { start: startOf(1), job: 'bars', p95: 200, retries: 30, refusals: 2, ok: 20 },
    ]);
    const { events } = await runs(lake, '--json');
    expect(events).toEqual([
      expect.objectContaining({ event: 'run', job: 'trades', retryRate: null, p95Ms: null }),
      expect.objectContaining({
        id: expect.stringMatching(/^20261120T060100000Z-/),
        startedAt: startOf(1),
        verb: 'vision',
        outcomes: expect.objectContaining({ ok: 20, failed: 0 }),
        retryRate: 0.03,
        p95Ms: 200,
        limiterTriggers: 2,
        alerts: [],
        exitCode: 0,
      }),
    ]);
    expect((await runs(lake)).stdout).toMatch(/vision trades .* -  +-  +0\n/);
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
