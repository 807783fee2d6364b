/** Alerts of runs: in the closing block, as events, in the summary and in the record. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lakePaths } from '../../src/lake/layout.js';
import { readRuns } from '../../src/monitor/run-record.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-01', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT,ETHUSDT --days 3',
});
const alertLines = (stderr: string): string[] =>
  stderr.split('\n').flatMap((line) => /^ {2}alert {6}(.*)$/.exec(line)?.[1] ?? []);

describe('a run with failures', () => {
  it('raises an alert when the run before failed too, not when it was another one or went well', async () => {
    const lake = 'failing';
    scene.refuse(isZip, 403);
    const first = await scene.vision('--quiet', { lake });
    const other = await scene.vision('--quiet --symbols BTCUSDT', { lake });
    const second = await scene.vision('--quiet', { lake });
    expect([first, other, second].map(({ stderr }) => alertLines(stderr).length)).toEqual([0, 0, 1]);
    expect(alertLines(second.stderr)[0]).toContain(
      'failed objects in two runs in a row: 6 now, 6 before: cryptodl doctor',
    );
    const third = await scene.vision('--json', { lake });
    const alert = {
      id: 'failed-again',
      text: expect.any(String),
      advice: expect.stringContaining(third.lake),
    };
    expect(third.events.filter(({ event }) => event === 'alert')).toEqual([{ event: 'alert', ...alert }]);
    expect(third.summary).toMatchObject({ event: 'summary', alerts: [alert] });
    expect((await readRuns(lakePaths(third.lake))).runs.map(({ summary }) => summary.alerts.length)).toEqual([
      0, 0, 1, 1,
    ]);
    scene.archive.fault = undefined;
    const well = await scene.vision([], { lake });
    expect([well.code, alertLines(well.stderr)]).toEqual([0, []]);
  });

  it('raises an alert although many runs of other jobs lie between', async () => {
    const lake = 'many-jobs';
    scene.refuse(isZip, 403);
    const { lake: root } = await scene.vision('--symbols BTCUSDT', { lake });
    const folder = join(root, '.cryptodl/runs');
    const [run] = (await readRuns(lakePaths(root))).runs;
    for (let at = 0; at < 60; at += 1) {
      const id = `${run?.id.slice(0, -8)}${String(at).padStart(8, 'f')}`;
      writeFileSync(join(folder, `${id}.json`), JSON.stringify({ ...run, id, job: `job ${at}` }));
    }
    const second = await scene.vision('--symbols BTCUSDT', { lake });
    expect(alertLines(second.stderr)).toEqual([expect.stringContaining('in two runs in a row')]);
  });
});

describe('a run with exit code 0', () => {
  it('shows that the lake is not fresh, but not with --quiet', async () => {
    const late = ['--now', '2026-11-24T12:00:00Z', '--days', '4'];
    const loud = await scene.vision(late);
    expect([loud.code, alertLines(loud.stderr)]).toEqual([
      0,
      [
        expect.stringContaining(
          'um klines is not fresh: publication has stalled, 2026-11-21 is not published 60 h after its end',
        ),
      ],
    ]);
    const quiet = await scene.vision([...late, '--quiet']);
    expect([quiet.code, quiet.stderr]).toEqual([0, '']);
    const early = await scene.vision(['--now', '2026-11-23T23:59:00Z', '--days', '4']);
    expect(alertLines(early.stderr)).toEqual([]);
  });
});

describe('a run with months and holes of single days', () => {
  const months = useScene({
    archive: [
      { cadence: 'monthly', from: '2025-01-01', to: '2026-10-31' },
      { from: '2026-11-01', to: '2026-11-04' },
      { from: '2026-11-17', to: '2026-11-20' },
    ],
    flags: '--interval 1h --symbols BTCUSDT',
  });

  it('raises no alert for twelve missing days of 690: an object of a month counts as its days', async () => {
    const run = await months.vision('--from 2025-01-01 --json');
    expect(run.summary).toMatchObject({ outcomes: { ok: 30, absent: 12 }, alerts: [] });
    expect(run.summary).toMatchObject({ datasets: [{ days: { held: 677, missing: 12 } }] });
  });

  it('raises one for twelve missing days of 51', async () => {
    const run = await months.vision('--from 2026-10-21 --exact --json');
    expect(run.summary).toMatchObject({
      alerts: [
        {
          id: 'low-coverage',
          text: expect.stringMatching(/^the lake holds \d+(\.\d)? % of the days of this run/) as unknown,
        },
      ],
    });
  });
});
