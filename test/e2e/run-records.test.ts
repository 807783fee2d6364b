/** The record that each run leaves in `.cryptodl/runs`. */
import {
  existsSync,
  mkdirSync,
  renameSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lakePaths } from '../../src/lake/layout.js';
import { readHistory, selectionOf } from '../../src/run/monitor/run-history.js';
import { runId } from '../../src/run/monitor/run-record.js';
import { readRuns } from '../../src/run/monitor/run-files.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';
import { TOOL_VERSION } from '../../src/model/version.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT,ETHUSDT --days 3 --json',
});

const recordsOf = (lake: string): string => join(lake, '.cryptodl/runs');
const newest = async (lake: string) => (await readRuns(lakePaths(lake))).runs.at(-1);

describe('each run leaves a record', () => {
  it('with its options, its summary and its timeline', async () => {
    scene.answerFirst(isZip, (_request, response) => response.writeHead(503).end(), 1);
    const { lake, code, summary } = await scene.vision('--ping http://127.0.0.1:1/secret');
    expect(code).toBe(0);
    const [name = ''] = readdirSync(recordsOf(lake));
    const text = readFileSync(join(recordsOf(lake), name), 'utf8');
    expect(text).not.toContain('secret');
    const written = JSON.parse(text) as Record<string, unknown>;
    const { event: _, ...figures } = summary;
    const { elapsedMs } = written['summary'] as { elapsedMs: number };
    expect(written).toEqual({
      v: 1,
      id: name.replace('.json', ''),
      verb: 'vision',
      tool: TOOL_VERSION,
      at: expect.any(String),
      options: expect.objectContaining({ days: ['3'], out: [lake] }),
      startedAt: new Date(Date.parse(String(written['endedAt'])) - elapsedMs).toISOString(),
      endedAt: expect.any(String),
      node: process.versions.node,
      platform: `${process.platform} ${process.arch}`,
      // The loop goes on between the two readings.
      summary: {
        ...figures,
        network: expect.objectContaining({ requests: scene.archive.requests.length }),
        elapsedMs: expect.any(Number),
        times: expect.any(Object),
        peakMemoryBytes: expect.any(Number),
      },
      timeline: { boundsS: expect.any(Array), points: expect.any(Array) },
    });
    // The name begins with the start of the run.
    expect(name.split('-')[0]).toBe(String(written['startedAt']).replaceAll(/[-:.]/g, ''));
    const { points } = written['timeline'] as { points: { objects: number; retries: number }[] };
    const sum = (of: 'objects' | 'retries'): number => points.reduce((total, point) => total + point[of], 0);
    expect([sum('objects'), sum('retries')]).toEqual([6, 1]);
    expect(await newest(lake)).toMatchObject({
      summary: {
        outcomes: { ok: 6 },
        exitCode: 0,
        datasets: [{ market: 'um', dataset: 'klines', newest: '2026-11-20', rows: 144 }],
        network: { retries: { reasons: { 'http-server-error': 1 } } },
      },
    });
  });

  it('also if it has failures or nothing to do', async () => {
    const { lake } = await scene.vision();
    scene.refuse(isZip, 403);
    await scene.vision('--days 5', { lake: lake.slice(scene.scratch.length + 1) });
    scene.archive.fault = undefined;
    const { runs } = await readRuns(lakePaths(lake));
    expect(runs.map(({ summary: { outcomes, exitCode } }) => [outcomes, exitCode])).toEqual([
      [{ ok: 6, partial: 0, skipped: 0, absent: 0, failed: 0 }, 0],
      [{ ok: 0, partial: 0, skipped: 6, absent: 0, failed: 4 }, expect.any(Number)],
    ]);
    expect(runs[1]?.summary.exitCode).not.toBe(0);
  });

  it('with the exit code of the signal that ended it', async () => {
    scene.refuse(isZip, 503);
    const { lake, code } = await scene.vision('--retry-delay 1h --retries 50', {
      onSpawn: (child) => {
        let isSent = false;
        child.stdout?.on('data', (chunk: Buffer) => {
          // A second signal would end the program at once.
          if (isSent || !chunk.includes('"event":"retry"')) return;
          isSent = true;
          child.kill('SIGTERM');
        });
      },
    });
    expect([code, (await newest(lake))?.summary.exitCode]).toEqual([143, 143]);
  });

  it('but none for a plan', async () => {
    const { lake } = await scene.vision('--dry-run');
    expect(existsSync(recordsOf(lake))).toBe(false);
  });

  it('and keeps the newest thousand, and files of other names', async () => {
    const lake = 'many-records';
    const folder = recordsOf(join(scene.scratch, lake));
    mkdirSync(folder, { recursive: true });
    const nameOf = (ms: number, number: number): string =>
      `${new Date(ms).toISOString().replaceAll(/[-:.]/g, '')}-${String(number).padStart(8, '0')}.json`;
    const now = Date.now();
    const old = nameOf(now - 401 * 86_400_000, 0);
    const names = Array.from({ length: 1001 }, (_, at) => nameOf(now - (2000 - at) * 60_000, at));
    for (const name of [old, ...names, 'notes.json', '20200101T000000000Z-mine.json'])
      writeFileSync(join(folder, name), '{}');
    // No record, so it stays, and the others are removed nevertheless.
    const other = '20200102T000000000Z-0a1b2c3d.json';
    mkdirSync(join(folder, other));
    const { stderr } = await scene.vision([], { lake });
    expect(stderr).not.toContain('warning');
    const left = readdirSync(folder);
    expect(left).toHaveLength(1003);
    expect(left).toContain(other);
    expect(left).toEqual(expect.arrayContaining(['notes.json', '20200101T000000000Z-mine.json', names[2]]));
    expect(left).not.toContain(old);
    expect(left).not.toContain(names[1]);
  });

  it('not through a link: the run warns, and its data is there', async () => {
    const lake = 'linked-records';
    const outside = scene.newFolder();
    mkdirSync(join(scene.scratch, lake, '.cryptodl'), { recursive: true });
    symlinkSync(outside, recordsOf(join(scene.scratch, lake)));
    const metrics = join(scene.newFolder(), 'run.prom');
    const { code, stderr } = await scene.vision(['--prometheus-textfile', metrics], { lake });
    expect([code, readdirSync(outside)]).toEqual([0, []]);
    expect(readFileSync(metrics, 'utf8')).toContain('cryptodl_last_run_exit_code');
    expect(stderr).toContain('warning: the record of this run cannot be written');
    expect(stderr).toContain('symbolic link');
  });

  it('that cannot be read do not hide the failures of a run', async () => {
    const lake = 'linked-records-and-failures';
    mkdirSync(join(scene.scratch, lake, '.cryptodl'), { recursive: true });
    symlinkSync(scene.newFolder(), recordsOf(join(scene.scratch, lake)));
    scene.answer(isZip, (_request, response) => response.writeHead(403).end());
    const { code, stderr } = await scene.vision([], { lake });
    expect(code).toBe(4);
    expect(stderr).toContain('failed');
    expect(stderr).toContain('warning: the record of this run cannot be written');
  });
});

describe('records are read with care', () => {
  it('others than records are named and left out: no record, another name, a link, too large', async () => {
    const { lake } = await scene.vision();
    const [name = ''] = readdirSync(recordsOf(lake));
    const text = readFileSync(join(recordsOf(lake), name), 'utf8');
    const put = (file: string, content: string): void => {
      writeFileSync(join(recordsOf(lake), file), content);
    };
    put('20261101T000000000Z-00000001.json', text);
    put('20261101T000000000Z-00000002.json', '{"v":1}');
    put('20261101T000000000Z-00000003.json', text.slice(0, 100));
    put('20261101T000000000Z-00000005.json', ' '.repeat(5_000_000));
    symlinkSync(join(recordsOf(lake), name), join(recordsOf(lake), '20261101T000000000Z-00000004.json'));
    const { runs, warning } = await readRuns(lakePaths(lake));
    expect(runs.map(({ id }) => `${id}.json`)).toEqual([name]);
    expect(warning).toMatch(/^no records of runs, left out: .*00000001\.json, .* and 2 more$/);
    // A link is no record, although its target is one with its name.
    const outside = join(scene.newFolder(), name);
    renameSync(join(recordsOf(lake), name), outside);
    symlinkSync(outside, join(recordsOf(lake), name));
    expect((await readRuns(lakePaths(lake))).runs).toEqual([]);
  });

  it('a record is found behind fifty newer files that are no records', async () => {
    const { lake } = await scene.vision();
    const [run] = (await readRuns(lakePaths(lake))).runs;
    const names = Array.from({ length: 50 }, (_, minute) => runId(Date.now() + 60_000 * (minute + 1)));
    for (const name of names) writeFileSync(join(recordsOf(lake), `${name}.json`), '{}');
    const history = run && (await readHistory(lakePaths(lake), run, loadBinance()));
    expect(history?.lastSuccessMs).toBe(Date.parse(run?.endedAt ?? ''));
  });

  it('runs are of one selection if verb, job, market, dataset, symbols and interval are equal', () => {
    const options = {
      market: ['um'],
      dataset: ['klines'],
      symbols: ['BTCUSDT'],
      interval: ['1h'],
      days: ['3'],
    };
    const run = { verb: 'vision', job: 'bars', options };
    const isSame = (other: typeof run | { verb: string; job: undefined; options: typeof options }): boolean =>
      selectionOf(run) === selectionOf(other);
    expect(isSame({ ...run, options: { ...options, days: ['4'] } })).toBe(true);
    for (const name of ['market', 'dataset', 'symbols', 'interval'])
      expect([name, isSame({ ...run, options: { ...options, [name]: ['other'] } })]).toEqual([name, false]);
    expect(isSame({ ...run, verb: 'metrics' })).toBe(false);
    expect(isSame({ ...run, job: undefined })).toBe(false);
  });
});
