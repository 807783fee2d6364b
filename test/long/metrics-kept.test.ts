/** What only REST had, and has no more: nothing that a run does may lose it, or call it whole when it is not. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { manifestOf, filesBelow, manifestLines, readParquet } from '../helpers/lake.js';
import { publishFunding, publishKlines, publishMetrics } from '../helpers/metrics-archive.js';
import { closing, daysBetween, joinedScene, rowsOf } from '../helpers/metrics-scene.js';
import type { JoinedScene, MetricsScene, SceneOptions } from '../helpers/metrics-scene.js';
import { publish } from '../helpers/published.js';
import { apiError, json } from '../helpers/rest-venue-answers.js';
import { aggTrades } from '../helpers/rest-venue-market.js';
import { DAY_MS } from '../helpers/rest-venue-types.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
const SERIES = 'um/openInterestHist/interval=5m/symbol=BTCUSDT';
const INTEREST = ['metrics', '--dataset', 'openInterestHist', '--symbols', 'BTCUSDT'];

const scene = (more: Partial<SceneOptions> = {}): Promise<JoinedScene> =>
  closing(joinedScene(scratch, { symbols: [BTC], ...more }));

/** Rows by day, `11-21`. */
async function countsOf(lake: string, series = SERIES, time = 'timestamp'): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const row of await rowsOf(lake, series)) {
    const day = (row[time] as Date).toISOString().slice(5, 10);
    counts[day] = (counts[day] ?? 0) + 1;
  }
  return counts;
}

describe('rows that REST has no more', () => {
  it('are quarantined when their file differs from its manifest', async () => {
    const { run, lake, setNow } = await scene();
    await run([...INTEREST, '--from', '2026-11-01']);
    const manifest = manifestOf(join(lake, 'binance', SERIES));
    const before = readFileSync(manifest);
    setNow('2026-11-22T08:00:00Z');
    await run([...INTEREST, '--days', '1']);
    writeFileSync(manifest, before);
    setNow('2026-12-15T08:00:00Z');
    const result = await run(['metrics']);
    expect([result.code, result.stderr]).toEqual([4, expect.stringContaining('its rows are lost')]);
    const [kept = ''] = filesBelow(join(lake, '_quarantine'), '.parquet');
    expect(await readParquet(join(lake, '_quarantine', kept))).toHaveLength(21 * 288);
  });

  it('are not given up for other settings, nor for being fetched again', async () => {
    const { run, lake, setNow } = await scene();
    await run([...INTEREST, '--days', '10']);
    setNow('2026-12-15T08:00:00Z');
    const held = await countsOf(lake);
    const others = await run([...INTEREST, '--days', '5', '--numbers', 'string', '--force']);
    expect([others.code, others.stderr]).toEqual([
      2,
      expect.stringContaining('the series cannot be rewritten'),
    ]);
    const again = await run([...INTEREST, '--from', '2026-11-18', '--to', '2026-11-20', '--force']);
    const why = /the exchange no longer has \S+.*, and only this file has its rows/;
    expect([again.code, again.stderr]).toEqual([4, expect.stringMatching(why)]);
    expect(await countsOf(lake)).toEqual(held);
  });
});

describe('a day that is not whole yet', () => {
  it.each(['--force', 'damage'])('stays open when its file is rebuilt (%s)', async (how) => {
    const { run, lake, setNow } = await scene();
    await run([...INTEREST, '--days', '3', '--include-today']);
    const file = join(lake, 'binance', SERIES, '2026-11.parquet');
    if (how === 'damage') writeFileSync(file, readFileSync(file).subarray(0, -10));
    setNow('2026-11-21T09:00:00Z');
    expect((await run([...INTEREST, '--days', '3', ...(how === 'damage' ? [] : [how])])).code).toBe(0);
    setNow('2026-11-23T08:00:00Z');
    expect((await run(['metrics'])).code).toBe(0);
    expect(await countsOf(lake)).toEqual({
      '11-18': 288,
      '11-19': 288,
      '11-20': 288,
      '11-21': 288,
      '11-22': 288,
    });
  });

  it('is asked for again when it was taken within the hour of its end', async () => {
    let isLate = true;
    const opened: MetricsScene = await scene({
      disturb: (asked) => {
        if (!isLate || !asked.path.endsWith('openInterestHist')) return undefined;
        const rows = JSON.parse(opened.venue.usual(asked).body) as { timestamp: number | string }[];
        const early = rows.filter(({ timestamp }) => Number(timestamp) < Date.parse('2026-11-21T23:55:00Z'));
        return json(JSON.stringify(early));
      },
    });
    opened.setNow('2026-11-22T00:00:01Z');
    expect((await opened.run([...INTEREST, '--days', '2'])).code).toBe(0);
    isLate = false;
    opened.setNow('2026-11-22T08:00:00Z');
    expect((await opened.run(['metrics'])).code).toBe(0);
    expect(await countsOf(opened.lake)).toEqual({ '11-20': 288, '11-21': 288 });
  });
});

describe('a gap', () => {
  it('after held days is a hole, with any first day of the run', async () => {
    let isEmpty = false;
    const { run, setNow } = await scene({
      disturb: ({ path }) => (isEmpty && path.startsWith('/futures/data/') ? json('[]') : undefined),
    });
    await run([...INTEREST, '--days', '5']);
    isEmpty = true;
    setNow('2026-11-22T08:00:00Z');
    const result = await run([...INTEREST, '--days', '1', '--strict']);
    expect([result.code, result.stderr]).toEqual([4, expect.stringContaining('1 absent, hole')]);
  });

  it('of a symbol that REST no longer has does not change, also with --fill rest', async () => {
    const { run, folder } = await scene({ disturb: () => apiError(-1121, 'Invalid symbol.') });
    const old: VenueSymbol = { symbol: 'OLDUSDT', host: 'fapi' };
    for (const day of ['2026-09-01', '2026-09-02', '2026-09-04'])
      publishKlines(folder, old, '1h', 3_600_000, Date.parse(day));
    const line = 'vision --interval 1h --symbols OLDUSDT --from 2026-09-01 --to 2026-09-04'.split(' ');
    const result = await run([...line, '--fill', 'rest']);
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('3 ok, 1 absent')]);
    expect(result.stderr).toContain('1 absent, hole');
  });
});

describe('one series out of two sources', () => {
  it('goes on from cron when the archive has everything for a while', async () => {
    const { run, lake, folder, setNow } = await scene();
    for (const day of daysBetween('2026-11-18', '2026-11-21')) publishMetrics(folder, BTC, day);
    await run('metrics --dataset metrics --symbols BTCUSDT --join archive --days 3'.split(' '));
    setNow('2026-11-22T08:00:00Z');
    const result = await run(['metrics', '--join', 'archive']);
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('1 ok')]);
    expect(await countsOf(lake, 'um/metrics/symbol=BTCUSDT', 'create_time')).toEqual({
      '11-18': 288,
      '11-19': 288,
      '11-20': 288,
      '11-21': 288,
    });
  });

  it('is whole when a retry brings days of both into one file', async () => {
    let isDown = true;
    const { run, lake, folder } = await scene({
      disturb: ({ path }) => (isDown && path.startsWith('/futures/data/') ? apiError(-1100, 'x') : undefined),
    });
    const days = daysBetween('2026-11-15', '2026-11-21');
    for (const day of days.slice(0, 4)) publishMetrics(folder, BTC, day);
    const report = join(lake, '..', 'both.jsonl');
    const line = 'metrics --dataset metrics --symbols BTCUSDT --join archive --days 6'.split(' ');
    await run([...line, '--failures', report]);
    isDown = false;
    // As if the days of the archive had failed as well.
    const [header = '', ...entries] = readFileSync(report, 'utf8').trim().split('\n');
    const entry = JSON.parse(entries[0] ?? '') as Record<string, unknown>;
    const more = days.slice(0, 4).map((day) => {
      const period = new Date(day).toISOString().slice(0, 10);
      const key = `data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-${period}.zip`;
      return JSON.stringify({ ...entry, period, key });
    });
    writeFileSync(report, `${[header, ...more, ...entries].join('\n')}\n`);
    rmSync(join(lake, 'binance'), { recursive: true });
    expect((await run(['retry', report])).code).toBe(0);
    const counts = await countsOf(lake, 'um/metrics/symbol=BTCUSDT', 'create_time');
    expect(Object.values(counts)).toEqual([288, 288, 288, 288, 288, 288]);
    const lines = manifestLines(join(lake, 'binance', 'um/metrics/symbol=BTCUSDT'));
    expect(lines.at(-1)).toMatchObject({ fileRows: 6 * 288 });
  });

  it('has day files with --partition day, for rows of both sources', async () => {
    const { run, lake, folder } = await scene();
    publishFunding(folder, BTC, Date.parse('2026-10-01'));
    const line = ['metrics', '--dataset', 'fundingRate', '--symbols', 'BTCUSDT', '--join', 'archive'];
    expect((await run([...line, '--partition', 'day', '--days', '3'])).code).toBe(0);
    const files = filesBelow(join(lake, 'binance', 'um/fundingRate'), '.parquet');
    expect(files.every((file) => /2026-11-\d\d\.parquet$/.test(file))).toBe(true);
  });

  it('compares trades by their ids: several have the same time, and units differ', async () => {
    const spot: VenueSymbol = { symbol: 'BTCUSDT', host: 'spot', tradeEveryMs: 60_000 };
    const { run, folder } = await scene({ symbols: [spot] });
    const publishTrades = (day: string): void => {
      const from = Date.parse(day);
      const lines = [...aggTrades(spot, from, from + DAY_MS - 1)].map(({ a, p, q, f, l, T, m }) =>
        [a, p, q, f, l, `${T}123`, m, true].join(','),
      );
      publish(
        folder,
        `data/spot/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-${day}.zip`,
        `${lines.join('\n')}\n`,
      );
    };
    publishTrades('2026-11-18');
    publishTrades('2026-11-19');
    const line = 'vision --market spot --dataset aggTrades --symbols BTCUSDT --days 3'.split(' ');
    await run([...line, '--fill', 'rest']);
    publishTrades('2026-11-20');
    const result = await run([...line, '--fill', 'rest']);
    expect([result.code, result.stderr]).toEqual([
      0,
      expect.stringMatching(/compared +1,4\d\d rows .*: 0 differ$/m),
    ]);
  });
});

it.each([
  [['--format', 'zip'], 'files of the archive'],
  [['--dataset', 'trades'], 'trades'],
])('--fill rest that can fill nothing is refused (%j)', async (words, what) => {
  const { run } = await scene();
  const result = await run(['vision', '--symbols', 'BTCUSDT', '--days', '1', '--fill', 'rest', ...words]);
  expect([result.code, result.stderr]).toEqual([
    2,
    expect.stringContaining(`--fill rest: REST has no ${what}`),
  ]);
});
