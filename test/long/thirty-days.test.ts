/** A lake in the care of cron for thirty simulated days, from an archive that publishes, stalls, errs, mends and bans. */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { parquetDigests } from '../helpers/lake.js';
import { hourlyBars, publish } from '../helpers/published.js';

const DAY_MS = 86_400_000;
/** The first day whose rows are wanted; cron runs on the thirty days after it. */
const START = Date.parse('2026-10-15T00:00:00Z') / DAY_MS;
const DAYS = 30;
const LAST = START + DAYS;

const text = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);
const at = (date: string): number => Date.parse(`${date}T00:00:00Z`) / DAY_MS;

/** What happens, by the day on which cron meets it. */
const STALLED = { day: at('2026-10-20'), published: at('2026-10-23') };
const TRUNCATED = { symbol: 'ETHUSDT', day: at('2026-10-24'), published: at('2026-10-27') };
const LISTED = { symbol: 'NEWUSDT', first: at('2026-10-28') };
const DELISTED = { symbol: 'OLDUSDT', last: at('2026-11-02') };
const WRONG_MONTH = { month: '2026-10', published: at('2026-11-03') };
const BANNED = at('2026-11-06');
const REVISED = { symbol: 'BTCUSDT', day: at('2026-11-07'), published: at('2026-11-10') };

const SYMBOLS = ['BTCUSDT', 'ETHUSDT', 'OLDUSDT', 'NEWUSDT'];

function isTraded(symbol: string, day: number): boolean {
  if (symbol === LISTED.symbol) return day >= LISTED.first;
  return symbol !== DELISTED.symbol || day <= DELISTED.last;
}

const csvOf = (days: readonly number[], price: number, hours = 24): string =>
  hourlyBars(days.map(text), price, { hours });

const keyOf = (symbol: string, period: string): string =>
  `data/futures/um/${period.length === 7 ? 'monthly' : 'daily'}/klines/${symbol}/1h/${symbol}-1h-${period}.zip`;

describe('thirty days of cron', () => {
  const scratch = scratchFolder();
  const folder = join(scratch, 'archive');
  const out = join(scratch, 'lake');
  const state = join(scratch, 'state');
  let archive: TestArchive;
  let isBanning = false;
  /** Every state of every object that was ever published. */
  const revisions = new Set<string>();
  let zipRequests = 0;

  beforeAll(async () => {
    mkdirSync(folder);
    archive = await startArchive(folder);
    archive.fault = (_path, _request, response) => {
      if (!isBanning) return false;
      response.writeHead(418, { 'retry-after': '4' }).end();
      return true;
    };
  });
  afterAll(() => archive.close());

  function put(symbol: string, period: string, csv: string): void {
    const key = keyOf(symbol, period);
    publish(folder, key, csv);
    revisions.add(
      `${key} ${createHash('sha256')
        .update(readFileSync(join(folder, key)))
        .digest('hex')}`,
    );
  }

  /** What the archive does at half past seven. */
  function publishMorning(today: number): void {
    const days = today === STALLED.published ? [STALLED.day, today - 1] : [today - 1];
    for (const day of days.filter((candidate) => candidate !== STALLED.day || today === STALLED.published)) {
      for (const symbol of SYMBOLS.filter((name) => isTraded(name, day))) {
        const isCut = symbol === TRUNCATED.symbol && day === TRUNCATED.day;
        put(symbol, text(day), csvOf([day], day, isCut ? 7 : 24));
      }
    }
    if (today === TRUNCATED.published)
      put(TRUNCATED.symbol, text(TRUNCATED.day), csvOf([TRUNCATED.day], TRUNCATED.day));
    if (today === REVISED.published) put(REVISED.symbol, text(REVISED.day), csvOf([REVISED.day], 4242));
    if (today === WRONG_MONTH.published) {
      for (const symbol of SYMBOLS) put(symbol, WRONG_MONTH.month, csvOf(daysOf(WRONG_MONTH.month), 1));
    }
  }

  function daysOf(month: string): number[] {
    const first = at(`${month}-01`);
    return Array.from({ length: 31 }, (_, index) => first + index);
  }

  async function cron(today: number): Promise<CliResult> {
    archive.requests.length = 0;
    const what = [...'--interval 1h --symbols *USDT --days 1 --now'.split(' '), `${text(today)}T08:05:00Z`];
    const places = ['--archive-url', archive.url, '--out', out, '--json', ...FAST, '--max-wait', '1s'];
    const result = await cryptodl(['vision', ...what, ...places], { env: { CRYPTODL_STATE_DIR: state } });
    zipRequests += archive.objectRequests().filter((path) => path.endsWith('.zip')).length;
    return result;
  }

  /** What the day's run must say. */
  function expected(today: number): Record<string, unknown> {
    const yesterday = today - 1;
    const trading = (day: number): number => SYMBOLS.filter((symbol) => isTraded(symbol, day)).length;
    if (today === BANNED) return { exitCode: 7 };
    const fetched = {
      [STALLED.day + 1]: { ok: 0 },
      [STALLED.published]: { ok: trading(STALLED.day) + trading(yesterday) },
      [TRUNCATED.day + 1]: { ok: trading(yesterday) - 1, partial: 1 },
      [BANNED + 1]: { ok: trading(BANNED - 1) + trading(yesterday) },
    }[today];
    const changed = today === TRUNCATED.published || today === REVISED.published ? 1 : 0;
    return {
      exitCode: 0,
      outcomes: { failed: 0, partial: 0, ...(fetched ?? { ok: trading(yesterday) + changed }) },
      changed,
    };
  }

  it('leaves the lake that a fresh download of the last day makes, and prints the problems of each day', async () => {
    for (let today = START + 1; today <= LAST; today += 1) {
      publishMorning(today);
      isBanning = today === BANNED;
      const result = await cron(today);
      const reports = readdirSync(out).includes('_failures') ? readdirSync(join(out, '_failures')) : [];
      expect({ day: text(today), code: result.code, ...result.events.at(-1) }).toMatchObject({
        day: text(today),
        code: expected(today)['exitCode'],
        ...expected(today),
      });
      expect([text(today), reports.length]).toEqual([text(today), today === BANNED ? reports.length : 0]);
      if (today !== BANNED) continue;
      // The next process knows of the ban, and asks for nothing until it is over.
      const again = await cron(today);
      expect([again.code, archive.requests]).toEqual([7, []]);
      expect(again.stderr).toContain('no request is sent before');
      isBanning = false;
      await new Promise((resolve) => setTimeout(resolve, 4500));
      rmSync(join(out, '_failures'), { recursive: true, force: true });
    }
    const fresh = join(scratch, 'fresh');
    const range = ['--from', text(START), '--to', text(LAST - 1), '--now', `${text(LAST)}T08:05:00Z`];
    const what = ['--interval', '1h', '--symbols', '*USDT', '--cadence', 'daily'];
    await cryptodlOk(['vision', ...what, ...range, '--archive-url', archive.url, '--out', fresh, ...FAST]);
    expect(await parquetDigests(out)).toEqual(await parquetDigests(fresh));
    const pairs = [...revisions].filter((pair) => pair.includes('/daily/')).length;
    expect(zipRequests).toBeLessThanOrEqual(pairs);
  }, 300_000);
});
