/**
 * Five weeks of cron against an archive that changes every day, compared row for row with an oracle that uses no code of
 * the program.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAST, argv, cryptodlOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { startBucket } from './five-weeks/archive.js';
import type { Bucket } from './five-weeks/archive.js';
import { compareRows, cronDay, damageMonth, inLake, lakeAt, readRows } from './five-weeks/cron.js';
import type { Lake } from './five-weeks/cron.js';
import { dayOf, nameOf, ROWS_PER_DAY, textOf } from './five-weeks/rows.js';
import type { Series } from './five-weeks/rows.js';
import { DELISTED, eventsOf, FIRST_CRON, LAST_CRON, MISSED, MONTHLY, SERIES } from './five-weeks/story.js';
import { World } from './five-weeks/world.js';

const SEED = 20260915;
const DAMAGED = { on: dayOf('2026-10-09'), series: { dataset: 'klines', symbol: 'XRPUSDT' } as const };

describe('five weeks of cron', () => {
  const scratch = scratchFolder();
  let bucket: Bucket;
  let world: World;
  let lakes: readonly Lake[];

  beforeAll(async () => {
    bucket = await startBucket();
    world = new World(bucket, eventsOf(SEED));
    lakes = [
      lakeAt('asked', join(scratch, 'asked'), world, false),
      lakeAt('continued', join(scratch, 'continued'), world, true),
    ];
    for (let today = FIRST_CRON; today <= LAST_CRON; today += 1) {
      world.morning(today);
      if (MISSED.has(today)) continue;
      for (const lake of lakes) {
        const excused =
          today === DAMAGED.on ? damageMonth(lake, DAMAGED.series, '2026-10') : new Set<string>();
        await cronDay(lake, bucket, today, excused);
        if ((today - FIRST_CRON) % 7 === 6) await compareRows(lake, today);
        // The end is proven 14 days later.
        if (today > DELISTED.last + 17) await coverDelisted(lake, today);
      }
    }
  }, 600_000);
  afterAll(() => bucket.close());

  async function coverDelisted(lake: Lake, today: number): Promise<void> {
    const flags = ['--symbols', DELISTED.symbol, '--to', textOf(today - 1), '--min', '100', '--json'];
    const { code, events } = await inLake(lake, bucket, today, 'coverage', flags);
    const [series] = events.filter(({ event }) => event === 'series');
    if (code === 0 && series?.['missing'] === 0) return;
    lake.problems.push(
      `${textOf(today)} ${lake.name}: coverage of ${DELISTED.symbol} ends with ${code}, ${String(series?.['missing'])} rows missing`,
    );
  }

  it('ends each run as documented, tells each object once, asks for each revision once, and holds the rows of the oracle', () => {
    expect(lakes.flatMap(({ problems }) => problems)).toEqual([]);
  });

  it('asks for no monthly object of a month that is held by its days', () => {
    const asked = lakes.flatMap(({ requests }) => [...requests.keys()]);
    expect(asked.filter((request) => request.includes('/monthly/'))).toEqual([]);
  });

  it('leaves lakes in which verify --deep finds nothing', async () => {
    for (const lake of lakes) {
      const result = await inLake(lake, bucket, LAST_CRON, 'verify', ['--deep', '--json']);
      expect([lake.name, result.code, result.events.filter(({ event }) => event === 'finding')]).toEqual([
        lake.name,
        0,
        [],
      ]);
    }
  });

  it('leaves lakes of which coverage knows every missing row', async () => {
    for (const lake of lakes) {
      const result = await inLake(lake, bucket, LAST_CRON, 'coverage', [
        '--to',
        textOf(LAST_CRON - 1),
        '--json',
        '--min',
        '97',
      ]);
      const told = result.events.filter(({ event }) => event === 'series');
      const amounts = told.map(({ dataset, symbol, expected, held, missing }) => [
        `${String(dataset)} ${String(symbol)}`,
        { expected, held, missing },
      ]);
      const right = SERIES.map((series) => [nameOf(series), coverageOf(lake, series)] as const);
      const isBelow = right.some(([, { expected, held }]) => held < 0.97 * expected);
      expect([lake.name, result.code, Object.fromEntries(amounts)]).toEqual([
        lake.name,
        isBelow ? 4 : 0,
        Object.fromEntries(right),
      ]);
    }
  });

  it('takes the monthly object, also one that differs from its days, into a lake that holds no day of the month', async () => {
    const folder = join(scratch, 'fresh');
    const range = ['--from', `${MONTHLY.month}-01`, '--to', `${MONTHLY.month}-30`];
    const what = ['--interval', '1h', '--symbols', `ADAUSDT,${MONTHLY.differing}`];
    const places = ['--out', folder, '--archive-url', bucket.urlFor('fresh')];
    await cryptodlOk(argv`vision ${what} ${range} ${places} --now ${textOf(LAST_CRON)}T08:05:00Z ${FAST}`);
    const rows = await readRows(folder, 'klines');
    for (const symbol of ['ADAUSDT', MONTHLY.differing])
      expect(rows.get(symbol)).toEqual(
        world.monthRows({ dataset: 'klines', symbol }).map(({ cells }) => cells),
      );
  });
});

/** Rows, or days of trades: a delisted symbol ends with its last day, and nothing proves the halt. */
function coverageOf(lake: Lake, series: Series): Record<'expected' | 'held' | 'missing', number> {
  const [first = 0] = lake.oracle.days(series);
  const end = series.symbol === DELISTED.symbol ? DELISTED.last + 1 : LAST_CRON;
  if (series.dataset === 'aggTrades') {
    const held = lake.oracle.days(series).length;
    return { expected: end - first, held, missing: end - first - held };
  }
  const expected = (end - first) * ROWS_PER_DAY[series.dataset];
  const held = lake.oracle.rows(series).length;
  return { expected, held, missing: expected - held };
}
