/** Months that stand for days, datasets that have ended, and plans for programs. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CliResult } from '../helpers/cli.js';
import { FAST, argv, cryptodlOk } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const october = { from: '2026-10-01', to: '2026-10-31' };
const scene = useScene({
  archive: [
    october,
    // Another series ends with the bars of an hour.
    { ...october, interval: '1d' },
    { from: '2026-10-01', to: '2026-11-20', symbols: ['ETHUSDT'] },
    { ...october, symbols: ['MONUSDT', 'ALSOUSDT', 'EDGEUSDT'], cadence: 'monthly' },
    { from: '2026-10-12', to: '2026-10-31', symbols: ['EDGEUSDT'] },
    { from: '2026-10-12', to: '2026-10-31', symbols: ['EDGEUSDT'], interval: '1d' },
    { ...october, interval: '1w', symbols: ['WEEKUSDT'], cadence: 'monthly' },
    { dataset: 'bookTicker', from: '2024-03-01', to: '2024-04-01', cadence: 'monthly' },
    { dataset: 'bookTicker', from: '2024-03-28', to: '2024-03-30', symbols: ['DAYUSDT'] },
    { dataset: 'bookTicker', from: '2024-04-01', to: '2024-04-01', symbols: ['DAYUSDT'], cadence: 'monthly' },
  ],
});
const { scratch } = scene;

function run(out: string, ...flags: string[]): Promise<CliResult> {
  const where = argv`--archive-url ${scene.archive.url} --now 2026-11-21T12:00:00Z --out ${join(scratch, out)}`;
  return cryptodlOk(['vision', ...where, ...flags, ...FAST]);
}

describe('a part of a month that lacks daily objects', () => {
  const part = ['--interval', '1h', '--symbols', 'MONUSDT', '--from', '2026-10-05', '--to', '2026-10-06'];

  it('at its first day, is taken from the monthly object', async () => {
    await run('edge', ...argv`--interval 1h --symbols EDGEUSDT --from 2026-10-10 --to 2026-10-31`);
    const { events } = await cryptodlOk(['coverage', '--json', '--out', join(scratch, 'edge')]);
    expect(events[0]).toMatchObject({ rows: 744, percent: 100, gaps: [] });
  });

  it('is taken from the monthly object, and the plan says that it is the whole month', async () => {
    const { stderr } = await run('part', ...part);
    expect(stderr).toContain('whole      1 month: the archive lacks daily objects of them\n');
    expect(stderr).toContain('744 rows in 1 file');
    expect(filesBelow(join(scratch, 'part/binance'), '.parquet')).toEqual([
      'um/klines/interval=1h/symbol=MONUSDT/2026-10.parquet',
    ]);
  });

  it('is held from then on', async () => {
    await run('held', ...part);
    scene.archive.requests.length = 0;
    const { stderr } = await run('held', ...part);
    expect(stderr).toContain('1 skipped');
    expect(scene.archive.objectRequests()).toEqual([]);
  });
});

it('a month file in place of day files is named in the plan', async () => {
  const days = ['--interval', '1h', '--partition', 'day', '--from', '2026-10-01', '--to', '2026-10-31'];
  const { stderr } = await run('day-files', '--symbols', 'BTCUSDT,MONUSDT', ...days, '--dry-run');
  expect(stderr).toContain('into 32 partitions');
  expect(stderr).toContain('  whole      1 month: ');
  const two = await run('day-files', '--symbols', 'MONUSDT,ALSOUSDT', ...days, '--dry-run');
  expect(two.stderr).toContain('  whole      2 months: ');
  const ticks = ['--dataset', 'bookTicker', '--symbols', 'BTCUSDT', '--cadence', 'monthly'];
  const zip = [...ticks, '--format', 'zip', '--from', '2024-03-01', '--to', '2024-03-31', '--dry-run'];
  const monthly = await run('month-zips', ...zip);
  expect(monthly.stderr).toContain('to fetch   1 object');
  expect(monthly.stderr).not.toContain('whole      ');
  const daily = await run('day-files', '--symbols', 'BTCUSDT', ...days, '--dry-run');
  expect(daily.stderr).not.toContain('whole      ');
});

it('bars longer than a day that the archive has not got are absent, with the reason', async () => {
  const { stderr } = await run('weeks', '--interval', '1w', '--symbols', 'BTCUSDT,WEEKUSDT', '--months', '1');
  expect(stderr).toMatch(/ absent {5}\d+ not-published-yet\n/);
});

it('months of bars longer than a day that the archive lacks after others are absent, also in the next run', async () => {
  const months = ['--interval', '1w', '--symbols', 'WEEKUSDT', '--from', '2026-10-01', '--to', '2026-12-31'];
  for (const done of ['1 ok', '1 skipped']) {
    const { stderr } = await run('months-of-weeks', ...months, '--now', '2027-02-20T12:00:00Z');
    expect(stderr).toContain(`\n${done}, 2 absent in `);
    expect(stderr).toContain('WEEKUSDT-1w-2026-11.zip');
  }
});

describe('a lake of a dataset that has ended', () => {
  it('goes on to the month that the archive has after the last day', async () => {
    await run(
      'last-month',
      ...argv`--dataset bookTicker --symbols DAYUSDT --from 2024-03-28 --to 2024-03-30`,
    );
    const april = argv`coverage --json --from 2024-04-01 --to 2024-04-30 --out ${join(scratch, 'last-month')}`;
    expect((await cryptodlOk(april)).events[0]).toMatchObject({ gaps: [{ reason: 'not-fetched' }] });
    await run('last-month');
    expect(filesBelow(join(scratch, 'last-month/binance'), '.parquet')).toContain(
      'um/bookTicker/symbol=DAYUSDT/2024-04.parquet',
    );
  });

  it('goes on to the last month when it holds months', async () => {
    const months = ['--dataset', 'bookTicker', '--cadence', 'monthly', '--symbols', 'BTCUSDT'];
    await run('ended', ...months, '--from', '2024-03-01', '--to', '2024-03-31');
    const { stderr } = await run('ended');
    expect(stderr).toContain('1 ok');
    expect(filesBelow(join(scratch, 'ended/binance'), '.parquet')).toHaveLength(2);
    const again = await run('ended');
    expect(again.stderr).toContain('um bookTicker ended 2024-03-30: complete');
    expect(again.stderr).toContain('no series to continue');
  });
});

it('--dry-run --json gives an event per object, and nothing else', async () => {
  const days = ['--interval', '1h', '--symbols', 'BTCUSDT', '--from', '2026-10-30', '--to', '2026-11-01'];
  const { stdout, events } = await run('planned', ...days, '--dry-run', '--json');
  expect(stdout.trimEnd().split('\n')).toHaveLength(events.length);
  expect(events.map(({ event, action, period, reason }) => [event, action, period, reason])).toEqual([
    ['plan', undefined, undefined, undefined],
    ['planned', 'fetch', '2026-10-30', undefined],
    ['planned', 'fetch', '2026-10-31', undefined],
    ['planned', 'absent', '2026-11-01', 'delisted'],
  ]);
});

/** A run at noon of each of these days of November, and what coverage says after it. */
async function runOnDays(out: string, days: readonly number[], flags: readonly string[]): Promise<unknown[]> {
  const told: unknown[] = [];
  for (const day of days) {
    const now = ['--now', `2026-11-${String(day).padStart(2, '0')}T12:00:00Z`];
    const where = ['--archive-url', scene.archive.url, '--out', join(scratch, out), ...FAST];
    await cryptodlOk(['vision', '--interval', '1h', '--symbols', 'BTCUSDT', ...flags, ...where, ...now]);
    const toYesterday = ['--to', new Date(Date.UTC(2026, 10, day - 1)).toISOString().slice(0, 10)];
    const { events } = await cryptodlOk(
      argv`coverage --out ${join(scratch, out)} ${now} ${toYesterday} --json`,
    );
    const { percent, gaps } = events[0] as { percent: number; gaps: { from: string; reason: string }[] };
    told.push({ day, percent, gaps: gaps.map(({ from, reason }) => [from.slice(5, 10), reason]) });
  }
  return told;
}

/** What coverage says of a symbol whose last day is 10-31, while others go on. Its end is proven after 14 days. */
function toldOn(day: number, heldDays: number): unknown {
  const text = (of: number): string => `11-${String(of).padStart(2, '0')}`;
  if (day < 4 || day >= 15) {
    const reason = day < 4 ? 'not-published-yet' : 'delisted';
    return { day, percent: 100, gaps: day === 1 ? [] : [[text(1), reason]] };
  }
  const percent = Math.floor((1_000_000 * heldDays) / (heldDays + day - 3)) / 10_000;
  return {
    day,
    percent,
    gaps: [
      [text(1), 'stalled'],
      [text(day - 2), 'not-published-yet'],
    ],
  };
}

describe('a symbol that was delisted', () => {
  it('is missing until its end is proven, in a job that missed some runs', async () => {
    const days = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 15, 16, 17, 18];
    const told = await runOnDays('missed', days, ['--days', '3']);
    expect(told).toEqual(days.map((day) => toldOn(day, 3)));
  });

  it('is missing until its end is proven, also on the days before a run that asks for one day and finds it late', async () => {
    const days = [1, 2, 5, 12, 15, 17];
    const told = await runOnDays('late', days, ['--days', '1']);
    expect(told).toEqual(days.map((day) => toldOn(day, 1)));
  });
});
