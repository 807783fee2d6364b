/** In a run that uses REST, the archive alone proves nothing about a symbol. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { argv, cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { publishFunding, publishKlines } from '../helpers/metrics-archive.js';
import { closing, daysBetween, joinedScene, NOW, rowsOf } from '../helpers/metrics-scene.js';
import type { JoinedScene } from '../helpers/metrics-scene.js';
import { DAY_MS } from '../helpers/rest-venue-types.js';
import { apiError } from '../helpers/rest-venue-answers.js';
import type { Asked, VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
const A: VenueSymbol = { symbol: 'AUSDT', host: 'fapi' };
const FROM = '2026-09-01';
const LINE = ['vision', '--symbols', 'AUSDT', '--interval', '1d', '--from', FROM];
const WITH_REST = [...LINE, '--fill', 'rest'];
/** Bars of 2026-09-01 … 2026-11-20. */
const ALL = 81;

/** The archive has all bars of BTCUSDT, and those of AUSDT without the days `[from, to)`. */
async function scene(from: string, to: string, symbol: VenueSymbol): Promise<JoinedScene> {
  const opened = await closing(joinedScene(scratch, { symbols: [BTC, symbol] }));
  for (const day of daysBetween(FROM, '2026-11-21'))
    for (const one of [BTC, symbol])
      for (const [interval, stepMs] of [['1d', DAY_MS] as const, ['1h', DAY_MS / 24] as const])
        if (one === BTC || day < Date.parse(from) || day >= Date.parse(to))
          publishKlines(opened.folder, one, interval, stepMs, day);
  return opened;
}

async function gapsOf(lake: string): Promise<unknown[]> {
  const { events } = await cryptodl(['coverage', '--out', lake, '--from', FROM, '--now', NOW, '--json']);
  const gaps = events.flatMap((event) => (event['gaps'] ?? []) as Record<string, unknown>[]);
  return gaps.map(({ reason, evidence }) => [reason, evidence]);
}

describe('rows of REST refute that a symbol', () => {
  it.each([
    ['was delisted', '2026-10-16', '2026-11-21', 'delisted'],
    ['was not traded', '2026-09-11', '2026-10-26', 'not-traded'],
    ['was not listed yet', FROM, '2026-10-16', 'not-listed-yet'],
  ])('%s', async (_, from, to, reason) => {
    const { run, lake } = await scene(from, to, { symbol: 'AUSDT', host: 'fapi' });
    expect((await run(LINE)).code).toBe(0);
    expect(await gapsOf(lake)).toEqual([[reason, 'archive']]);
    expect((await run(WITH_REST)).code).toBe(0);
    expect(await rowsOf(lake, 'um/klines/interval=1d/symbol=AUSDT')).toHaveLength(ALL);
    expect(await gapsOf(lake)).toEqual([]);
  });
});

describe('hours that the archive lacks', () => {
  const [FIRST, LAST] = [Date.parse('2026-10-01'), Date.parse('2026-10-30')];
  const HOURLY = ['vision', '--symbols', 'AUSDT', '--interval', '1h', '--from', FROM, '--fill', 'rest'];
  const HOURS = 30 * 24;

  it.each([
    ['on the first day, and REST has them', { from: FIRST }, FIRST, HOURS],
    ['on the first day, and REST too', { from: FIRST + DAY_MS / 4 }, FIRST, HOURS - 6],
    ['on the last day, and REST has them', { to: LAST + DAY_MS }, LAST, HOURS],
    ['on the last day, and REST too', { to: LAST + (DAY_MS * 3) / 4 }, LAST, HOURS - 6],
  ])('%s', async (_, life, short, rows) => {
    const symbol: VenueSymbol = { symbol: 'AUSDT', host: 'fapi', from: FIRST, to: LAST + DAY_MS, ...life };
    const { folder, run, lake } = await closing(joinedScene(scratch, { symbols: [BTC, symbol] }));
    for (const day of daysBetween(FROM, '2026-11-21')) publishKlines(folder, BTC, '1d', DAY_MS, day);
    const lacks = Array.from({ length: 6 }, (__, index) => (short === FIRST ? index : 18 + index));
    for (const day of daysBetween('2026-10-01', '2026-10-31')) {
      publishKlines(folder, symbol, '1d', DAY_MS, day);
      publishKlines(folder, symbol, '1h', DAY_MS / 24, day, day === short ? { lacks } : {});
    }
    const check = async () => (await cryptodl(['check', '--out', lake, '--now', NOW])).code;
    await run(HOURLY);
    expect(await check()).toBe(rows === HOURS ? 3 : 0);
    await run(['repair']);
    expect(await check()).toBe(0);
    expect(await rowsOf(lake, 'um/klines/interval=1h/symbol=AUSDT')).toHaveLength(rows);
  });
});

it('a symbol without rows in REST is delisted, and the next run asks REST for it once', async () => {
  const symbol: VenueSymbol = { symbol: 'AUSDT', host: 'fapi', to: Date.parse('2026-10-20') };
  const { run, lake, venue, setNow } = await scene('2026-10-16', '2026-11-21', symbol);
  expect((await run(WITH_REST)).code).toBe(0);
  // REST has four days more than the archive.
  expect(await rowsOf(lake, 'um/klines/interval=1d/symbol=AUSDT')).toHaveLength(49);
  setNow('2026-11-22T08:00:00Z');
  expect((await run(WITH_REST)).code).toBe(0);
  expect(await gapsOf(lake)).toEqual([['delisted', 'rest']]);
  setNow('2026-11-23T08:00:00Z');
  venue.log.length = 0;
  expect((await run(WITH_REST)).code).toBe(0);
  expect(venue.log.filter(({ path }) => path.endsWith('/klines')).length).toBeLessThanOrEqual(1);
});

it('REST is asked for the days before the first ones of the archive', async () => {
  const symbol: VenueSymbol = { symbol: 'AUSDT', host: 'fapi', from: Date.parse('2019-12-28') };
  const { folder, run, lake } = await closing(joinedScene(scratch, { symbols: [symbol] }));
  for (const day of daysBetween('2019-12-31', '2020-01-06'))
    for (const [interval, stepMs] of [['1d', DAY_MS] as const, ['1h', DAY_MS / 24] as const])
      publishKlines(folder, symbol, interval, stepMs, day);
  const range = ['--from', '2019-12-25', '--to', '2020-01-05'];
  expect((await run(['vision', '--symbols', 'AUSDT', '--interval', '1d', ...range])).code).toBe(0);
  expect(
    (await run(['vision', '--symbols', 'AUSDT', '--interval', '1d', ...range, '--fill', 'rest'])).code,
  ).toBe(0);
  expect(await rowsOf(lake, 'um/klines/interval=1d/symbol=AUSDT')).toHaveLength(9);
  expect((await cryptodl(['check', '--out', lake, '--now', NOW])).code).toBe(0);
});

describe('an order of rows that only REST has', () => {
  const LINE_OF = (symbols: string): string[] =>
    argv`metrics --dataset openInterestHist --symbols ${symbols}`;
  const verdictOf = async (lake: string, now: string): Promise<unknown[]> => {
    const { code, events } = await cryptodl(['check', '--out', lake, '--now', now, '--json']);
    return [code, events[0]?.['verdict']];
  };

  it('expects no days of a symbol that joins it from before those that REST has then', async () => {
    const { run, lake, setNow } = await closing(joinedScene(scratch, { symbols: [BTC, A] }));
    await run([...LINE_OF('BTCUSDT'), '--days', '29']);
    setNow('2026-12-15T08:00:00Z');
    await run([...LINE_OF('BTCUSDT,AUSDT'), '--days', '29']);
    expect(await verdictOf(lake, '2026-12-15T09:00:00Z')).toEqual([0, 'complete']);
  });

  it('lacks days that it has lost, also when a run asks for all days', async () => {
    const { run, lake, setNow } = await closing(joinedScene(scratch, { symbols: [BTC, A] }));
    await run([...LINE_OF('BTCUSDT'), '--days', '29']);
    setNow('2027-01-10T08:00:00Z');
    await run([...LINE_OF('BTCUSDT'), '--to', 'yesterday']);
    expect(await verdictOf(lake, '2027-01-10T09:00:00Z')).toEqual([4, 'incomplete']);
  });

  it('lacks the days that REST had when they were ordered, also if no run has asked for them', async () => {
    const { run, lake, setNow } = await closing(joinedScene(scratch, { symbols: [BTC] }));
    await run([...LINE_OF('BTCUSDT'), '--days', '29']);
    // The first run was killed before its first rows.
    for (const part of ['binance', '_manifests']) rmSync(join(lake, part), { recursive: true });
    setNow('2027-01-10T08:00:00Z');
    await run([...LINE_OF('BTCUSDT'), '--from', '2026-10-23']);
    expect(await verdictOf(lake, '2027-01-10T09:00:00Z')).toEqual([4, 'incomplete']);
  });

  it('keeps the answer that a symbol was not listed yet, also of days that REST keeps no longer', async () => {
    const late: VenueSymbol = { symbol: 'AUSDT', host: 'fapi', from: Date.parse('2026-11-10') };
    const { run, lake, setNow } = await closing(joinedScene(scratch, { symbols: [late] }));
    await run([...LINE_OF('AUSDT'), '--days', '29']);
    setNow('2026-12-12T08:00:00Z');
    await run(['metrics', '--dataset', 'openInterestHist', '--from', '2026-10-23']);
    expect(await verdictOf(lake, '2026-12-12T09:00:00Z')).toEqual([0, 'complete']);
  });

  it('ends with a symbol that REST no longer knows, where the archive proves it', async () => {
    const gone: VenueSymbol = { symbol: 'AUSDT', host: 'fapi', to: Date.parse(NOW) + 1 };
    const disturb = ({ query, at }: Asked) =>
      query.get('symbol') === 'AUSDT' && at > Date.parse(NOW)
        ? apiError(-1121, 'Invalid symbol.')
        : undefined;
    const { run, lake, folder, setNow } = await closing(
      joinedScene(scratch, { symbols: [BTC, gone], disturb }),
    );
    await run([...LINE_OF('BTCUSDT,AUSDT'), '--days', '9']);
    for (const day of daysBetween('2026-11-01', '2026-12-12'))
      for (const one of day < Date.parse('2026-11-21') ? [BTC, gone] : [BTC])
        for (const [interval, stepMs] of [['1d', DAY_MS] as const, ['1h', DAY_MS / 24] as const])
          publishKlines(folder, one, interval, stepMs, day);
    setNow('2026-12-12T08:00:00Z');
    // The first run learns that REST does not know the symbol.
    for (const code of [4, 0, 0]) expect((await run(['metrics'])).code).toBe(code);
    expect(await verdictOf(lake, '2026-12-12T09:00:00Z')).toEqual([0, 'complete']);
  });

  it('that begins with the first days begins with them for a symbol that joins it too', async () => {
    const { run, lake } = await closing(joinedScene(scratch, { symbols: [BTC, A] }));
    await run([...LINE_OF('BTCUSDT'), '--to', 'yesterday']);
    await run([...LINE_OF('BTCUSDT,AUSDT'), '--days', '7']);
    expect(await verdictOf(lake, NOW)).toEqual([0, 'complete']);
  });
});

it('a late month of the archive excuses no day for which an order asks REST', async () => {
  const { run, lake, folder, setNow } = await closing(joinedScene(scratch, { symbols: [BTC] }));
  const line = ['--dataset', 'fundingRate', '--symbols', 'BTCUSDT'];
  setNow('2026-10-25T08:00:00Z');
  await run(['metrics', ...line, '--days', '5']);
  setNow(NOW);
  publishFunding(folder, BTC, Date.parse('2026-10-01'));
  // No row of REST is left.
  await run(['vision', ...line, '--from', '2026-10-01']);
  const { events } = await cryptodl(['check', '--out', lake, '--now', NOW, '--json']);
  expect(events).toMatchObject([{ verdict: 'behind', orders: [{ lacking: 1 }, { lacking: 0 }] }]);
});
