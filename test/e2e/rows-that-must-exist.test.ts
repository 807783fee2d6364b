/** Objects without a fixed number of rows that lack some: days of trades, bars of several days, settlements. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { argv, cryptodl } from '../helpers/cli.js';
import { hourlyBars, publish } from '../helpers/published.js';
import { useScene } from '../helpers/scene.js';
import type { SceneRun } from '../helpers/scene.js';

const scene = useScene({ now: '2023-12-20T12:00:00Z', archive: [], flags: '--json' });
const DAY_MS = 86_400_000;

/** The days from one to another, both included. */
function days(from: string, to: string, step = 1): string[] {
  const first = Date.parse(from);
  const length = Math.floor((Date.parse(to) - first) / (step * DAY_MS)) + 1;
  return Array.from({ length }, (_, index) =>
    new Date(first + index * step * DAY_MS).toISOString().slice(0, 10),
  );
}

/** Two aggregates per day, with the ids that they have if no day is left out. */
function aggTrades(of: readonly string[]): string {
  const times = of.flatMap((day) => [1, 23].map((hour) => Date.parse(day) + hour * 3_600_000));
  const idOf = (at: number): number => Math.floor(at / (DAY_MS / 2));
  return times.map((at) => `${idOf(at)},1.5,2,${idOf(at)},${idOf(at)},${at},true\n`).join('');
}

function bars(of: readonly string[], length: number): string {
  const opens = of.map((day) => Date.parse(day));
  return opens.map((at) => `${at},1,2,1,2,5,${at + length * DAY_MS - 1},9,3,1,1,0\n`).join('');
}

function put(dataset: string, period: string, csv: string, interval?: string): void {
  const cadence = period.length === 7 ? 'monthly' : 'daily';
  const folder = interval === undefined ? 'BTCUSDT' : `BTCUSDT/${interval}`;
  const name = `BTCUSDT-${interval ?? dataset}-${period}.zip`;
  publish(scene.folder, `data/futures/um/${cadence}/${dataset}/${folder}/${name}`, csv);
}

/** The gaps of the partial outcomes, and what coverage expects and lacks in days. */
async function told(run: SceneRun, now = scene.now): Promise<unknown> {
  const { events } = await cryptodl(['coverage', '--out', run.lake, '--json', '--now', now]);
  return {
    partial: run.events
      .filter(({ outcome }) => outcome === 'partial')
      .map(({ period, gaps }) => {
        const texts = (gaps as [string, string][]).map((gap) => gap.map((at) => at.slice(0, 10)).join(' '));
        return [period, ...texts] as string[];
      })
      .sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
    lacking: events
      .filter(({ expected }) => expected !== undefined)
      .map(({ expected, missing }) => [expected, missing]),
  };
}

it.each([
  ['1w', 7, '2023-04-10', '2023-05-29 2023-06-01', [115, 3]],
  ['1w', 7, '2023-04-17', '2023-05-29 2023-06-01', [115, 10]],
  ['3d', 3, '2023-04-09', '2023-05-30 2023-06-01', [116, 2]],
  ['3d', 3, '2023-04-12', '2023-05-30 2023-06-01', [116, 5]],
] as const)(
  '%s bars: the last of a month is missing, and before %3$s that of the first day',
  async (...row) => {
    const [interval, step, first, gap, lacking] = row;
    put('klines', '2023-04-11', bars(['2023-04-11'], 1), '1h');
    const all = days(first, '2023-07-31', step);
    for (const month of ['2023-04', '2023-05', '2023-06', '2023-07']) {
      const own = all.filter((day) => day.startsWith(month));
      put('klines', month, bars(month === '2023-05' ? own.slice(0, -1) : own, step), interval);
    }
    const run = await scene.vision(`-i ${interval} -s BTCUSDT --cadence monthly --to 2023-07-31`, {
      lake: first,
    });
    expect(await told(run)).toEqual({
      partial: [
        ['2023-04', `2023-04-03 ${first}`],
        ['2023-05', gap],
      ],
      lacking: [lacking],
    });
  },
);

describe('a monthly object of trades without rows on some days', () => {
  const LACKS = ['2022-06-10', '2022-06-11', '2022-06-27', '2022-06-28', '2022-06-29', '2022-06-30'];
  const JUNE = days('2022-06-01', '2022-06-30');
  const GAPS = ['2022-06', '2022-06-10 2022-06-12', '2022-06-27 2022-07-01'];

  it.each([
    ['all before its first row, if nothing tells that the symbol began then', [92, 15]],
    ['none before its first row, if another series begins then', [83, 6]],
  ] as const)('is partial and lacks these days, and %s', async (lake, lacking) => {
    if (lacking[1] === 6) put('klines', '2022-05-10', bars(['2022-05-10'], 1), '1d');
    if (lacking[1] === 6) put('aggTrades', '2022-05-10', aggTrades(['2022-05-10']));
    put('aggTrades', '2022-05', aggTrades(days('2022-05-10', '2022-05-31')));
    put('aggTrades', '2022-06', aggTrades(JUNE.filter((day) => !LACKS.includes(day))));
    put('aggTrades', '2022-07', aggTrades(days('2022-07-01', '2022-07-31')));
    const run = await scene.vision('--dataset aggTrades -s BTCUSDT --cadence monthly --to 2022-07-31', {
      lake,
    });
    expect(await told(run)).toEqual({
      partial: [['2022-05', '2022-05-01 2022-05-10'], GAPS],
      lacking: [lacking],
    });
    expect(run.stderr).toContain(
      '2022-06.zip: no rows from 2022-06-10 00:00 to 2022-06-12 00:00, from 2022-06-27 00:00 to 2022-07-01 00:00',
    );
  });

  it('is taken from its daily objects: at once, or by repair or the next run when they are published later', async () => {
    const asked = '--dataset aggTrades -s BTCUSDT --partition month --from 2022-06-01 --to 2022-06-30';
    const later = await scene.vision(asked, { lake: 'later' });
    const other = await scene.vision(asked, { lake: 'other' });
    expect(await told(later)).toEqual({ partial: [GAPS], lacking: [[30, 6]] });
    for (const day of JUNE) put('aggTrades', day, aggTrades([day]));
    const repair = ['repair', '--out', later.lake, '--archive-url', scene.archive.url, '--now', scene.now];
    expect((await cryptodl(repair)).code).toBe(0);
    await scene.vision(asked, { lake: 'other' });
    for (const run of [later, other]) expect(await told(run)).toMatchObject({ lacking: [[30, 0]] });
    const once = await scene.vision(asked);
    expect(await told(once)).toEqual({ partial: [], lacking: [[30, 0]] });
    expect(once.stderr).toContain(
      'is taken from its daily objects: its monthly object has no rows of 6 days',
    );
  });
});

it('a row beside the grid of metrics does not hide a missing label, also if all rows are in order', async () => {
  const from = Date.parse('2023-11-10');
  for (const [index, day] of days('2023-11-10', '2023-11-12').entries()) {
    const seconds = Array.from({ length: 288 }, (_, label) => index * 86_400 + label * 300);
    // Of the second day, 03:00 is missing, and 05:02 is published in addition.
    if (index === 1) seconds.splice(seconds.indexOf(86_400 + 10_800), 1, 86_400 + 18_120);
    const times = seconds.sort((a, b) => a - b).map((second) => new Date(from + second * 1000).toISOString());
    const rows = times.map((at) => `${at.slice(0, 19).replace('T', ' ')},BTCUSDT,1,2,3,4,5,6\n`);
    put('metrics', day, rows.join(''));
  }
  const run = await scene.vision('--dataset metrics -s BTCUSDT --from 2023-11-10 --to 2023-11-12', {
    lake: 'grid',
  });
  expect(await told(run)).toEqual({
    partial: [['2023-11-11', '2023-11-11 2023-11-11']],
    lacking: [[864, 1]],
  });
});

it('prices that all symbols lack together are missing, because they are no trading', async () => {
  for (const symbol of ['AUSDT', 'BUSDT', 'CUSDT'])
    for (const day of days('2023-11-10', '2023-11-12')) {
      const key = `data/futures/um/daily/markPriceKlines/${symbol}/1h/${symbol}-1h-${day}.zip`;
      publish(scene.folder, key, hourlyBars([day], 1, { hours: day === '2023-11-11' ? 8 : 24 }));
    }
  const asked = '--dataset markPriceKlines -i 1h -s AUSDT,BUSDT,CUSDT --from 2023-11-10 --to 2023-11-12';
  const run = await scene.vision(asked, { lake: 'prices' });
  expect(await told(run)).toMatchObject({ lacking: Array.from({ length: 3 }, () => [72, 16]) });
  const summary = await cryptodl(argv`coverage --summary --out ${run.lake} --now ${scene.now}`);
  expect(summary.stdout).toContain('incomplete: 3 of 3 series lack 48 rows');
  const target = join(run.lake, '..', 'exported');
  const exported = await cryptodl(argv`export csv --require-complete --target ${target} --out ${run.lake}`);
  expect([exported.code, existsSync(target)]).toEqual([4, false]);
});

describe('days of aggregates that lack ids', () => {
  const DAY = Date.parse('2023-05-10');
  /** Aggregates of a day, one every two minutes, whose ids go on from day to day. */
  function everyTwoMinutes(day: number, isHeld: (minute: number) => boolean): string {
    const minutes = Array.from({ length: 720 }, (_, index) => 2 * index).filter(isHeld);
    const rows = minutes.map((minute) => [DAY + day * DAY_MS + minute * 60_000, day * 720 + minute / 2]);
    return rows.map(([at = 0, id = 0]) => `${id},1.5,2,${id},${id},${at},true\n`).join('');
  }
  const whole = (): boolean => true;

  it('none are missing on days without an object over which the ids go on', async () => {
    const ids = [...Array(30).keys()];
    const csv = (own: number[], hours: number): string =>
      own.map((id) => `${id},1.5,2,${id},${id},${DAY + (id + hours) * 3_600_000},true\n`).join('');
    put('aggTrades', '2023-05-10', csv(ids.slice(0, 15), 0));
    put('aggTrades', '2023-05-13', csv(ids.slice(15), 62));
    const run = await scene.vision('--dataset aggTrades -s BTCUSDT --from 2023-05-10 --to 2023-05-13');
    expect(await told(run)).toEqual({ partial: [], lacking: [[2, 0]] });
  });

  it.each<[string, (minute: number) => boolean, string[][], number]>([
    ['19 minutes at its end are missing', (minute) => minute < 1421, [], 1],
    ['92 minutes at its end are missing', (minute) => minute < 1348, [], 1],
    [
      'six hours within it are missing',
      (minute) => minute < 400 || minute >= 760,
      [['2023-05-12', '2023-05-12 2023-05-12']],
      1,
    ],
    ['nothing is missing', whole, [], 0],
  ])('%s', async (name, isHeld, partial, missing) => {
    for (const day of [0, 1, 2, 3, 4])
      put(
        'aggTrades',
        new Date(DAY + day * DAY_MS).toISOString().slice(0, 10),
        everyTwoMinutes(day, day === 2 ? isHeld : whole),
      );
    const asked = '--dataset aggTrades -s BTCUSDT --from 2023-05-10 --to 2023-05-14';
    const run = await scene.vision(asked, { lake: name.replaceAll(' ', '-') });
    expect(await told(run)).toEqual({ partial, lacking: [[5, missing]] });
  });

  it.each<[string, number, number, (day: number, minute: number) => boolean]>([
    ['the first day', 0, 3, (day, minute) => day > 0 || minute >= 40],
    ['the last day', 0, 3, (day, minute) => day < 2 || minute < 1400],
    ['a month', 22, 30, (day, minute) => day < 51 || minute < 1400],
  ])(
    '40 minutes of %s are missing, at a side that no other object proves',
    async (name, first, count, isHeld) => {
      const all = days('2023-05-10', '2023-06-30').slice(first, first + count);
      const csvs = all.map((_, at) => everyTwoMinutes(first + at, (minute) => isHeld(first + at, minute)));
      if (first > 0) put('aggTrades', '2023-06', csvs.join(''));
      else for (const [at, day] of all.entries()) put('aggTrades', day, csvs[at] ?? '');
      const asked = `--dataset aggTrades -s BTCUSDT --from ${all[0]} --to ${all.at(-1)}`;
      const run = await scene.vision(asked, { lake: name.replaceAll(' ', '-') });
      expect(await told(run)).toMatchObject({ lacking: [[count, 1]] });
    },
  );

  it.each([
    ['ids', 5, 0],
    ['trade ids', 0, 5],
  ])('counts %s that two days have as conflicts', async (_, ids, trades) => {
    put('aggTrades', '2023-05-10', everyTwoMinutes(0, whole));
    const again = (_row: string, id: string): string =>
      [Number(id) - ids, 1.5, 2, Number(id) - trades, Number(id) - trades].join(',');
    put('aggTrades', '2023-05-11', everyTwoMinutes(1, whole).replaceAll(/^(\d+),1\.5,2,\d+,\d+/gm, again));
    const asked = '--dataset aggTrades -s BTCUSDT --from 2023-05-10 --to 2023-05-11';
    const run = await scene.vision(asked, { lake: `overlap-${ids}` });
    const { events } = await cryptodl(['coverage', '--out', run.lake, '--json', '--now', scene.now]);
    expect(events[0]).toMatchObject({ missing: 0, conflicts: 5 });
  });

  it.each([
    ['spot', 1],
    // Aggregates of the futures markets leave out the trades of liquidations.
    ['um', 0],
  ] as const)('trade ids between two aggregates of %s are missing', async (market, missing) => {
    const path = market === 'spot' ? 'spot' : 'futures/um';
    const rows = [0, 1, 2, 3].map((at) => [at, DAY + at * 6 * 3_600_000, at < 2 ? at : at + 5]);
    const csv = rows.map(([id, time, trade]) => `${id},1.5,2,${trade},${trade},${time},true,true\n`).join('');
    publish(
      scene.folder,
      `data/${path}/daily/aggTrades/ETHUSDT/ETHUSDT-aggTrades-2023-05-10.zip`,
      market === 'spot' ? csv : csv.replaceAll(',true\n', '\n'),
    );
    const asked = `--market ${market} --dataset aggTrades -s ETHUSDT --from 2023-05-10 --to 2023-05-10`;
    const run = await scene.vision(asked, { lake: `ranges-${market}` });
    expect(await told(run)).toMatchObject({ lacking: [[1, missing]] });
    // No run mends an object of a day that the archive has like this. REST may have the trades.
    const { events } = await cryptodl(['check', '--out', run.lake, '--json', '--now', scene.now]);
    expect(events).toMatchObject([{ orders: [{ lacking: missing, mend: missing === 0 ? [] : ['repair'] }] }]);
  });

  it.each([0, 2])('a halt over midnight explains a silence, but not %i missing ids', async (missing) => {
    // The exchange was down from 2018-02-08T00:28 to 2018-02-09T10:00.
    for (const [day, hour, first, minutes] of [
      ['2018-02-08', 0, 0, 1],
      ['2018-02-09', 11, 20 + missing, 39],
    ] as const) {
      const start = Date.parse(day) + hour * 3_600_000;
      const rows = Array.from({ length: 20 }, (_, at) => [first + at, start + at * minutes * 60_000]);
      const csv = rows.map(([id, time]) => `${id},1.5,2,${id},${id},${time},true,true\n`).join('');
      publish(scene.folder, `data/spot/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-${day}.zip`, csv);
    }
    const asked = '--market spot --dataset aggTrades -s BTCUSDT --from 2018-02-08 --to 2018-02-09';
    const run = await scene.vision(asked, { lake: `halt-${missing}` });
    expect(await told(run)).toMatchObject({ lacking: [[2, missing === 0 ? 0 : 2]] });
  });

  it('a silence of six hours over which the ids go on is whole', async () => {
    const quiet = everyTwoMinutes(3, (minute) => minute >= 360)
      .split('\n')
      .filter((line) => line !== '');
    const renumbered = quiet.map((line, index) => [2160 + index, ...line.split(',').slice(1)].join(','));
    put('aggTrades', '2023-05-12', everyTwoMinutes(2, whole));
    put('aggTrades', '2023-05-13', `${renumbered.join('\n')}\n`);
    for (const day of ['2023-05-10', '2023-05-11'])
      put('aggTrades', day, everyTwoMinutes((Date.parse(day) - DAY) / DAY_MS, whole));
    const run = await scene.vision('--dataset aggTrades -s BTCUSDT --from 2023-05-10 --to 2023-05-13', {
      lake: 'quiet',
    });
    expect(await told(run)).toEqual({ partial: [], lacking: [[4, 0]] });
  });
});

describe('an object whose rows are one interval too late lacks the first row of its period', () => {
  const STEP_MS = { '5m': 300_000, '1h': 3_600_000, '1d': DAY_MS } as const;
  type Interval = keyof typeof STEP_MS | '1mo';

  /** The times of the rows of a period. */
  function timesOf(period: string, interval: Interval): number[] {
    const from = Date.parse(period);
    if (interval === '1mo') return [from];
    const end = new Date(from);
    if (period.length === 7) end.setUTCMonth(end.getUTCMonth() + 1);
    const length = (period.length === 7 ? end.getTime() - from : DAY_MS) / STEP_MS[interval];
    return Array.from({ length }, (_, index) => from + index * STEP_MS[interval]);
  }

  function rowOf(dataset: string, at: number): string {
    const label = new Date(at).toISOString().slice(0, 19).replace('T', ' ');
    return dataset === 'metrics' ? `${label},BTCUSDT,1,2,1,2,1,2\n` : `${at},1,2,1,2,5,${at + 1},9,3,1,1,0\n`;
  }

  it.each<[string, Interval, [string, string, string], string, unknown]>([
    ['klines', '1d', ['2023-05-10', '2023-05-11', '2023-05-12'], '2023-05-12', [3, 1]],
    ['klines', '1h', ['2023-05-10', '2023-05-11', '2023-05-12'], '2023-05-11', [72, 1]],
    ['klines', '5m', ['2023-04', '2023-05', '2023-06'], '2023-05', [26_208, 1]],
    ['klines', '1d', ['2023-04', '2023-05', '2023-06'], '2023-05-02', [91, 1]],
    ['klines', '1mo', ['2023-04', '2023-05', '2023-06'], '2023-06', [91, 31]],
    ['metrics', '5m', ['2026-07-10', '2026-07-11', '2026-07-12'], '2026-07-11', [864, 1]],
  ])('%s %s %j', async (...[dataset, interval, periods, gapEnd, lacking]) => {
    const [, shifted, after] = periods;
    const next = timesOf(after, interval)[0] ?? 0;
    for (const period of periods) {
      const own = timesOf(period, interval);
      const times = period === shifted ? [...own.slice(1), next] : own;
      const csv = times.map((at) => rowOf(dataset, at)).join('');
      put(dataset, period, csv, dataset === 'klines' ? interval : undefined);
    }
    const layer = dataset === 'klines' ? `-i ${interval}` : '';
    const now = '2026-09-20T12:00:00Z';
    const cadence = shifted.length === 7 ? 'monthly' : 'daily';
    for (const format of ['parquet', 'csv']) {
      const range = `--from ${periods[0]} --to ${after} --now ${now}`;
      const run = await scene.vision(
        `--dataset ${dataset} ${layer} -s BTCUSDT --cadence ${cadence} --format ${format} ${range}`,
        { lake: `${dataset}-${interval}-${cadence}-${format}` },
      );
      const gap = `${shifted.padEnd(10, '-01')} ${gapEnd.padEnd(10, '-01')}`;
      expect(await told(run, now)).toEqual({ partial: [[shifted, gap]], lacking: [lacking] });
    }
  });
});

describe('funding rates that lack a week and a settlement', () => {
  /** Settlements every 8 hours of these days, this many milliseconds after the hour. */
  function settlements(of: readonly string[], jitterMs: number, lacks = ''): string {
    const times = of.flatMap((day) => [0, 8, 16].map((hour) => Date.parse(day) + hour * 3_600_000));
    const rows = times.filter((at) => at !== Date.parse(lacks));
    return rows.map((at) => `${at + jitterMs},8,0.0001\n`).join('');
  }
  const [JANUARY, FEBRUARY] = [days('2023-01-01', '2023-01-31'), days('2023-02-01', '2023-02-28')];
  const asked = '--dataset fundingRate -s BTCUSDT --from 2023-01-01 --to 2023-03-31';

  it('are partial and lack these days, until the months are published again with other milliseconds', async () => {
    put('fundingRate', '2023-01', settlements(JANUARY, 1, '2023-01-20T16:00Z'));
    const others = FEBRUARY.filter((day) => day < '2023-02-10' || day > '2023-02-16');
    put('fundingRate', '2023-02', settlements(others, 2));
    put('fundingRate', '2023-03', settlements(days('2023-03-01', '2023-03-31'), 3));
    const run = await scene.vision(asked, { lake: 'funding' });
    expect(await told(run)).toEqual({
      partial: [
        ['2023-01', '2023-01-20 2023-01-21'],
        ['2023-02', '2023-02-10 2023-02-17'],
      ],
      lacking: [[90, 8]],
    });
    expect(run.stderr).toContain('fundingRate-2023-02.zip: 63 of 84 rows');
    const target = ['--target', scene.newFolder(), '--require-complete'];
    const exported = await cryptodl(['export', 'csv', '--out', run.lake, '--now', scene.now, ...target]);
    expect([exported.code, exported.stderr]).toEqual([4, expect.stringContaining('nothing is exported')]);
    put('fundingRate', '2023-01', settlements(JANUARY, 40));
    put('fundingRate', '2023-02', settlements(FEBRUARY, 41));
    const again = await scene.vision([...asked.split(' '), '--recheck-days', '400'], { lake: 'funding' });
    expect(again.stderr).toContain('2 ok, 1 skipped');
    expect(await told(again)).toEqual({ partial: [], lacking: [[90, 0]] });
  });
});

describe('settlements on both sides of the end of a month', () => {
  /** `2023-01-31T16` with the hours since the settlement before it. */
  type Settlement = readonly [hour: string, hours: number];
  const every = (hours: number, of: readonly string[]): Settlement[] =>
    of.flatMap((day) =>
      Array.from({ length: 24 / hours }, (_, index): Settlement => [
        `${day}T${String(index * hours).padStart(2, '0')}`,
        hours,
      ]),
    );
  const csv = (rows: readonly Settlement[]): string =>
    rows
      .map(([hour, hours], index) => `${Date.parse(`${hour}:00Z`) + (index % 30)},${hours},0.0001\n`)
      .join('');
  const JANUARY = days('2023-01-01', '2023-01-31');
  const FEBRUARY = days('2023-02-01', '2023-02-28');
  const until = (hour: string, rows: Settlement[]): Settlement[] => rows.filter(([at]) => at <= hour);
  const since = (hour: string, rows: Settlement[]): Settlement[] => rows.filter(([at]) => at >= hour);

  it.each<[string, Settlement[], Settlement[], number]>([
    ['no settlement is missing', every(8, JANUARY), every(8, FEBRUARY), 0],
    [
      'the interval becomes shorter on the last day, and its first settlement is missing',
      every(8, JANUARY),
      every(4, FEBRUARY),
      1,
    ],
    [
      'the interval becomes shorter on the last day',
      [...every(8, JANUARY), ['2023-01-31T20', 4]],
      every(4, FEBRUARY),
      0,
    ],
    [
      'the interval becomes longer with the first settlement of a month',
      until('2023-01-31T16', every(4, JANUARY)),
      every(8, FEBRUARY),
      0,
    ],
    [
      'the interval becomes longer within the first day of a month',
      every(4, JANUARY),
      [['2023-02-01T04', 8], ...since('2023-02-01T12', every(4, FEBRUARY))],
      1,
    ],
    ['the last of a month is missing', until('2023-01-31T08', every(8, JANUARY)), every(8, FEBRUARY), 1],
    ['the first of a month is missing', every(8, JANUARY), since('2023-02-01T08', every(8, FEBRUARY)), 1],
    [
      'the last and the first are missing',
      until('2023-01-31T08', every(8, JANUARY)),
      since('2023-02-01T08', every(8, FEBRUARY)),
      2,
    ],
  ])('%s', async (name, january, february, missing) => {
    put('fundingRate', '2023-01', csv(january));
    put('fundingRate', '2023-02', csv(february));
    const asked = '--dataset fundingRate -s BTCUSDT --from 2023-01-01 --to 2023-02-28';
    const run = await scene.vision(asked, { lake: name.replaceAll(' ', '-') });
    expect(await told(run)).toMatchObject({ lacking: [[59, missing]] });
    const { code } = await cryptodl(['check', '--out', run.lake, '--now', scene.now]);
    expect(code === 0).toBe(missing === 0);
  });
});

describe('rows at irregular times, judged by the rate of their day', () => {
  const text = (ms: number): string => new Date(ms).toISOString();
  /** A trade every 2 to 58 seconds, with ids that leave out some. */
  function trades(day: string, isHeld: (minute: number) => boolean): string {
    const rows = Array.from(
      { length: 2880 },
      (_, index) => Date.parse(day) + index * 30_000 + ((index * 7919) % 28_000),
    );
    const held = rows
      .map((at, index) => [at, index] as const)
      .filter(([at]) => isHeld((at - Date.parse(day)) / 60_000));
    return held
      .map(([at, index]) => `${Math.floor(at / 1000) * 10 + (index % 3)},1.5,2,3,${at},true\n`)
      .join('');
  }
  /** Snapshots of ten bands, about every 30 seconds. */
  function book(day: string, isHeld: (minute: number) => boolean): string {
    const bands = [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5];
    const times = Array.from({ length: 2880 }, (_, index) => index * 30_000 + ((index * 3) % 7) * 1000);
    const held = times
      .filter((ms) => isHeld(ms / 60_000))
      .map((ms) =>
        text(Date.parse(day) + ms)
          .slice(0, 19)
          .replace('T', ' '),
      );
    return `timestamp,percentage,depth,notional\n${held.flatMap((at, index) => bands.map((band) => `${at},${band},${index + 1},9\n`)).join('')}`;
  }
  const DAYS = days('2023-03-01', '2023-03-05');
  const CASES: readonly [string, (minute: number) => boolean, string[]][] = [
    ['nothing is missing', () => true, []],
    ['19 minutes at its end are missing', (minute) => minute < 1421, ['2023-03-03T23:4', '2023-03-04T00:00']],
    ['its first 40 minutes are missing', (minute) => minute >= 40, ['2023-03-03T00:00', '2023-03-03T00:4']],
    [
      'six hours within it are missing',
      (minute) => minute < 400 || minute >= 760,
      ['2023-03-03T06:39', '2023-03-03T12:40'],
    ],
    ['all after six hours is missing', (minute) => minute < 374, ['2023-03-03T06:13', '2023-03-04T00:00']],
    ['a pause of eight minutes is none', (minute) => minute < 400 || minute >= 402, []],
  ];

  it.each(['trades', 'bookDepth'].flatMap((dataset) => CASES.map((row) => [dataset, ...row] as const)))(
    '%s: %s',
    async (dataset, name, isHeld, gap) => {
      const make = dataset === 'trades' ? trades : book;
      for (const day of DAYS) put(dataset, day, make(day, day === '2023-03-03' ? isHeld : () => true));
      const lake = `${dataset}-${name.replaceAll(' ', '-')}`;
      const asked = `--dataset ${dataset} -s BTCUSDT --from 2023-03-01 --to 2023-03-05`;
      const run = await scene.vision(asked, { lake });
      const { events } = await cryptodl(['coverage', '--out', run.lake, '--json', '--now', scene.now]);
      const gaps =
        gap.length === 0
          ? []
          : [
              {
                from: expect.stringContaining(gap[0] ?? ''),
                to: expect.stringContaining(gap[1] ?? ''),
                reason: 'cut',
                days: 1,
              },
            ];
      expect(events[0]).toMatchObject({ expected: 5, missing: gaps.length, gaps });
      const partial = run.events.filter(({ outcome }) => outcome === 'partial');
      expect(partial.map(({ period }) => period)).toEqual(gap.length === 0 ? [] : ['2023-03-03']);
    },
  );

  it('a day with a quarter of its rows is compared with the listing again after it has left the range', async () => {
    const publishedOn = (day: string, isHeld: (minute: number) => boolean): void => {
      put('bookDepth', day, book(day, isHeld));
    };
    for (const day of DAYS) publishedOn(day, (minute) => day !== '2023-03-03' || minute % 4 < 1);
    const missingAfter = async (flags: string, today: string): Promise<unknown> => {
      const now = `${today}T12:00:00Z`;
      const asked = `--dataset bookDepth -s BTCUSDT ${flags} --now ${now}`;
      const { lake } = await scene.vision(asked, { lake: 'thin-again' });
      const flagsOf = ['--out', lake, '--to', '2023-03-05', '--now', now];
      return (await cryptodl(['coverage', '--json', ...flagsOf])).events[0]?.['missing'];
    };
    expect(await missingAfter('--from 2023-03-01', '2023-03-06')).toBe(1);
    publishedOn('2023-03-03', () => true);
    // A day of this age is compared every second day.
    await missingAfter('--days 1', '2023-03-15');
    expect(await missingAfter('--days 1', '2023-03-16')).toBe(0);
  });

  it('a day of which a later revision has more rows, but not all held ones, lacks rows', async () => {
    const asked = '--dataset trades -s BTCUSDT --from 2023-03-01 --to 2023-03-05';
    const missing = async (): Promise<unknown> => {
      const run = await scene.vision([...asked.split(' '), '--recheck-days', '400'], { lake: 'more' });
      const { events } = await cryptodl(['coverage', '--out', run.lake, '--json', '--now', scene.now]);
      return events[0]?.['missing'];
    };
    for (const day of DAYS)
      put(
        'trades',
        day,
        trades(day, (minute) => day !== '2023-03-03' || minute % 4 < 2),
      );
    expect(await missing()).toBe(0);
    put(
      'trades',
      '2023-03-03',
      trades('2023-03-03', (minute) => minute > 1),
    );
    expect(await missing()).toBe(1);
  });

  it('a day with a quarter of the rows of the days around it lacks rows', async () => {
    for (const day of DAYS)
      put('bookDepth', day, book(day, day === '2023-03-03' ? (minute) => minute % 4 < 1 : () => true));
    const run = await scene.vision('--dataset bookDepth -s BTCUSDT --from 2023-03-01 --to 2023-03-05', {
      lake: 'thin',
    });
    const { events } = await cryptodl(['coverage', '--out', run.lake, '--json', '--now', scene.now]);
    expect(events[0]).toMatchObject({
      missing: 1,
      gaps: [{ from: '2023-03-03T00:00:00.000Z', to: '2023-03-04T00:00:00.000Z', reason: 'cut' }],
    });
  });
});
