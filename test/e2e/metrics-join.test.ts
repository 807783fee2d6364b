/** `metrics --join archive` and `vision --fill rest`: one series out of two sources. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { argv, cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { manifestLines } from '../helpers/lake.js';
import { metricsAt, publishFunding, publishKlines, publishMetrics } from '../helpers/metrics-archive.js';
import { publish } from '../helpers/published.js';
import { closing, daysBetween, joinedScene, rowsOf } from '../helpers/metrics-scene.js';
import type { JoinedScene, SceneOptions } from '../helpers/metrics-scene.js';
import { aggTrades, kline } from '../helpers/rest-venue-market.js';
import { fundingEvents } from '../helpers/rest-venue-rows.js';
import { DAY_MS } from '../helpers/rest-venue-types.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';
import { sql } from '../helpers/sql.js';

const scratch = scratchFolder();
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
const SPOT: VenueSymbol = { symbol: 'BTCUSDT', host: 'spot', tradeEveryMs: 60_000 };
const FUTURE: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi', tradeEveryMs: 60_000 };

const scene = (symbols: readonly VenueSymbol[], more: Partial<SceneOptions> = {}): Promise<JoinedScene> =>
  closing(joinedScene(scratch, { symbols, ...more }));

function sources(lake: string, series: string): [string, string][] {
  const last = new Map<string, string>();
  for (const line of manifestLines(join(lake, 'binance', series)))
    last.set(String(line['period']), line['verified'] === 'rest' ? 'REST' : 'archive');
  return [...last].sort(([a], [b]) => (a < b ? -1 : 1));
}

describe('metrics --join archive', () => {
  const METRICS = 'metrics --dataset metrics --symbols BTCUSDT --join archive --days 6'.split(' ');
  const days = daysBetween('2026-11-15', '2026-11-21');
  const whole = days.flatMap((day) => Array.from({ length: 288 }, (_, index) => day + index * 300_000));
  const timesIn = async (lake: string): Promise<number[]> => {
    const rows = await rowsOf(lake, 'um/metrics/symbol=BTCUSDT');
    return rows.map((row) => (row['create_time'] as Date).getTime());
  };

  it('takes the days that the archive has from there and the tail from REST: one series without gap or double', async () => {
    const { run, lake, folder } = await scene([BTC]);
    for (const day of days.slice(0, 4)) publishMetrics(folder, BTC, day);
    const result = await run(METRICS);
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('6 ok')]);
    expect(await timesIn(lake)).toEqual(whole);
    expect(
      sources(lake, 'um/metrics/symbol=BTCUSDT')
        .map(([, source]) => source)
        .join(' '),
    ).toBe('archive archive archive archive REST REST');
    const [last] = (await rowsOf(lake, 'um/metrics/symbol=BTCUSDT')).slice(-1);
    expect(Object.values(last ?? {}).slice(1)).toEqual(metricsAt(BTC, whole.at(-1) ?? 0));
    // REST alone would refuse delisted symbols.
    const { stdout } = await cryptodl(['check', '--out', lake, '--now', '2026-11-26T08:00:00Z']);
    expect(stdout).toContain('next      cryptodl metrics --join archive --out ');
  });

  it('replaces rows from REST when the archive publishes them, and compares the two', async () => {
    const { run, lake, folder, venue } = await scene([BTC]);
    for (const day of days.slice(0, 4)) publishMetrics(folder, BTC, day);
    await run(METRICS);
    const asked = venue.log.length;
    publishMetrics(folder, BTC, days[4] ?? 0, { differing: 3 });
    const result = await run(METRICS);
    expect(result.code).toBe(0);
    expect(result.stderr).toContain('compared   288 rows of REST with those of the archive: 3 differ');
    expect(await timesIn(lake)).toEqual(whole);
    expect(
      sources(lake, 'um/metrics/symbol=BTCUSDT')
        .map(([, source]) => source)
        .join(' '),
    ).toBe('archive archive archive archive archive REST');
    // The other days stay in the file as they are: nothing but the symbols is asked of REST.
    expect(venue.log.slice(asked).map(({ path }) => path)).toEqual(['/fapi/v1/exchangeInfo']);
    const doubled = (await rowsOf(lake, 'um/metrics/symbol=BTCUSDT'))[4 * 288];
    expect(doubled?.['sum_open_interest']).toBeCloseTo(2 * (metricsAt(BTC, days[4] ?? 0)[0] ?? 0), 3);
  });

  it('says when the labels of the archive are an interval off', async () => {
    const { run, folder } = await scene([BTC]);
    for (const day of days.slice(0, 4)) publishMetrics(folder, BTC, day);
    await run(METRICS);
    publishMetrics(folder, BTC, days[4] ?? 0, { shiftMs: 300_000 });
    const result = await run([...METRICS, '--json']);
    expect(result.code).toBe(0);
    const overlap = result.events.find(({ event }) => event === 'overlap');
    expect(overlap).toMatchObject({ labelsShiftMs: 300_000, differing: 0 });
  });

  it.each(['BTCUSDT,GONEUSDT', '*USDT'])('takes the last day of a delisted symbol of %s', async (words) => {
    const gone: VenueSymbol = { symbol: 'GONEUSDT', host: 'fapi', to: days[5] ?? 0 };
    const { run, lake, folder, venue, setNow } = await scene([BTC, gone]);
    for (const symbol of [BTC, gone]) publishMetrics(folder, symbol, days[3] ?? 0);
    const line = argv`metrics --dataset metrics,openInterestHist --symbols ${words} --join archive --days 1`;
    setNow('2026-11-19T08:00:00Z');
    await run(line);
    publishMetrics(folder, gone, days[4] ?? 0);
    setNow('2026-11-20T08:00:00Z');
    const asked = venue.log.length;
    const result = await run(line);
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('3 ok')]);
    expect(sources(lake, 'um/metrics/symbol=GONEUSDT')).toEqual([
      ['2026-11-18', 'archive'],
      ['2026-11-19', 'archive'],
    ]);
    expect(venue.log.slice(asked).filter(({ query }) => query.get('symbol') === 'GONEUSDT')).toEqual([]);
  });

  it('keeps what the archive has proven of a symbol when REST alone is asked later', async () => {
    const late: VenueSymbol = { symbol: 'NEWUSDT', host: 'fapi', from: days[3] ?? 0 };
    const { run, lake, folder, setNow } = await scene([BTC, late]);
    for (const day of days) publishMetrics(folder, BTC, day);
    for (const day of days.slice(3)) {
      publishMetrics(folder, late, day);
      publishKlines(folder, late, '1h', 3_600_000, day);
    }
    const line = argv`metrics --dataset metrics --symbols NEWUSDT --days`;
    await run(argv`vision --dataset metrics --symbols NEWUSDT --days 6`);
    setNow('2026-11-23T08:00:00Z');
    expect((await run([...line, '8'])).stderr).toContain('not-listed-yet');
    const lines = manifestLines(join(lake, 'binance/um/metrics/symbol=NEWUSDT'));
    const reasons = lines.flatMap(({ reason, rest }) =>
      reason === undefined ? [] : [[reason, rest !== undefined]],
    );
    expect(reasons).toEqual([
      ['not-listed-yet', false],
      ['not-listed-yet', true],
    ]);
  });

  it('lets the month of funding rates take the place of the days that REST had', async () => {
    const { run, lake, folder, setNow } = await scene([BTC]);
    const line = ['metrics', '--dataset', 'fundingRate', '--symbols', 'BTCUSDT', '--join', 'archive'];
    publishFunding(folder, BTC, Date.parse('2026-10-01'));
    expect((await run([...line, '--from', '2026-10-01'])).code).toBe(0);
    const series = 'um/fundingRate/symbol=BTCUSDT';
    const held = sources(lake, series);
    expect(held[0]).toEqual(['2026-10', 'archive']);
    expect(held.slice(1).map(([period]) => period)).toEqual(
      daysBetween('2026-11-01', '2026-11-21').map((day) => new Date(day).toISOString().slice(0, 10)),
    );
    setNow('2026-12-01T08:00:00Z');
    expect((await run([...line, '--from', '2026-10-01'])).code).toBe(0);
    setNow('2026-12-02T08:00:00Z');
    publishFunding(folder, BTC, Date.parse('2026-11-01'));
    const result = await run([...line, '--from', '2026-10-01']);
    expect(result.code).toBe(0);
    expect(result.stderr).toMatch(/compared +90 rows of REST with those of the archive: 0 differ/);
    const rows = await rowsOf(lake, series);
    const events = fundingEvents(BTC, Date.parse('2026-10-01'), Date.parse('2026-12-02') - 1);
    expect(rows.map((row) => (row['calc_time'] as Date).getTime())).toEqual(
      events.map((event) => event.fundingTime),
    );
    expect(rows.map((row) => row['last_funding_rate'])).toEqual(
      events.map((event) => Number(event.fundingRate)),
    );
  });
});

describe('vision --fill rest', () => {
  const days = daysBetween('2026-11-17', '2026-11-21');
  const line = (market: string, dataset: string, n = 4): string[] =>
    argv`vision --market ${market} --dataset ${dataset} --symbols BTCUSDT --days ${String(n)} --fill rest`;

  it.each([
    ['um', FUTURE, '0'],
    ['spot', SPOT, '999'],
  ] as const)(
    'fills %s klines that the archive has not published, in the unit of its files',
    async (market, symbol, micros) => {
      const { run, lake, folder } = await scene([symbol]);
      for (const day of days.slice(0, 2)) publishKlines(folder, symbol, '1m', 60_000, day);
      const result = await run(line(market, 'klines'));
      expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('4 ok')]);
      const rows = await rowsOf(lake, `${market}/klines/interval=1m/symbol=BTCUSDT`);
      const expected = days.flatMap((day) =>
        Array.from({ length: 1440 }, (_, index) => kline(symbol, '1m', day + index * 60_000)),
      );
      expect(rows.map((row) => (row['open_time'] as Date).getTime())).toEqual(
        expected.map((cells) => Number(cells[0])),
      );
      expect(rows.map((row) => row['close'])).toEqual(expected.map((cells) => Number(cells[4])));
      // A bar ends with the last unit that its files have: a millisecond, or a microsecond.
      const [ends] = await sql(
        `SELECT list(DISTINCT epoch_us(close_time) % 1000) AS us FROM '${lake}/binance/${market}/klines/**/*.parquet'`,
      );
      expect(ends).toEqual({ us: [micros] });
      expect(
        sources(lake, `${market}/klines/interval=1m/symbol=BTCUSDT`).map(([, source]) => source),
      ).toEqual(['archive', 'archive', 'REST', 'REST']);
    },
  );

  it('replaces filled days when the archive publishes them, without asking REST again', async () => {
    const { run, lake, folder, venue } = await scene([FUTURE]);
    for (const day of days.slice(0, 2)) publishKlines(folder, FUTURE, '1m', 60_000, day);
    await run(line('um', 'klines'));
    const asked = venue.log.length;
    publishKlines(folder, FUTURE, '1m', 60_000, days[2] ?? 0);
    // Without symbols: what the lake holds goes on, also where something better than REST's rows has come.
    const result = await run(['vision']);
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('1 ok, 3 skipped')]);
    expect(result.stderr).toContain('compared   1,440 rows of REST with those of the archive: 0 differ');
    expect(venue.log.length).toBe(asked);
    const rows = await rowsOf(lake, 'um/klines/interval=1m/symbol=BTCUSDT');
    expect(new Set(rows.map((row) => (row['open_time'] as Date).getTime())).size).toBe(4 * 1440);
    expect(rows.length).toBe(4 * 1440);
  });

  it('keeps a filled day when the archive publishes it with fewer rows, says so with --quiet, and takes a whole one later', async () => {
    const { run, lake, folder } = await scene([FUTURE]);
    const series = 'um/klines/interval=1m/symbol=BTCUSDT';
    for (const day of days.slice(0, 2)) publishKlines(folder, FUTURE, '1m', 60_000, day);
    await run(line('um', 'klines'));
    const lacks = Array.from({ length: 1020 }, (_, index) => 420 + index);
    publishKlines(folder, FUTURE, '1m', 60_000, days[2] ?? 0, { lacks });
    const cut = await run(['vision', '--quiet']);
    expect([cut.code, cut.stderr]).toEqual([0, expect.stringContaining('420 rows, the lake holds 1440')]);
    expect(await rowsOf(lake, series)).toHaveLength(4 * 1440);
    const again = await run(['vision']);
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('to fetch   nothing')]);
    publishKlines(folder, FUTURE, '1m', 60_000, days[2] ?? 0);
    const whole = await run(['vision']);
    expect(whole.stderr).toContain('compared   1,440 rows of REST with those of the archive: 0 differ');
    expect(await rowsOf(lake, series)).toHaveLength(4 * 1440);
  });

  it.each(['1h', '1d'])('takes %s bars only when they are over by the clock of REST', async (interval) => {
    const { run, lake, folder, setNow } = await scene([FUTURE]);
    setNow('2026-11-20T08:30:00Z');
    const stepMs = interval === '1h' ? DAY_MS / 24 : DAY_MS;
    publishKlines(folder, FUTURE, interval, stepMs, days[2] ?? 0);
    const now = '2026-11-21T08:30:00Z';
    const args = [...line('um', 'klines', 2), '--interval', interval];
    const closes = async (): Promise<unknown[]> =>
      (await rowsOf(lake, `um/klines/interval=${interval}/symbol=BTCUSDT`)).map((row) => row['close']);
    const bars = Array.from({ length: (2 * DAY_MS) / stepMs }, (_, index) => (days[2] ?? 0) + index * stepMs);
    const expected = bars.map((at) => Number(kline(FUTURE, interval, at)[4]));
    const ahead = await run([...args, '--now', now]);
    expect([ahead.code, await closes()]).toEqual([0, expected.slice(0, interval === '1h' ? 32 : 1)]);
    setNow(now);
    expect([(await run(args)).code, await closes()]).toEqual([0, expected]);
  });

  it('lacks the rest of an open day of trades that no later run asked for again', async () => {
    const { run, lake, folder, setNow } = await scene([FUTURE]);
    setNow('2026-11-20T08:30:00Z');
    const key = 'data/futures/um/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-2026-11-18.zip';
    const [trade] = aggTrades(FUTURE, Date.parse('2026-11-18'), Date.parse('2026-11-19'));
    const { a = 0, p = 0, q = 0, f = 0, l = 0, T = 0 } = trade ?? {};
    publish(folder, key, `${[a, p, q, f, l, T, true].join(',')}\n`);
    expect((await run([...line('um', 'aggTrades', 1), '--now', '2026-11-21T08:30:00Z'])).code).toBe(0);
    const { stdout } = await cryptodl(['check', '--quiet', '--out', lake, '--now', '2026-11-25T08:00:00Z']);
    expect(stdout).toContain('behind: 3 days');
  });

  it('leaves a gap a gap where REST does not serve our place, and says so once', async () => {
    const { run, folder, venue } = await scene([FUTURE], { restricted: ['fapi'] });
    for (const day of days.slice(0, 2)) publishKlines(folder, FUTURE, '1m', 60_000, day);
    const result = await run(line('um', 'klines'));
    expect(result.code).toBe(0);
    expect(result.stderr.match(/does not serve the location/g)).toHaveLength(1);
    expect(result.stderr).toContain('2 absent, not-published-yet');
    expect(venue.log.length).toBe(1);
  });

  it('brings every trade once, by id, as far back as REST answers', async () => {
    const { run, lake, folder } = await scene([FUTURE]);
    const day = Date.parse('2026-11-18');
    const trades = [...aggTrades(FUTURE, day, day + DAY_MS - 1)];
    const header = 'agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker';
    publish(
      folder,
      'data/futures/um/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-2026-11-18.zip',
      `${[header, ...trades.map(({ a, p, q, f, l, T, m }) => [a, p, q, f, l, T, m].join(','))].join('\n')}\n`,
    );
    const result = await run('vision --dataset aggTrades --symbols BTCUSDT --days 3 --fill rest'.split(' '));
    // 2026-11-19 began more than 48 hours ago.
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('2 ok, 1 absent')]);
    const rows = await rowsOf(lake, 'um/aggTrades/symbol=BTCUSDT');
    const next = [...aggTrades(FUTURE, Date.parse('2026-11-20'), Date.parse('2026-11-21') - 1)];
    expect(rows.map((row) => Number(row['agg_trade_id']))).toEqual([...trades, ...next].map(({ a }) => a));
  });
});
