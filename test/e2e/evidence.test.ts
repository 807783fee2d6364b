/** Reasons for absence need evidence: what the archive has of a symbol, and whether its market goes on. */
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArchive, makeCsv } from '../../scripts/synthetic-archive.js';
import { cryptodl } from '../helpers/cli.js';
import { hourlyBars, publish } from '../helpers/published.js';
import { useScene } from '../helpers/scene.js';

const from = '2026-07-01';
const scene = useScene({
  archive: [
    { from: '2026-05-01', to: '2026-11-19' },
    { from: '2026-05-01', to: '2026-11-19', interval: '1d' },
    // All datasets of a symbol end together.
    { from, to: '2026-10-10', symbols: ['GONEUSDT'] },
    { from, to: '2026-10-10', symbols: ['GONEUSDT'], dataset: 'trades' },
    // One series alone ends, and bars of an hour end although metrics go on.
    { from, to: '2026-10-10', symbols: ['ALONEUSDT'] },
    { from, to: '2026-10-10', symbols: ['METUSDT'] },
    { from, to: '2026-10-10', symbols: ['METUSDT'], interval: '1d' },
    { from, to: '2026-11-19', symbols: ['METUSDT'], dataset: 'metrics' },
    // Another dataset ends long before.
    { from, to: '2026-10-10', symbols: ['TRIALUSDT'] },
    { from, to: '2026-07-20', symbols: ['TRIALUSDT'], dataset: 'trades' },
    // Bars of a day go on.
    { from, to: '2026-10-10', symbols: ['HALFUSDT'] },
    { from, to: '2026-11-19', symbols: ['HALFUSDT'], interval: '1d' },
    // Listed twice, and a hole of the archive alone.
    { from: '2026-06-01', to: '2026-08-31', symbols: ['TWICEUSDT', 'PAUSEUSDT', 'HOLEUSDT'] },
    { from: '2026-10-20', to: '2026-11-19', symbols: ['TWICEUSDT', 'PAUSEUSDT', 'HOLEUSDT'] },
    { from: '2026-06-01', to: '2026-08-31', symbols: ['TWICEUSDT'], interval: '1d' },
    { from: '2026-06-01', to: '2026-11-19', symbols: ['HOLEUSDT'], dataset: 'aggTrades' },
    { from, to: '2026-08-31', symbols: ['BRIEFUSDT'] },
    { from: '2026-09-20', to: '2026-11-19', symbols: ['BRIEFUSDT'] },
    { from: '2026-08-30', to: '2026-08-31', symbols: ['BRIEFUSDT'], interval: '1d' },
    // Begins with its trades, and later than its trades.
    { from: '2026-09-05', to: '2026-11-19', symbols: ['NEWUSDT', 'LATEUSDT'] },
    { from: '2026-09-05', to: '2026-11-19', symbols: ['NEWUSDT'], dataset: 'trades' },
    { from: '2026-09-01', to: '2026-11-19', symbols: ['LATEUSDT'], dataset: 'trades' },
  ],
  flags: '--interval 1h',
  now: '2026-11-20T12:00:00Z',
});

interface Gap {
  readonly from: string;
  readonly reason: string;
  readonly evidence?: string;
  readonly isMissing: boolean;
}

async function gapsOf(
  lake: string,
  now = scene.now,
  first?: string,
): Promise<[string, string, string | undefined][]> {
  const range = ['--to', 'now', ...(first === undefined ? [] : ['--from', first])];
  const { events } = await cryptodl(['coverage', '--out', lake, '--now', now, '--json', ...range]);
  const series = events.filter(({ event }) => event === 'series') as unknown as { gaps: Gap[] }[];
  return series.flatMap(({ gaps }) =>
    gaps.map(({ from: start, reason, evidence }) => [start.slice(0, 10), reason, evidence] as const),
  ) as [string, string, string | undefined][];
}

async function checked(lake: string, now = scene.now): Promise<{ code: number | null; verdict: string }> {
  const { code, stdout } = await cryptodl(['check', '--out', lake, '--now', now, '--json']);
  const { verdict } = JSON.parse(stdout) as { verdict: string };
  return { code, verdict };
}

describe('an absent day is', () => {
  it.each([
    [
      'delisted if all datasets of the symbol end together',
      'GONEUSDT',
      ['2026-10-11', 'delisted', 'archive'],
    ],
    ['missing if another interval goes on', 'HALFUSDT', ['2026-10-11', 'stalled', undefined]],
    ['missing if metrics go on', 'METUSDT', ['2026-10-11', 'stalled', undefined]],
    ['missing if another dataset ended long before', 'TRIALUSDT', ['2026-10-11', 'stalled', undefined]],
    ['missing if the symbol has no other series', 'ALONEUSDT', ['2026-10-11', 'stalled', undefined]],
    [
      'missing before the first day if the symbol has no other series',
      'ALONEUSDT',
      ['2026-06-01', 'unknown', undefined],
    ],
    ['not traded if the symbol was listed twice', 'TWICEUSDT', ['2026-09-01', 'not-traded', 'archive']],
    ['a hole if it may be one of the archive alone', 'BRIEFUSDT', ['2026-09-01', 'hole', undefined]],
    ['a hole if another dataset has it', 'HOLEUSDT', ['2026-09-01', 'hole', undefined]],
    ['not listed yet if all datasets begin together', 'NEWUSDT', ['2026-08-01', 'not-listed-yet', 'archive']],
  ])('%s', async (_, symbol, gap) => {
    const [absent = from] = gap;
    const since = absent < '2026-09-01' ? absent : from;
    const { code, lake } = await scene.vision(`--symbols ${symbol} --from ${since}`);
    const [first] = await gapsOf(lake, scene.now, since);
    expect([code, first]).toEqual([0, gap]);
    const isExcused = gap[2] !== undefined;
    expect(await checked(lake)).toMatchObject({ verdict: isExcused ? 'complete' : 'incomplete' });
  });

  it('not traded if the symbol was listed twice, also for an order that begins days before the second time', async () => {
    const { lake } = await scene.vision('--symbols TWICEUSDT --from 2026-10-15');
    expect(await gapsOf(lake)).toEqual([['2026-10-15', 'not-traded', 'archive']]);
    expect(await checked(lake)).toEqual({ code: 0, verdict: 'complete' });
  });

  it('missing if the archive has later objects that its listing lacks', async () => {
    scene.archive.fault = (path, _, response) => {
      const isLater = /GONEUSDT-1h-2026-11-\d\d\.zip\.CHECKSUM$/.test(path);
      if (isLater) response.end('a sidecar');
      return isLater;
    };
    const { lake } = await scene.vision('--symbols GONEUSDT --from 2026-10-01');
    const [first] = await gapsOf(lake);
    expect(first).toEqual(['2026-10-11', 'stalled', undefined]);
  });

  it('missing if the daily objects begin later than those of trades', async () => {
    const { lake } = await scene.vision('--symbols LATEUSDT --from 2026-08-30');
    expect(await gapsOf(lake, scene.now, '2026-08-30')).toEqual([
      ['2026-08-30', 'not-listed-yet', 'archive'],
      ['2026-09-01', 'hole', undefined],
    ]);
    expect((await checked(lake)).verdict).toBe('incomplete');
  });

  describe('in a dataset that is published by month', () => {
    /** Publishes the settlements of a month, without those before a day. */
    function putFunding(symbol: string, period: string, since = ''): void {
      const { csv } = makeCsv({ market: 'um', dataset: 'fundingRate', symbol, period });
      const [header, ...rows] = csv.trimEnd().split('\n');
      const held = rows.filter((row) => since === '' || Number(row.split(',')[0]) >= Date.parse(since));
      const key = `data/futures/um/monthly/fundingRate/${symbol}/${symbol}-fundingRate-${period}.zip`;
      publish(scene.folder, key, [header, ...held].join('\n'));
    }

    it('tells that the symbol was traded before its daily objects begin', async () => {
      const shared = { lake: 'funded' };
      putFunding('NEWUSDT', '2026-07');
      const funding = '--symbols NEWUSDT --dataset fundingRate --from 2026-07-01 --to 2026-07-31';
      await scene.vision(funding, { ...shared, sceneFlags: '' });
      const { lake } = await scene.vision('--symbols NEWUSDT --from 2026-08-01', shared);
      expect((await gapsOf(lake)).at(-1)).toEqual(['2026-08-01', 'hole', undefined]);
    });

    it('not traded within the months that a pause begins and ends in', async () => {
      putFunding('TWICEUSDT', '2026-08');
      putFunding('TWICEUSDT', '2026-10', '2026-10-20');
      const range = '--from 2026-08-01 --to 2026-10-31';
      const { lake } = await scene.vision(`--dataset fundingRate --symbols TWICEUSDT ${range}`);
      expect(await checked(lake)).toMatchObject({ verdict: 'complete' });
    });

    it.each([
      ['a pause ends in', 'PAUSEUSDT', ['2026-08', '2026-11'], 'hole'],
      ['the symbol ends in', 'GONEUSDT', ['2026-08', '2026-09'], 'stalled'],
    ])('missing in the month that %s', async (_, symbol, months, reason) => {
      for (const period of months) putFunding(symbol, period);
      const now = '2026-12-15T12:00:00Z';
      const range = `--from 2026-08-01 --to 2026-11-30 --now ${now}`;
      const { lake } = await scene.vision(`--dataset fundingRate --symbols ${symbol} ${range}`);
      expect(await gapsOf(lake, now)).toContainEqual(['2026-10-01', reason, undefined]);
      expect(await checked(lake, now)).toMatchObject({ verdict: 'incomplete' });
    });
  });

  it('proven once: a later run asks nothing more, also of a symbol that is suspended', async () => {
    const shared = { lake: 'once' };
    await scene.vision('--symbols GONEUSDT,TWICEUSDT,NEWUSDT --from 2026-07-01', shared);
    scene.archive.requests.length = 0;
    await scene.vision('--symbols GONEUSDT,TWICEUSDT,NEWUSDT --days 7', shared);
    expect(scene.archive.requests.filter((path) => path.includes('trades'))).toEqual([]);
    expect((await checked(join(scene.scratch, 'once'))).verdict).toBe('complete');
  });

  it.each([
    ['no listing', []],
    ['a copy of the listing', ['--state-dir', scene.scratch]],
  ])('proven once: a run with %s does not doubt it', async (name, state) => {
    const shared = { lake: name.replaceAll(' ', '-') };
    const { lake } = await scene.vision(['--symbols', 'GONEUSDT', '--from', '2026-10-05', ...state], shared);
    const [end] = await gapsOf(lake);
    expect(end).toEqual(['2026-10-11', 'delisted', 'archive']);
    scene.refuse((path) => path.includes('prefix='), 503);
    const now = '2026-11-25T12:00:00Z';
    const later = ['--symbols', 'GONEUSDT', '--days', '30', '--retries', '0', '--now', now, ...state];
    await scene.vision(later, shared);
    expect(await gapsOf(lake, now)).toEqual([end]);
    expect((await checked(lake, now)).verdict).toBe('complete');
  });

  it('proven once: a run without the listings of the other datasets does not doubt it', async () => {
    const range = '--symbols GONEUSDT,TWICEUSDT,NEWUSDT --from 2026-07-01 --to 2026-11-19';
    const { lake } = await scene.vision(range);
    const proven = await gapsOf(lake);
    expect(new Set(proven.map(([, reason]) => reason))).toEqual(
      new Set(['delisted', 'not-traded', 'not-listed-yet']),
    );
    scene.refuse((path) => /prefix=.*(rades|1d|1m|metrics)/.test(path), 503);
    await scene.vision(`${range} --now 2027-01-20T12:00:00Z --retries 0`, { lake: basename(lake) });
    expect(await gapsOf(lake)).toEqual(proven);
  });

  it.each([
    ['NEWUSDT,BTCUSDT', '2026-11-19'],
    // The listing of the symbol ends with the range.
    ['GONEUSDT', '2026-10-10'],
  ])('asks for no evidence where nothing is absent: %s to %s', async (symbols, to) => {
    await scene.vision(`--symbols ${symbols} --from 2026-10-01 --to ${to}`);
    expect(scene.archive.requests.filter((path) => path.includes('rades') || path.includes('/1d/'))).toEqual(
      [],
    );
  });
});

describe('before the first day of a dataset that the configuration does not know', () => {
  const dataset = { dataset: 'indexPriceKlines', to: '2026-11-19' } as const;
  const begun = useScene({
    archive: [
      { from: '2026-05-01', to: '2026-11-19', symbols: ['BTCUSDT', 'AUSDT', 'LATEUSDT'] },
      { ...dataset, from: '2026-09-01', symbols: ['BTCUSDT', 'AUSDT'] },
      { ...dataset, from: '2026-10-01', symbols: ['LATEUSDT'] },
    ],
    flags: '--interval 1h --dataset indexPriceKlines --from 2026-08-01',
    now: '2026-11-20T12:00:00Z',
  });
  const AUGUST = ['2026-08-01', 'before-history', undefined];

  it.each([
    ['AUSDT', [AUGUST], 'complete'],
    ['LATEUSDT', [AUGUST, ['2026-09-01', 'hole', undefined]], 'incomplete'],
  ])('nothing is missing of %s, by the first day of other symbols', async (symbol, gaps, verdict) => {
    const { lake } = await begun.vision(`--symbols ${symbol}`, { lake: symbol });
    expect(await gapsOf(lake, begun.now, '2026-08-01')).toEqual(gaps);
    expect((await checked(lake, begun.now)).verdict).toBe(verdict);
  });
});

describe('the evidence for a series', () => {
  const others = useScene({
    archive: [
      { market: 'cm', from: '2026-08-01', to: '2026-11-19', symbols: ['BTCUSD_PERP', 'ADAUSD_PERP'] },
      { market: 'cm', from: '2026-08-01', to: '2026-10-10', symbols: ['XRPUSD_PERP'] },
      ...['BTCUSD', 'ADAUSD', 'XRPUSD'].map((symbol) => ({
        market: 'cm' as const,
        dataset: 'indexPriceKlines' as const,
        symbols: [symbol],
        from: '2026-08-01',
        to: symbol === 'BTCUSD' ? '2026-11-19' : '2026-10-10',
      })),
      { from: '2026-06-01', to: '2026-11-19', interval: '1d' },
      // The market goes on, on the next day and two weeks later.
      ...(['1h', '1m'] as const).flatMap((interval) => [
        { from: '2026-09-10', to: '2026-09-12', interval },
        { from: '2026-11-18', to: '2026-11-19', interval },
      ]),
      { from: '2026-06-01', to: '2026-10-31', interval: '1mo', cadence: 'monthly' },
      { from: '2026-06-01', to: '2026-07-10', interval: '1d', symbols: ['GONEUSDT'] },
      { from: '2026-06-01', to: '2026-07-31', interval: '1mo', cadence: 'monthly', symbols: ['GONEUSDT'] },
      { from: '2026-07-01', to: '2026-11-19', dataset: 'aggTrades' },
    ],
    now: '2026-11-20T12:00:00Z',
  });
  const ofPair = '--market cm --dataset indexPriceKlines --interval 1h --from 2026-10-01 --symbols';

  it.each([
    ['of a pair is that of its contract', `${ofPair} XRPUSD`, 'complete'],
    ['of a pair is that of its contract, which goes on', `${ofPair} ADAUSD`, 'incomplete'],
    [
      'of bars of a month is that of days',
      '--interval 1mo --symbols GONEUSDT --from 2026-06 --to 2026-10',
      'complete',
    ],
  ])('%s', async (title, flags, verdict) => {
    const { lake } = await others.vision(flags, { lake: title.replaceAll(' ', '-') });
    expect(await checked(lake, others.now)).toMatchObject({ verdict });
  });

  it('of bars that begin or end within a day is that of other intervals of the lake', async () => {
    const hours = (symbol: string, interval: string, first: number, end: number): void => {
      const day = '2026-09-10';
      const { csv } = makeCsv({ market: 'um', dataset: 'klines', symbol, interval, period: day });
      const [header = '', ...rows] = csv.trimEnd().split('\n');
      const isWithin = (row: string): boolean => {
        const hour = new Date(Number(row.split(',')[0])).getUTCHours();
        return hour >= first && hour < end;
      };
      const text = [header, ...rows.filter(isWithin)].join('\n');
      publish(
        others.folder,
        `data/futures/um/daily/klines/${symbol}/${interval}/${symbol}-${interval}-${day}.zip`,
        text,
      );
    };
    for (const symbol of ['HEADUSDT', 'TAILUSDT', 'DAYUSDT']) {
      hours(symbol, '1h', symbol === 'TAILUSDT' ? 5 : 7, symbol === 'HEADUSDT' ? 20 : 12);
      hours(symbol, '1m', symbol === 'DAYUSDT' ? 7 : 5, symbol === 'DAYUSDT' ? 12 : 20);
    }
    const range = '--interval 1h,1m --from 2026-09-10 --to 2026-09-10';
    for (const [symbol, verdict] of [
      ['HEADUSDT', 'incomplete'],
      ['TAILUSDT', 'incomplete'],
      ['DAYUSDT', 'complete'],
    ] as const) {
      const { lake } = await others.vision(`${range} --symbols ${symbol}`, { lake: symbol });
      expect([symbol, (await checked(lake, others.now)).verdict]).toEqual([symbol, verdict]);
    }
  });

  it('of an end within a held day is asked for by a later run that fetches nothing', async () => {
    const days = ['2026-09-10', '2026-09-11'] as const;
    for (const day of days) {
      const key = (interval: string): string =>
        `data/futures/um/daily/klines/ENDUSDT/${interval}/ENDUSDT-${interval}-${day}.zip`;
      publish(others.folder, key('1h'), hourlyBars([day], 1, { hours: day === days[1] ? 12 : 24 }));
      publish(others.folder, key('1d'), 'x');
    }
    const verdicts: string[] = [];
    for (const now of ['2026-09-15T12:00:00Z', '2026-10-05T12:00:00Z']) {
      const asked = `--interval 1h --symbols ENDUSDT --from ${days[0]} --to ${days[1]} --now ${now}`;
      const { lake } = await others.vision(asked, { lake: 'end' });
      verdicts.push((await checked(lake, now)).verdict);
    }
    expect(verdicts).toEqual(['incomplete', 'complete']);
  });

  it.each([
    ['lacks rows if the archive has earlier days', 'BTCUSDT', 'incomplete'],
    ['is whole if the symbol began on that day', 'NEWUSDT', 'complete'],
    ['lacks rows if the archive has nothing else of the symbol', 'ONLYUSDT', 'incomplete'],
  ])('that begins at noon of the first ordered day %s', async (_, symbol, verdict) => {
    const days = ['07', '08', '09', '10', '11', '12'].map((day) => `2026-09-${day}`);
    for (const [at, day] of days.entries()) {
      if (symbol !== 'BTCUSDT' && day < '2026-09-09') continue;
      const { csv } = makeCsv({ market: 'um', dataset: 'trades', symbol, period: day });
      const isCut = day === '2026-09-09';
      const lines = csv.split('\n');
      const noon = Date.parse(`${day}T12:00:00Z`);
      const kept = lines.filter((line, index) => index === 0 || !isCut || Number(line.split(',')[4]) >= noon);
      expect([at, kept.length < lines.length - 10]).toEqual([at, isCut]);
      publish(
        others.folder,
        `data/futures/um/daily/trades/${symbol}/${symbol}-trades-${day}.zip`,
        kept.join('\n'),
      );
      if (symbol === 'NEWUSDT')
        publish(
          others.folder,
          `data/futures/um/daily/aggTrades/${symbol}/${symbol}-aggTrades-${day}.zip`,
          'x',
        );
    }
    const range = '--from 2026-09-09 --to 2026-09-12';
    const { lake } = await others.vision(`--dataset trades --symbols ${symbol} ${range}`, { lake: symbol });
    expect(await checked(lake, others.now)).toMatchObject({ verdict });
  });
});

describe('publication that stalls for weeks', () => {
  const stalled = useScene({
    archive: [undefined, '1d'].map((interval) => ({
      from: '2026-03-01',
      to: '2026-03-20',
      symbols: ['AUSDT', 'BUSDT', 'CUSDT'],
      ...(interval === undefined ? {} : { interval }),
    })),
    flags: '--interval 1h --symbols AUSDT,BUSDT,CUSDT --days 7',
  });

  it('is missing and alerted until it goes on, and then everything is fetched', async () => {
    const shared = { lake: 'stalled' };
    const run = (day: string) => stalled.vision(`--now ${day}T12:00:00Z`, shared);
    const { lake } = await run('2026-03-08');
    for (const day of ['2026-03-15', '2026-03-21', '2026-03-22', '2026-03-25', '2026-04-02', '2026-04-05']) {
      const { stderr } = await run(day);
      const isLate = day > '2026-03-22';
      const { verdict } = await checked(lake, `${day}T12:00:00Z`);
      expect([day, verdict, stderr.includes('publication has stalled')]).toEqual(
        isLate ? [day, 'incomplete', true] : [day, 'complete', false],
      );
    }
    expect((await gapsOf(lake, '2026-04-05T12:00:00Z')).map(([, reason]) => reason)).toContain('stalled');
    makeArchive(stalled.folder, {
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      cadence: 'daily',
      symbols: ['AUSDT', 'BUSDT', 'CUSDT'],
      from: '2026-03-21',
      to: '2026-04-17',
    });
    await run('2026-04-17');
    await run('2026-04-18');
    expect(await checked(lake, '2026-04-18T12:00:00Z')).toEqual({ code: 0, verdict: 'complete' });
    expect(await gapsOf(lake, '2026-04-18T12:00:00Z')).toEqual([]);
  });
});

describe('a symbol that ends when publication stalls', () => {
  const SYMBOLS = ['BTCUSDT', 'GONEUSDT'];
  const ended = useScene({
    archive: [{}, { interval: '1d' }].flatMap((layer) => [
      { ...layer, from: '2026-03-01', to: '2026-03-20', symbols: SYMBOLS },
      { ...layer, from: '2026-04-01', to: '2026-04-17', symbols: ['BTCUSDT'] },
    ]),
    flags: '--interval 1h --symbols GONEUSDT --from 2026-03-15',
    now: '2026-04-18T12:00:00Z',
  });

  it('is delisted from the day on which others go on', async () => {
    const { lake } = await ended.vision();
    expect(await gapsOf(lake, ended.now)).toEqual([
      ['2026-03-21', 'stalled', undefined],
      ['2026-04-01', 'delisted', 'archive'],
    ]);
  });
});

describe('--strict', () => {
  const strict = useScene({
    archive: [
      { from: '2026-05-01', to: '2026-11-19' },
      { from: '2026-05-01', to: '2026-11-14', symbols: ['LATEUSDT'] },
      { from: '2026-05-01', to: '2026-11-19', symbols: ['LATEUSDT'], interval: '1d' },
      { from: '2026-07-01', to: '2026-08-31', symbols: ['TWICEUSDT', 'HOLEUSDT'] },
      { from: '2026-10-20', to: '2026-11-19', symbols: ['TWICEUSDT', 'HOLEUSDT'] },
      { from: '2026-07-01', to: '2026-08-31', symbols: ['TWICEUSDT'], interval: '1d' },
      { from: '2026-07-01', to: '2026-11-19', symbols: ['HOLEUSDT'], dataset: 'aggTrades' },
      { from: '2026-07-01', to: '2026-11-19', symbols: ['CUTUSDT'] },
    ],
    flags: '--interval 1h --strict',
    now: '2026-11-20T12:00:00Z',
  });

  it.each([
    ['a series that is not traded for weeks', 0, 'TWICEUSDT', '2026-07-01'],
    ['a hole', 4, 'HOLEUSDT', '2026-07-01'],
    ['publication that has stalled', 4, 'LATEUSDT', '2026-11-01'],
    ['nothing, and a day that is not due', 0, 'BTCUSDT', '2026-11-01'],
  ])('for %s ends with %i, in each run', async (_, code, symbol, since) => {
    const shared = { lake: `strict-${symbol}` };
    const run = () => strict.vision(`--symbols ${symbol} --from ${since}`, shared);
    const { stderr, code: first } = await run();
    expect([first, (await run()).code]).toEqual([code, code]);
    expect(stderr.includes('--strict: 1 of 1 series lack data: cryptodl coverage --out')).toBe(code === 4);
  });

  it('does not count the rows that a listed halt explains', async () => {
    // No trades from 11:35:33 to 17:30.
    const csv = hourlyBars(['2020-02-19'], 1, { without: [12, 13, 14, 15, 16] });
    publish(strict.folder, 'data/spot/daily/klines/HALTUSDT/1h/HALTUSDT-1h-2020-02-19.zip', csv);
    const range = '--from 2020-02-19 --to 2020-02-19';
    const { code, stderr } = await strict.vision(`--market spot --symbols HALTUSDT ${range}`);
    expect([code, stderr]).toEqual([0, expect.stringContaining('1 partial')]);
  });

  it('counts a held day that lacks rows, also in later runs of the range', async () => {
    const day = '2026-11-10';
    const { csv } = makeCsv({
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      symbol: 'CUTUSDT',
      period: day,
    });
    const key = `data/futures/um/daily/klines/CUTUSDT/1h/CUTUSDT-1h-${day}.zip`;
    publish(strict.folder, key, csv.split('\n').slice(0, -5).join('\n'));
    const run = (flags: string) => strict.vision(`--symbols CUTUSDT ${flags}`, { lake: 'strict-cut' });
    const first = await run('--from 2026-11-08');
    const later = await run('--from 2026-11-08');
    const beside = await run('--from 2026-11-12 --exact');
    expect([first.code, later.code, beside.code]).toEqual([4, 4, 0]);
    // Bars of a week have no daily objects, and their month is not over.
    const weeks = await strict.vision('--interval 1w --symbols BTCUSDT --from 2026-11-01', {
      lake: 'strict-weeks',
    });
    expect(weeks.code).toBe(0);
  });
});
