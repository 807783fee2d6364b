/** `repair` with REST: it fills what the archive lacks, and fetches again what came from REST. */
import { rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { argv, cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { manifestLines } from '../helpers/lake.js';
import { publishKlines } from '../helpers/metrics-archive.js';
import { publish, publishedRows } from '../helpers/published.js';
import { closing, joinedScene, rowsOf } from '../helpers/metrics-scene.js';
import type { JoinedScene } from '../helpers/metrics-scene.js';
import { fundingEvents } from '../helpers/rest-venue-rows.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
/** REST answers bars of all hours but these. */
async function scene(
  restLacks: readonly number[] = [],
  symbols: readonly VenueSymbol[] = [BTC],
): Promise<JoinedScene> {
  const opened: JoinedScene = await closing(
    joinedScene(scratch, {
      symbols,
      disturb: (asked) => {
        if (restLacks.length === 0 || !asked.path.endsWith('/klines')) return undefined;
        const answer = opened.venue.usual(asked);
        const rows = (JSON.parse(answer.body) as [number][]).filter(
          ([at]) => !restLacks.includes(new Date(at).getUTCHours()),
        );
        return { ...answer, body: JSON.stringify(rows) };
      },
    }),
  );
  return opened;
}

/** The gaps of all series, and the exit code for 99.9 %. */
async function coverageOf(lake: string): Promise<{ readonly code: number | null; readonly gaps: unknown[] }> {
  const { code, events } = await cryptodl(['coverage', '--out', lake, '--min', '99.9', '--json']);
  const all = events.flatMap(
    ({ gaps = [] }) => gaps as { from: string; reason: string; evidence?: string }[],
  );
  return {
    code,
    gaps: all.map(({ from, reason, evidence = '-' }) => `${from.slice(8, 13)} ${reason} ${evidence}`),
  };
}

describe('repair', () => {
  it('fills a hole of the archive from REST, without symbols and flags', async () => {
    const { run, lake, folder } = await scene();
    for (const day of ['2026-11-16', '2026-11-18'])
      publishKlines(folder, BTC, '1h', 3_600_000, Date.parse(day));
    const range = ['--from', '2026-11-16', '--to', '2026-11-18'];
    const line = ['vision', '--interval', '1h', '--symbols', 'BTCUSDT', ...range];
    expect((await run(line)).stderr).toContain('1 absent, hole');
    const series = 'um/klines/interval=1h/symbol=BTCUSDT';
    expect(await rowsOf(lake, series)).toHaveLength(48);
    const repaired = await run(['repair']);
    expect([repaired.code, repaired.stderr]).toEqual([0, expect.stringMatching(/1 period from REST/)]);
    const times = (await rowsOf(lake, series)).map((row) => (row['open_time'] as Date).getTime());
    expect([times.length, new Set(times).size]).toEqual([72, 72]);
    const again = await run(['repair']);
    expect(again.stderr).toContain(`repair in ${lake}: nothing is missing in the 1 series of the lake`);
    expect(again.stderr).toContain('to fetch   nothing');
    expect((await cryptodl(['verify', '--deep', '--out', lake])).code).toBe(0);
  });

  it('takes the settlements that a month of the archive lacks from REST', async () => {
    const { run, lake, folder } = await scene();
    const events = fundingEvents(BTC, Date.parse('2026-09-01'), Date.parse('2026-10-01') - 1);
    const rows = events.map(({ fundingTime, fundingRate }) => `${fundingTime},8,${fundingRate}\n`);
    const key = 'data/futures/um/monthly/fundingRate/BTCUSDT/BTCUSDT-fundingRate-2026-09.zip';
    publish(folder, key, rows.toSpliced(20, 3).join(''));
    const what = argv`--dataset fundingRate --symbols BTCUSDT --from 2026-09-01 --to 2026-09-30`;
    expect((await run(['vision', ...what])).stderr).toContain('2026-09.zip: 87 of 90 rows');
    const checked = await cryptodl(argv`check --out ${lake} --now 2026-11-21T08:00:00Z`);
    expect(checked.stdout).toContain(`cryptodl repair --out ${lake}`);
    expect((await run(['repair'])).code).toBe(0);
    const times = (await rowsOf(lake, 'um/fundingRate/symbol=BTCUSDT')).map((row) => row['calc_time']);
    expect(times).toEqual(events.map(({ fundingTime }) => new Date(fundingTime)));
    expect((await run(['repair'])).stderr).toContain('nothing is missing in the 1 series of the lake');
  });

  it('takes the settlement from REST that a month lacks at its end by the interval of the next month', async () => {
    const symbol: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi', fundingHours: 4 };
    const { run, lake, folder } = await scene([], [symbol]);
    const [august, september, october] = ['2026-08-01', '2026-09-01', '2026-10-01'].map(Date.parse);
    const publishMonth = (month: string, hours: number, from = 0, to = 0): void => {
      const events = fundingEvents(symbol, from, to - 1).filter((_, index) => index % (hours / 4) === 0);
      const rows = events.map(({ fundingTime, fundingRate }) => `${fundingTime},${hours},${fundingRate}\n`);
      const key = `data/futures/um/monthly/fundingRate/BTCUSDT/BTCUSDT-fundingRate-${month}.zip`;
      publish(folder, key, rows.join(''));
    };
    publishMonth('2026-08', 8, august, september);
    publishMonth('2026-09', 4, september, october);
    const what = ['--dataset', 'fundingRate', '--symbols', 'BTCUSDT'];
    const range = ['--from', '2026-08-01', '--to', '2026-09-30'];
    expect((await run(['vision', ...what, ...range])).stderr).toContain('2 ok');
    expect((await coverageOf(lake)).gaps).toEqual(['31T16 cut -']);
    expect((await run(['repair'])).code).toBe(0);
    const times = (await rowsOf(lake, 'um/fundingRate/symbol=BTCUSDT')).map((row) =>
      (row['calc_time'] as Date).toISOString().slice(0, 13),
    );
    expect(times).toContain('2026-08-31T20');
    expect((await coverageOf(lake)).gaps).toEqual([]);
  });

  it('fetches a missing or damaged file again from REST when its rows came from REST', async () => {
    const { run, lake } = await scene();
    const series = 'um/openInterestHist/interval=5m/symbol=BTCUSDT';
    await run(['metrics', '--dataset', 'openInterestHist', '--symbols', 'BTCUSDT', '--days', '4']);
    const rows = await rowsOf(lake, series);
    rmSync(join(lake, 'binance', series, '2026-11.parquet'));
    expect((await run(['repair'])).code).toBe(0);
    expect(await rowsOf(lake, series)).toEqual(rows);
    truncateSync(join(lake, 'binance', series, '2026-11.parquet'), 1000);
    expect((await run(['repair'])).code).toBe(0);
    expect(await rowsOf(lake, series)).toEqual(rows);
    expect((await cryptodl(['verify', '--deep', '--out', lake])).code).toBe(0);
  });
});

const HOUR_MS = 3_600_000;
const SERIES = 'um/klines/interval=1h/symbol=BTCUSDT';
const DAY_17 = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-17.zip';
const KLINES = ['vision', '--interval', '1h', '--symbols', 'BTCUSDT'];
const THREE_DAYS = [...KLINES, '--from', '2026-11-16', '--to', '2026-11-18'];

describe('a day of the archive that lacks bars', () => {
  const LACKS = [5, 6, 20];

  /** Held, with its 69 bars. */
  async function shortDay(restLacks?: readonly number[]): Promise<JoinedScene> {
    const opened = await scene(restLacks);
    for (const day of ['2026-11-16', '2026-11-17', '2026-11-18']) {
      const lacks = day === '2026-11-17' ? LACKS : [];
      publishKlines(opened.folder, BTC, '1h', HOUR_MS, Date.parse(day), { lacks });
    }
    expect((await opened.run(THREE_DAYS)).stderr).toContain('1 partial');
    expect(await rowsOf(opened.lake, SERIES)).toHaveLength(69);
    return opened;
  }

  const lineOf = (lake: string, period: string): Readonly<Record<string, unknown>> | undefined =>
    manifestLines(join(lake, 'binance', SERIES)).findLast((line) => line['period'] === period);

  it('is taken from REST, which has them; the manifest records the replaced object', async () => {
    const { run, lake } = await shortDay();
    const before = lineOf(lake, '2026-11-17');
    const repaired = await run(['repair', '--json']);
    expect(repaired.code).toBe(0);
    expect(repaired.events.at(-1)).toMatchObject({ outcomes: { ok: 1, absent: 0, failed: 0 } });
    expect(repaired.events.find(({ event }) => event === 'overlap')).toMatchObject({
      compared: 21,
      differing: 0,
      onlyRest: 3,
      onlyArchive: 0,
    });
    const rows = await rowsOf(lake, SERIES);
    expect(rows.map((row) => (row['open_time'] as Date).getTime())).toEqual(
      Array.from({ length: 72 }, (_, hour) => Date.parse('2026-11-16') + hour * HOUR_MS),
    );
    expect(lineOf(lake, '2026-11-17')).toMatchObject({
      verified: 'rest',
      rows: 24,
      insteadOf: {
        etag: before?.['etag'],
        sha256: before?.['sha256'],
        rows: 21,
        gaps: [
          ['2026-11-17T05:00:00Z', '2026-11-17T07:00:00Z'],
          ['2026-11-17T20:00:00Z', '2026-11-17T21:00:00Z'],
        ],
      },
    });
    expect((await run(['repair'])).stderr).toContain('to fetch   nothing');
    expect((await cryptodl(['verify', '--deep', '--out', lake])).code).toBe(0);
  });

  it('keeps the rows of REST until the archive publishes the day again', async () => {
    const { run, lake, folder } = await shortDay();
    await run(['repair']);
    const held = await run([...THREE_DAYS, '--json']);
    expect(held.events.at(-1)).toMatchObject({ outcomes: { ok: 0, skipped: 3 }, exitCode: 0 });
    rmSync(join(lake, 'binance', SERIES, '2026-11.parquet'));
    expect((await run(THREE_DAYS)).code).toBe(0);
    expect(await rowsOf(lake, SERIES)).toHaveLength(72);
    expect(lineOf(lake, '2026-11-17')).toMatchObject({ verified: 'rest', insteadOf: { rows: 21 } });

    publishKlines(folder, BTC, '1h', HOUR_MS, Date.parse('2026-11-17'));
    expect((await run(THREE_DAYS)).code).toBe(0);
    expect(await rowsOf(lake, SERIES)).toHaveLength(72);
    const line = lineOf(lake, '2026-11-17');
    expect(line).toMatchObject({ key: DAY_17, verified: 'sidecar' });
    expect(line).not.toHaveProperty('insteadOf');
  });

  it('keeps the rows of the archive when REST lacks the bars too', async () => {
    const { run, lake } = await shortDay(LACKS);
    const [etag, rows] = [lineOf(lake, '2026-11-17')?.['etag'], await rowsOf(lake, SERIES)];
    const repaired = await run(['repair', '--json']);
    expect(repaired.events.at(-1)).toMatchObject({ outcomes: { ok: 0, skipped: 1, absent: 0 }, exitCode: 0 });
    expect(lineOf(lake, '2026-11-17')?.['etag']).toBe(etag);
    expect(await rowsOf(lake, SERIES)).toEqual(rows);
    const excused = ['17T05 halt rest', '17T20 halt rest'];
    expect(await coverageOf(lake)).toEqual({ code: 0, gaps: excused });
    const { stdout } = await cryptodl(['coverage', '--out', lake]);
    expect(stdout).toMatch(/BTCUSDT +100 % +4\.17 % +69 +69 +rows/);
    expect(stdout).toContain('excused: 3 rows exchange halt\n');
    const { stdout: line } = await cryptodl(['coverage', '--out', lake, '--summary']);
    expect(line).toBe('complete: nothing is missing in 1 series; excused: 3 rows exchange halt\n');
  });

  it('that all symbols lack is missing in all of them until REST has answered', async () => {
    const symbols = ['AUSDT', 'BUSDT', 'CUSDT'].map((symbol): VenueSymbol => ({ symbol, host: 'fapi' }));
    const { run, lake, folder } = await scene([], symbols);
    const lacks = Array.from({ length: 16 }, (_, hour) => 8 + hour);
    for (const symbol of symbols)
      for (const day of ['2026-11-16', '2026-11-17', '2026-11-18'])
        publishKlines(folder, symbol, '1h', HOUR_MS, Date.parse(day), {
          lacks: day === '2026-11-17' ? lacks : [],
        });
    const [from, to] = ['2026-11-16', '2026-11-18'];
    await run(['vision', '--interval', '1h', '--symbols', '*USDT', '--from', from, '--to', to]);
    const unexplained = symbols.map(() => '17T08 unexplained -');
    expect(await coverageOf(lake)).toEqual({ code: 4, gaps: unexplained });
    expect((await run(['repair'])).code).toBe(0);
    expect(await coverageOf(lake)).toEqual({ code: 0, gaps: [] });
  });

  it('keeps the rows of the archive when REST has some of the missing bars but not all rows of the archive', async () => {
    const { run, lake } = await shortDay([12]);
    const rows = await rowsOf(lake, SERIES);
    expect((await run(['repair'])).code).toBe(0);
    expect(await rowsOf(lake, SERIES)).toEqual(rows);
    expect((await coverageOf(lake)).gaps).toEqual(['17T05 unexplained -', '17T20 unexplained -']);
  });

  it('keeps the rows of the archive where rows of another day lie among them, and fetches no other day', async () => {
    const { run, lake, folder } = await scene();
    for (const day of ['2026-11-16', '2026-11-17', '2026-11-18'])
      publishKlines(folder, BTC, '1h', HOUR_MS, Date.parse(day), {
        lacks: day === '2026-11-17' ? LACKS : [],
      });
    const day16 = DAY_17.replace('11-17', '11-16');
    const [before, own] = [day16, DAY_17].map((key) => publishedRows(join(folder, key)));
    // The day before ends with the first bar of the day that lacks some.
    const rows = [...(before ?? []), own?.[0] ?? []].map((row) => `${row.join(',')}\n`);
    publish(folder, day16, rows.join(''));
    expect((await run(THREE_DAYS)).code).toBe(0);
    const held = await rowsOf(lake, SERIES);
    const repaired = await run(['repair', '--json']);
    expect(repaired.events.at(-1)).toMatchObject({ outcomes: { ok: 0, failed: 0 }, exitCode: 0 });
    expect(lineOf(lake, '2026-11-17')).toMatchObject({ key: DAY_17, rows: 21 });
    expect(await rowsOf(lake, SERIES)).toEqual(held);
  });

  it('is fetched from the archive when its file is damaged too, and then filled from REST', async () => {
    const { run, lake } = await shortDay();
    rmSync(join(lake, 'binance', SERIES, '2026-11.parquet'));
    await run(['repair']);
    expect(await rowsOf(lake, SERIES)).toHaveLength(69);
    expect((await run(['repair'])).code).toBe(0);
    expect(await rowsOf(lake, SERIES)).toHaveLength(72);
  });
});

describe('a month of the archive that lacks bars', () => {
  it('is taken from REST', async () => {
    const { run, lake, folder } = await scene();
    publishKlines(folder, BTC, '1h', HOUR_MS, Date.parse('2026-10-01'), { days: 31, lacks: [100, 101] });
    await run([...KLINES, '--from', '2026-10-01', '--to', '2026-10-31']);
    expect(await rowsOf(lake, SERIES)).toHaveLength(742);
    expect((await run(['repair'])).code).toBe(0);
    expect(await rowsOf(lake, SERIES)).toHaveLength(744);
    expect((await run([...KLINES, '--from', '2026-10-01', '--to', '2026-10-31'])).code).toBe(0);
    expect((await cryptodl(['verify', '--deep', '--out', lake])).code).toBe(0);
  });

  it('keeps the rows of the archive when not all of its gaps are known', async () => {
    const { run, lake, folder } = await scene();
    const lacks = Array.from({ length: 106 }, (_, week) => week * 7 + 3);
    publishKlines(folder, BTC, '1h', HOUR_MS, Date.parse('2026-10-01'), { days: 31, lacks });
    await run([...KLINES, '--from', '2026-10-01', '--to', '2026-10-31']);
    expect((await run(['repair'])).code).toBe(0);
    expect(await rowsOf(lake, SERIES)).toHaveLength(744 - 106);
  });
});

function klineRequests({ venue }: JoinedScene): number {
  return venue.log.filter(({ path }) => path.endsWith('/klines')).length;
}

describe('rows that REST does not have', () => {
  it('repair asks for them once, also on a held day, and again hours later', async () => {
    const hours = Array.from({ length: 24 }, (_, hour) => hour);
    const opened = await scene(hours);
    const { run, folder, lake, setNow } = opened;
    for (const day of ['2026-11-16', '2026-11-18'])
      publishKlines(folder, BTC, '1h', HOUR_MS, Date.parse(day), { lacks: day === '2026-11-16' ? [5] : [] });
    await run(THREE_DAYS);
    await run(['repair']);
    const first = klineRequests(opened);
    expect(first).toBeGreaterThan(0);
    // REST answered about the hole. About the held day it does not even have the rows of the archive.
    const gaps = ['16T05 unexplained -', '17T00 not-traded rest'];
    expect((await coverageOf(lake)).gaps).toEqual(gaps);
    const again = await run(['repair', '--json']);
    expect(again.events.at(-1)).toMatchObject({ outcomes: { skipped: 1, absent: 1 }, exitCode: 0 });
    expect(klineRequests(opened)).toBe(first);
    // What only the archive was asked for since is remembered of REST as well.
    setNow('2026-11-21T20:00:00.000Z');
    await run(THREE_DAYS);
    await run(['repair']);
    expect(klineRequests(opened)).toBeGreaterThan(first);
    expect(await rowsOf(lake, SERIES)).toHaveLength(47);
    expect((await coverageOf(lake)).gaps).toEqual(gaps);
  });

  it('of a symbol that REST does not know stay a hole', async () => {
    const { run, folder, lake } = await scene([], []);
    for (const day of ['2026-11-16', '2026-11-18'])
      publishKlines(folder, BTC, '1h', HOUR_MS, Date.parse(day));
    await run(THREE_DAYS);
    await run(['repair']);
    expect(manifestLines(join(lake, 'binance', SERIES)).at(-1)).toMatchObject({
      reason: 'hole',
      rest: { asked: 1 },
    });
    expect((await coverageOf(lake)).gaps).toEqual(['17T00 hole -']);
  });
});

describe('vision --fill rest', () => {
  async function hole(): Promise<JoinedScene> {
    const opened = await scene();
    for (const day of ['2026-11-16', '2026-11-18'])
      publishKlines(opened.folder, BTC, '1h', HOUR_MS, Date.parse(day));
    expect((await opened.run(THREE_DAYS)).stderr).toContain('1 absent, hole');
    return opened;
  }

  it('takes the object of the archive for a short day of REST, also before the range of the run', async () => {
    const { run, lake, folder, setNow } = await scene([20, 21, 22, 23]);
    const publishDays = (...days: string[]): void => {
      for (const day of days) publishKlines(folder, BTC, '1h', HOUR_MS, Date.parse(day));
    };
    const line = ['vision', '--interval', '1h', '--symbols', 'BTCUSDT', '--fill', 'rest', '--days'];
    publishDays('2026-11-18', '2026-11-19');
    expect((await run([...line, '3'])).stderr).toContain('2026-11-20: 20 of 24 rows');
    publishDays('2026-11-20', '2026-11-21', '2026-11-22', '2026-11-23');
    setNow('2026-11-24T12:00:00.000Z');
    expect((await run([...line, '2'])).code).toBe(0);
    expect(await rowsOf(lake, SERIES)).toHaveLength(6 * 24);
  });

  it('asks REST for a hole that an earlier run without --fill has recorded', async () => {
    const { run, lake } = await hole();
    const filled = await run([...THREE_DAYS, '--fill', 'rest', '--json']);
    expect(filled.events.at(-1)).toMatchObject({ outcomes: { absent: 0 }, exitCode: 0 });
    const times = (await rowsOf(lake, SERIES)).map((row) => (row['open_time'] as Date).getTime());
    expect(times.filter((time) => time < Date.parse('2026-11-19'))).toHaveLength(72);
  });

  it('is suggested when --force would rewrite a series with rows of REST, and then rewrites it', async () => {
    const { run, lake } = await hole();
    await run(['repair']);
    const rewrite = [...THREE_DAYS, '--cadence', 'daily', '--force'];
    const refused = await run(rewrite);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('holds 2026-11-17 from REST, and this run does not use REST');
    expect(refused.stderr).toContain('add --fill rest');
    expect((await run([...rewrite, '--fill', 'rest'])).code).toBe(0);
    expect(await rowsOf(lake, SERIES)).toHaveLength(72);
  });
});

it('check counts days of REST as missing while only their month of the archive is late', async () => {
  const { run, lake, folder, setNow } = await scene();
  const what = argv`--dataset fundingRate --symbols BTCUSDT`;
  publish(folder, 'data/futures/um/monthly/fundingRate/BTCUSDT/BTCUSDT-fundingRate-2026-10.zip', '1,8,1\n');
  await run(['metrics', ...what, '--days', '7']);
  setNow('2026-11-29T08:00:00.000Z');
  await run(['vision', ...what, '--days', '3']);
  const { code, stdout } = await cryptodl(argv`check --out ${lake} --now 2026-11-29T08:00:00Z`);
  expect([code, stdout]).toEqual([3, expect.stringContaining('behind: 6 days')]);
});
