/** The archive and REST stand in for each other: `vision --fill rest` and `metrics --join archive` while one of them is down. */
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { manifestLines, parquetDigests } from '../helpers/lake.js';
import { publishKlines, publishMetrics } from '../helpers/metrics-archive.js';
import { daysBetween, joinedScene } from '../helpers/metrics-scene.js';
import type { JoinedScene, SceneOptions } from '../helpers/metrics-scene.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi', tradeEveryMs: 60_000 };
const KLINES = 'um/klines/interval=1h/symbol=BTCUSDT';
const METRICS = 'um/metrics/symbol=BTCUSDT';
const days = daysBetween('2026-11-15', '2026-11-21');

const open: { close: () => Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((opened) => opened.close()));
});
async function scene(more: Partial<SceneOptions> = {}): Promise<JoinedScene> {
  const opened = await joinedScene(scratch, { symbols: [BTC], ...more });
  open.push(opened);
  return opened;
}

const FILL = ['vision', '--dataset', 'klines', '--interval', '1h', '--symbols', 'BTCUSDT', '--fill', 'rest'];
const JOIN = ['metrics', '--dataset', 'metrics', '--symbols', 'BTCUSDT', '--join', 'archive'];
const SIX_DAYS = ['--days', '6'];

/** Each verb with the days that its archive has. */
const VERBS = [
  {
    name: 'vision --fill rest',
    line: [...FILL, ...SIX_DAYS],
    series: KLINES,
    publish: (folder: string) => {
      for (const day of days) publishKlines(folder, BTC, '1h', 3_600_000, day);
    },
  },
  {
    name: 'metrics --join archive',
    line: [...JOIN, ...SIX_DAYS],
    series: METRICS,
    publish: (folder: string) => {
      for (const day of days) publishMetrics(folder, BTC, day);
    },
  },
] as const;

type Down = 'objects' | 'listing' | 'all';

function takeDown({ archive }: JoinedScene, what: Down | undefined): void {
  archive.fault =
    what === undefined
      ? undefined
      : (path, _, response) => {
          const isListing = path.includes('prefix=');
          if (what !== 'all' && isListing !== (what === 'listing')) return false;
          response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>');
          return true;
        };
}

/** Requests for rows: symbols are asked for in every run of metrics. */
function rowRequests({ venue }: JoinedScene): string[] {
  return venue.log.map(({ path }) => path).filter((path) => !path.endsWith('exchangeInfo'));
}

async function undisturbed(line: readonly string[], publish: (folder: string) => void): Promise<string[]> {
  const other = await scene();
  publish(other.folder);
  expect((await other.run(line)).code).toBe(0);
  return parquetDigests(other.lake);
}

function endOf({ events }: CliResult): Record<string, unknown> {
  return events.findLast(({ event }) => event === 'summary') ?? {};
}

describe.each(VERBS)('$name while the archive answers 503', ({ line, series, publish }) => {
  it.each(['objects', 'all'] as const)(
    'takes from REST what it has, marks it, asks REST once, and replaces it when the archive is back (%s)',
    async (what) => {
      const opened = await scene();
      const { run, lake, folder, venue } = opened;
      publish(folder);
      takeDown(opened, what);
      const first = await run([...line, '--json']);
      expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('6 ok in')]);
      expect(first.stderr).toContain('6 from REST: the archive did not answer; the next run asks it again');
      expect(endOf(first)).toMatchObject({ outcomes: { ok: 6 }, archiveFailed: { fromRest: 6, held: 0 } });
      const marked = first.events.filter(({ event }) => event === 'object');
      expect(marked).toHaveLength(6);
      for (const object of marked)
        expect(object).toMatchObject({
          outcome: 'ok',
          archiveFailed: expect.stringMatching(/^(http-server-error|breaker-open)$/),
        });
      const lines = manifestLines(join(lake, 'binance', series));
      expect(lines).toHaveLength(6);
      for (const held of lines)
        expect(held).toMatchObject({ verified: 'rest', archiveFailed: expect.stringMatching(/error|open/) });

      const asked = rowRequests(opened).length;
      const second = await run([...line, '--json']);
      expect([second.code, second.stderr]).toEqual([0, expect.stringContaining('6 skipped in')]);
      expect(second.stderr).toContain('6 held from REST stay: the archive did not answer');
      expect(endOf(second)).toMatchObject({ archiveFailed: { fromRest: 0, held: 6 } });
      expect(rowRequests(opened)).toHaveLength(asked);

      takeDown(opened, undefined);
      const third = await run(line);
      expect([third.code, third.stderr]).toEqual([0, expect.stringContaining('6 ok in')]);
      expect(third.stderr).toMatch(/compared +[\d,]+ rows of REST with the archive's: 0 differ/);
      expect(rowRequests(opened)).toHaveLength(asked);
      expect(venue.log.filter(({ path }) => path.endsWith('exchangeInfo')).length).toBeLessThanOrEqual(3);
      expect(await parquetDigests(lake)).toEqual(await undisturbed(line, publish));
      const fourth = await run(line);
      expect(fourth.stderr).toContain('to fetch   nothing');
    },
  );
});
