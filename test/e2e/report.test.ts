/** `cryptodl report`: one HTML file about a lake and a run. test/long/report.test.ts opens it in a browser. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lakePaths } from '../../src/lake/layout.js';
import { readRuns } from '../../src/run/monitor/run-files.js';
import { klinesFolder, klinesLine, writeManifest } from '../../scripts/synthetic-lake.js';
import { cryptodl, cryptodlOk, cryptodlProcessOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { isZip, useScene } from '../helpers/scene.js';
import { daysBefore, makeSeries, runRecord, writeFailures, writeRecord } from '../helpers/report-lake.js';

const scratch = scratchFolder();
const NOW = '2026-11-21T12:00:00Z';
const HOSTILE = `</script><img src=x onerror=alert(1)> "quoted" 'and' & \u2028`;
const START = Date.parse('2026-11-20T08:00:00Z');
let folders = 0;

function newLake(): string {
  const lake = join(scratch, `lake-${(folders += 1)}`);
  makeSeries(lake, ['BTCUSDT', 'ETHUSDT'], daysBefore('2026-11-20', 12));
  return lake;
}

function report(lake: string, ...flags: readonly string[]): Promise<CliResult> {
  return cryptodl(['report', '--out', lake, '--now', NOW, ...flags], { cwd: scratch });
}

/** The data of the page; any text that ends its element early makes this fail. */
function dataOf(path: string): { head: Record<string, unknown>; groups: Record<string, unknown>[] } {
  const html = readFileSync(path, 'utf8');
  const elements = [...html.matchAll(/<script type="application\/json" data-kind="(\w+)">(.*?)<\/script>/g)];
  const of = (kind: string) =>
    elements
      .filter(([, own]) => own === kind)
      .map(([, , json = '']) => JSON.parse(json) as Record<string, unknown>);
  return { head: of('report')[0] ?? {}, groups: of('group') };
}

describe('a report', () => {
  it('has the lake, its newest run with its failures, and the history', async () => {
    const lake = newLake();
    const failures = writeFailures(lake, [HOSTILE, 'second']);
    writeRecord(lake, runRecord(START - 86_400_000));
    const newest = runRecord(START, { failed: 2, failures });
    writeRecord(lake, newest);
    const file = join(scratch, 'whole.html');
    // The real binary takes the assets from the package.
    const { stdout } = await cryptodlProcessOk(['report', '-o', lake, '--now', NOW, '--html', file]);
    expect(stdout).toMatch(new RegExp(`^wrote .*whole.html: 2 series, run ${newest.id}, \\d+ kB\\n$`));
    const { head, groups } = dataOf(file);
    expect(head).toMatchObject({
      verdict: null,
      made: NOW.replace('Z', '.000Z'),
      lake,
      run: { id: newest.id, summary: { outcomes: { failed: 2 } } },
      history: [{ exitCode: 0 }, { id: newest.id, exitCode: 4 }],
      publication: [{ dataset: 'klines' }],
      failures: { entries: [{ message: HOSTILE, code: 'timeout' }, { message: 'second' }], more: {} },
      notes: [],
    });
    expect(groups).toEqual([
      expect.objectContaining({
        name: 'um klines 1m',
        unit: 'rows',
        rows: [expect.objectContaining({ s: 'BTCUSDT' }), expect.objectContaining({ s: 'ETHUSDT' })],
      }),
    ]);
    expect(readFileSync(file, 'utf8')).not.toContain('<img');
    expect(readdirSync(scratch).filter((name) => name.endsWith('.partial'))).toEqual([]);
  });

  it('shows another run, counts the failures beyond two thousand, and selects series like coverage', async () => {
    const lake = newLake();
    const failures = writeFailures(
      lake,
      Array.from({ length: 2003 }, (_, at) => `failure ${at}`),
    );
    const first = runRecord(START - 86_400_000, { failed: 2003, failures });
    writeRecord(lake, first);
    writeRecord(lake, runRecord(START));
    const file = join(scratch, 'other.html');
    const { events } = await report(lake, '--html', file, '--run', first.id, '-s', 'ETHUSDT', '--json');
    expect(events).toEqual([
      { event: 'report', path: file, bytes: expect.any(Number), run: first.id, series: 1 },
    ]);
    const { head, groups } = dataOf(file);
    const { entries, more } = head['failures'] as { entries: unknown[]; more: unknown };
    expect([entries.length, more, (head['run'] as { id: string }).id]).toEqual([
      2000,
      { 'http-not-found': 2, timeout: 1 },
      first.id,
    ]);
    expect(groups[0]?.['rows']).toHaveLength(1);
  });

  it('is made of a lake without runs, and names what it cannot read', async () => {
    const lake = newLake();
    writeManifest(klinesFolder(lake, 'BADUSDT'), [klinesLine('BADUSDT', '2026-11-19'), '{"v":1,"kind":']);
    mkdirSync(join(lake, '.cryptodl/runs'), { recursive: true });
    for (let number = 11; number <= 70; number += 1) {
      const manifest = `_manifests/binance/um/klines/interval=1m/symbol=BAD${number}USDT.jsonl`;
      writeFileSync(join(lake, manifest), 'no manifest\nat all\n');
      writeFileSync(join(lake, `.cryptodl/runs/20261101T000000000Z-000000${number}.json`), '{}');
    }
    const { code, stderr, stdout } = await report(lake, '--html', join(scratch, 'bare.html'));
    expect([code, stdout]).toEqual([1, expect.stringContaining('no run')]);
    const left = /^warning: no records of runs, left out: .*00000011\.json, .*00000013\.json and 57 more$/m;
    expect(stderr).toMatch(left);
    expect(stderr).toContain('BAD11USDT');
    const { head } = dataOf(join(scratch, 'bare.html'));
    expect([head['run'], head['history']]).toEqual([null, []]);
    const notes = head['notes'] as string[];
    expect(notes[0]).toContain('no records of runs');
    expect([notes.length, Number(head['moreNotes']) > 10]).toEqual([50, true]);
    expect(new Set(notes).size).toBe(50);
  });
});

describe('a lake of another person', () => {
  it('names a file outside of the lake as the failure report of a run', async () => {
    const [lake, other] = [newLake(), newLake()];
    const failures = writeFailures(other, ['secret']);
    writeRecord(lake, runRecord(START, { failed: 1, failures }));
    const file = join(scratch, 'outside.html');
    const { stderr } = await report(lake, '--html', file);
    expect(stderr).toContain('is not a failure report of this lake; the page has no failures');
    expect(readFileSync(file, 'utf8')).not.toContain('secret');
  });
});

describe('a report of a lake whose runs failed', () => {
  const scene = useScene({ archive: [{ from: '2026-11-13', to: '2026-11-20' }] });

  it('has the run of a job with its own failures, although the lake holds no data', async () => {
    const folder = scene.newFolder();
    const lake = join(folder, 'lake');
    const jobOf = (days: number) => ({ verb: 'vision', symbols: 'BTCUSDT', interval: '1h', days, out: lake });
    const defaults = { 'archive-url': scene.archive.url, now: scene.now, retries: 0 };
    const jobs = join(folder, 'jobs.json');
    writeFileSync(jobs, JSON.stringify({ defaults, jobs: { bars: jobOf(3), more: jobOf(5) } }));
    scene.refuse(isZip, 403);
    expect((await cryptodl(['run', jobs], { cwd: folder })).code).toBe(4);
    const { runs } = await readRuns(lakePaths(lake));
    const reports = readdirSync(join(lake, '_failures')).map((name) => join(lake, '_failures', name));
    expect(runs.map(({ job, summary }) => [job, summary.failures])).toEqual([
      ['bars', reports[0]],
      ['more', reports[1]],
    ]);
    // A later report is not the report of these jobs.
    writeFailures(lake, ['later']);
    const file = join(folder, 'report.html');
    const { code, stdout } = await report(lake, '--html', file, '--run', runs[0]?.id ?? '');
    expect([code, stdout]).toEqual([0, expect.stringContaining('1 series, run ')]);
    const { head, groups } = dataOf(file);
    // The order names the series, so that the page has what it lacks.
    expect(groups).toMatchObject([{ rows: [{ s: 'BTCUSDT', p: '0.00 %', o: 0 }] }]);
    expect(head).toMatchObject({
      verdict: { state: 'incomplete', text: expect.stringMatching(/^incomplete: 1 of 1 series lack /) },
      run: { job: 'bars' },
      failures: { path: reports[0], entries: [1, 2, 3].map(() => ({ code: 'http-forbidden' })) },
      notes: [],
    });
  });

  it('is refused without a record', async () => {
    const { code, stderr } = await report(scene.newFolder());
    expect([code, stderr]).toEqual([2, expect.stringContaining('holds no series')]);
  });
});

describe('mistakes', () => {
  it('no lake, and an unknown run, are refused before a file is written', async () => {
    const lake = newLake();
    const file = join(scratch, 'none.html');
    expect(await report(join(scratch, 'nowhere'), '--html', file)).toMatchObject({ code: 2 });
    const notes = join(scratch, 'notes.txt');
    writeFileSync(notes, '');
    const noFolder = await report(notes, '--html', file);
    expect([noFolder.code, noFolder.stderr]).toEqual([2, expect.stringContaining('is a file, not a folder')]);
    const bare = await report(lake, '--html', file, '--run', '20260101T000000000Z-00000000');
    expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining('the lake has no records of runs')]);
    const newest = runRecord(START);
    writeRecord(lake, newest);
    const other = await report(lake, '--html', file, '--run', '20260101T000000000Z-00000000');
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining(`--run ${newest.id}`)]);
    expect(existsSync(file)).toBe(false);
  });

  it('a file that is not a report is kept unless --force is given; a report is replaced', async () => {
    const lake = newLake();
    const file = join(scratch, 'mine.html');
    writeFileSync(file, '<!doctype html>\nmy page');
    const { code, stderr } = await report(lake, '--html', file);
    expect([code, readFileSync(file, 'utf8')]).toEqual([2, '<!doctype html>\nmy page']);
    expect(stderr).toContain('mine.html is not a report, and is not replaced');
    await cryptodlOk(['report', '-o', lake, '--html', file, '--force']);
    const first = readFileSync(file, 'utf8');
    expect(await report(lake, '--html', file, '-s', 'BTCUSDT', '-q')).toMatchObject({ code: 0, stdout: '' });
    expect(readFileSync(file, 'utf8')).not.toBe(first);
  });
});
