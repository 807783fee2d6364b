/** `cryptodl universe` uses nothing that was not known before a period began. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import { FAST, argv, cryptodlOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { randoms } from '../helpers/randoms.js';
import { daysBetween, writeTraded } from '../helpers/universe-archive.js';
import type { DayVolume } from '../helpers/universe-archive.js';

const scratch = scratchFolder();
const NOW = '2024-04-03T08:00:00Z';
const FIRST = '2024-01-01';
const LAST = '2024-04-02';

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
    await cryptodlOk(argv`vision --archive-url ${archive.url} ${lake} ${FAST} -s all -i 1d --from ${FIRST}`);
  } finally {
    await archive.close();
  }
  const { stdout } = await cryptodlOk(argv`universe ${lake} --every week --from 2024-01-15 ${args}`);
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

interface Held {
  readonly symbol: string;
  readonly interval: '1d' | '6h' | '1h';
  readonly days: readonly string[];
}

/** Writes the days up to `to`. The sum of a day differs by interval, so that members tell which interval was read. */
function writeHeld(folder: string, held: readonly Held[], { to, now }: { to: string; now: string }): void {
  for (const { symbol, interval, days } of held) {
    const quote = (day: string): string =>
      String(24 * (Number(day.slice(8)) * 10 + interval.length + interval.charCodeAt(0)));
    const own = days.filter((day) => day <= to).map((day) => [day, { quote: quote(day) }] as const);
    if (own.length > 0) writeTraded(folder, { symbol, interval, days: new Map(own) }, now);
  }
}

/** The rows of a lake until a day, and the rows of the same lake after a download of later days. */
async function beforeAndAfter(
  name: string,
  held: readonly Held[],
  {
    from,
    until,
    last,
    args,
  }: Record<'from' | 'until' | 'last', string> & { readonly args: readonly string[] },
): Promise<[before: string[], after: string[]]> {
  const folder = join(scratch, `${name}-archive`);
  mkdirSync(folder);
  const archive = await startArchive(folder);
  const now = new Date(Date.parse(last) + 32 * 3600_000).toISOString();
  const lake = ['--out', join(scratch, `${name}-lake`), '--now', now];
  const results: string[][] = [];
  try {
    for (const to of [until, last]) {
      // Daily objects only: the month of `last` is not over.
      writeHeld(folder, held, { to, now: last });
      await cryptodlOk(
        ['vision', '--archive-url', archive.url, ...lake, ...FAST, '-s', '*', '-i', '1d,6h,1h'].concat(
          argv`--from ${from} --to ${to}`,
        ),
      );
      const { stdout } = await cryptodlOk(['universe', ...lake, ...args]);
      results.push(stdout.trimEnd().split('\n').slice(1));
    }
  } finally {
    await archive.close();
  }
  const [before = [], after = []] = results;
  return [before, after];
}

it.each([11, 12, 13, 14])(
  'later days of any interval, with holes, do not change earlier members (seed %i)',
  async (seed) => {
    const random = randoms(seed);
    const [from, last] = ['2024-03-01', '2024-03-27'];
    const days = daysBetween(from, last);
    const until = days[8 + Math.floor(random() * 12)] ?? '';
    const held: Held[] = [{ symbol: 'BTCUSDT', interval: '1d', days }];
    for (const symbol of NAMES.slice(0, 6))
      for (const interval of ['1d', '6h', '1h'] as const) {
        if (random() < 0.2) continue;
        // Few holes, or few days.
        const share = [0.95, 0.7, 0.3][Math.floor(random() * 3)] ?? 1;
        const later = random() < 0.5 ? 1 : share;
        held.push({
          symbol,
          interval,
          days: days.filter((day) => random() < (day > until ? later : share)),
        });
      }
    const args = ['--every', 'day', '--window', '4d', '--from', '2024-03-03'];
    const [before, after] = await beforeAndAfter(`any${seed}`, held, { from, until, last, args });
    expect(before.length).toBeGreaterThan(10);
    const end = before.at(-1)?.slice(0, 10) ?? '';
    expect(after.filter((row) => row.slice(0, 10) <= end)).toEqual(before);
    expect(after.length).toBeGreaterThan(before.length);
  },
);
