/** `cryptodl universe` uses nothing that was not known before a period began. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import { FAST, argv, cryptodlOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { randoms } from '../helpers/randoms.js';
import { daysBetween, writeTraded } from '../helpers/universe-archive.js';

const scratch = scratchFolder();
const NAMES = Array.from({ length: 6 }, (_, at) => `S${at}USDT`);

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
    for (const symbol of NAMES)
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
    held.push({ symbol: 'LATEUSDT', interval: '1d', days: days.filter((day) => day > until) });
    const form = ['--top', '5', '--every', 'day', '--window', '4d', '--from', '2024-03-03'];
    const args = seed % 2 === 0 ? [...form, '--min-age', '3d'] : form;
    const [before, after] = await beforeAndAfter(`any${seed}`, held, { from, until, last, args });
    expect(before.length).toBeGreaterThan(10);
    const end = before.at(-1)?.slice(0, 10) ?? '';
    expect(after.filter((row) => row.slice(0, 10) <= end)).toEqual(before);
    expect(after.length).toBeGreaterThan(before.length);
  },
);
