/** `cryptodl universe` uses nothing that was not known before a period began. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import { cryptodlOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { randoms } from '../helpers/randoms.js';
import { daysBetween, writeTraded } from '../helpers/universe-archive.js';
import type { DayVolume } from '../helpers/universe-archive.js';

const scratch = scratchFolder();
const NOW = '2024-04-10T08:00:00Z';
const FIRST = '2024-01-01';
const LAST = '2024-04-09';

type Market = Map<string, Map<string, DayVolume>>;

/** Symbols with listings, ends, holes and volumes by chance. */
function randomMarket(random: () => number, from: string, names: readonly string[]): Market {
  const market: Market = new Map();
  const days = daysBetween(from, LAST);
  for (const name of names) {
    const start = Math.floor(random() * days.length * 0.5);
    const end = random() < 0.5 ? days.length : start + Math.floor(random() * (days.length - start));
    const own = days.slice(start, end).filter(() => random() > 0.02);
    const volumes = own.map((day) => [day, { quote: (random() * 1000).toFixed(3) }] as const);
    market.set(name, new Map(volumes));
  }
  return market;
}

/** The first market before a day, and the second one from this day on. */
function spliced(before: Market, after: Market, day: string): Market {
  const all: Market = new Map();
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const past = [...(before.get(name) ?? [])].filter(([each]) => each < day);
    const future = [...(after.get(name) ?? [])].filter(([each]) => each >= day);
    all.set(name, new Map([...past, ...future]));
  }
  return all;
}

async function membersOf(market: Market, name: string, args: readonly string[]): Promise<string[]> {
  const folder = join(scratch, `${name}-archive`);
  for (const [symbol, days] of market) writeTraded(folder, { symbol, days }, NOW);
  const archive = await startArchive(folder);
  const lake = ['--out', join(scratch, `${name}-lake`), '--now', NOW];
  try {
    await cryptodlOk([
      'vision',
      '--archive-url',
      archive.url,
      ...lake,
      ...FAST,
      '-s',
      'all',
      '-i',
      '1d',
      '--from',
      FIRST,
    ]);
  } finally {
    await archive.close();
  }
  const { stdout } = await cryptodlOk([
    'universe',
    ...lake,
    '--every',
    'week',
    '--from',
    '2024-01-15',
    ...args,
  ]);
  return stdout.trimEnd().split('\n').slice(1);
}

const NAMES = Array.from({ length: 12 }, (_, at) => `S${at}USDT`);

it.each([1, 2, 3, 4, 5])(
  'the members of a period are the same, whatever happens from its first day on (seed %i)',
  async (seed) => {
    const random = randoms(seed);
    const mondays = daysBetween('2024-01-29', LAST).filter((day) => new Date(day).getUTCDay() === 1);
    const start = mondays[Math.floor(random() * mondays.length)] ?? '';
    const args = ['--top', '5', '--window', '14d', ...(seed % 2 === 0 ? ['--min-age', '20d'] : [])];
    // BTCUSDT keeps the market open on all days.
    const always: Market = new Map([
      ['BTCUSDT', new Map(daysBetween(FIRST, LAST).map((day) => [day, { quote: '1' }]))],
    ]);
    const first: Market = new Map([...randomMarket(random, FIRST, NAMES), ...always]);
    // Other volumes, listings and ends; and new symbols.
    const second: Market = new Map([
      ...randomMarket(random, start, [...NAMES.slice(2), 'LATEAUSDT', 'LATEBUSDT']),
      ...always,
    ]);
    const [one, other] = [
      await membersOf(first, `a${seed}`, args),
      await membersOf(spliced(first, second, start), `b${seed}`, args),
    ];
    const until = (rows: readonly string[]): string[] => rows.filter((row) => row.slice(0, 10) <= start);
    const after = (rows: readonly string[]): string[] => rows.filter((row) => row.slice(0, 10) > start);
    expect(until(one).some((row) => row.startsWith(start))).toBe(true);
    expect(until(other)).toEqual(until(one));
    if (after(one).length > 0) expect(after(other)).not.toEqual(after(one));
  },
);

it('the members of a period are the same if the lake has no later day', async () => {
  const market = randomMarket(randoms(7), FIRST, NAMES);
  const always = new Map(daysBetween(FIRST, LAST).map((day) => [day, { quote: '1' }] as const));
  const whole: Market = new Map([...market, ['BTCUSDT', always]]);
  const cut = '2024-03-04';
  const rows = await membersOf(whole, 'whole', ['--top', '5']);
  const known = await membersOf(spliced(whole, new Map(), cut), 'cut', ['--top', '5']);
  expect(known.at(-1)?.slice(0, 10)).toBe(cut);
  expect(known).toEqual(rows.filter((row) => row.slice(0, 10) <= cut));
});
