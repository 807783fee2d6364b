/** The archive and REST stand in for each other: `vision --fill rest` and `metrics --join archive` while one of them is down. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { argv } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { IdleClock } from '../helpers/idle-clock.js';
import { filesBelow, manifestLines, parquetDigests } from '../helpers/lake.js';
import { publishFunding, publishKlines, publishMetrics } from '../helpers/metrics-archive.js';
import { closing, daysBetween, joinedScene, rowsOf } from '../helpers/metrics-scene.js';
import type { JoinedScene, SceneOptions } from '../helpers/metrics-scene.js';
import { serverError } from '../helpers/rest-venue-answers.js';
import { DAY_MS } from '../helpers/rest-venue-types.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi', tradeEveryMs: 60_000 };
const KLINES = 'um/klines/interval=1h/symbol=BTCUSDT';
const METRICS = 'um/metrics/symbol=BTCUSDT';
const days = daysBetween('2026-11-15', '2026-11-21');

const scene = (more: Partial<SceneOptions> = {}): Promise<JoinedScene> =>
  closing(joinedScene(scratch, { symbols: [BTC], clock: new IdleClock(Date.now()), ...more }));

const FILL = ['vision', '--dataset', 'klines', '--interval', '1h', '--symbols', 'BTCUSDT', '--fill', 'rest'];
const JOIN = ['metrics', '--dataset', 'metrics', '--symbols', 'BTCUSDT', '--join', 'archive'];
const SIX_DAYS = ['--days', '6'];
/** A run that waited for the breaker would never end. */
const PATIENT = ['--breaker-open', '1h', '--max-wait', '2h'];
/** Failures in a row do not open the breaker. */
const NO_BREAKER = ['--breaker-failures', '1000', '--breaker-open', '5s', '--max-wait', '2h'];
/** No retry helps. */
const DOWN = [...NO_BREAKER, '--retries', '0'];

/** Each verb with the days that its archive has. */
const VERBS = [
  {
    name: 'vision --fill rest',
    line: [...FILL, ...SIX_DAYS, ...PATIENT],
    series: KLINES,
    publish: (folder: string) => {
      for (const day of days) publishKlines(folder, BTC, '1h', 3_600_000, day);
    },
  },
  {
    name: 'metrics --join archive',
    line: [...JOIN, ...SIX_DAYS, ...PATIENT],
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
    'takes rows from REST, marks them, asks REST once, and replaces them when the archive is back (%s)',
    async (what) => {
      const opened = await scene();
      const { run, lake, folder, venue } = opened;
      publish(folder);
      takeDown(opened, what);
      const first = await run([...line, '--json']);
      expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('6 ok in')]);
      expect(first.stderr).toContain('6 from REST: the archive did not answer; the next run tries it again');
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
      expect(third.stderr).toMatch(/compared +[\d,]+ rows of REST with those of the archive: 0 differ/);
      expect(rowRequests(opened)).toHaveLength(asked);
      expect(venue.log.filter(({ path }) => path.endsWith('exchangeInfo')).length).toBeLessThanOrEqual(3);
      expect(await parquetDigests(lake)).toEqual(await undisturbed(line, publish));
      const fourth = await run(line);
      expect(fourth.stderr).toContain('to fetch   nothing');
    },
  );
});

/** By period: where its rows are from. */
function sources({ lake }: JoinedScene, series: string): string[] {
  const last = new Map(
    manifestLines(join(lake, 'binance', series))
      .filter(({ kind }) => kind === 'object')
      .map((line) => [String(line['period']), line] as const),
  );
  const sourceOf = (line: Record<string, unknown>): string =>
    line['verified'] !== 'rest' ? 'archive' : line['archiveFailed'] === undefined ? 'REST' : 'REST instead';
  return [...last]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([period, line]) => `${period} ${sourceOf(line)}`);
}

function dayText(day: number): string {
  return new Date(day).toISOString().slice(0, 10);
}

/** Objects of these periods answer 503, as often as told; their sidecars answer. */
function refusePeriods({ archive }: JoinedScene, periods: readonly string[], times = Infinity): void {
  const refused = new Map<string, number>();
  archive.fault = (path, _, response) => {
    if (!periods.some((period) => path.endsWith(`-${period}.zip`))) return false;
    const count = (refused.get(path) ?? 0) + 1;
    refused.set(path, count);
    if (count > times) return false;
    response.writeHead(503).end();
    return true;
  };
}

describe('vision --fill rest', () => {
  it('asks REST only for the days of a month that the archive did not give, in one file with the others', async () => {
    const opened = await scene();
    const { run, folder, lake } = opened;
    for (const day of days) publishKlines(folder, BTC, '1h', 3_600_000, day);
    refusePeriods(opened, ['2026-11-17', '2026-11-18']);
    const result = await run([...FILL, ...SIX_DAYS, ...NO_BREAKER]);
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('6 ok in')]);
    expect(result.stderr).toContain('2 from REST: the archive did not answer');
    expect(sources(opened, KLINES)).toEqual(
      days.map((day, index) => `${dayText(day)} ${index === 2 || index === 3 ? 'REST instead' : 'archive'}`),
    );
    // Both days together.
    const [first] = opened.venue.log;
    expect(first?.query.get('startTime')).toBe(String(days[2]));
    expect(first?.query.get('endTime')).toBe(String((days[4] ?? 0) - 1));
    expect(await rowsOf(lake, KLINES)).toHaveLength(6 * 24);

    takeDown(opened, undefined);
    const before = opened.archive.requests.length;
    const second = await run([...FILL, ...SIX_DAYS]);
    expect(second.stderr).toContain('2 ok, 4 skipped in');
    const zips = opened.archive.requests.slice(before).filter((path) => path.endsWith('.zip'));
    expect(zips.map((path) => path.slice(-14, -4)).sort()).toEqual(['2026-11-17', '2026-11-18']);
    expect(sources(opened, KLINES)).toEqual(days.map((day) => `${dayText(day)} archive`));
  });

  it('takes a whole month from REST, and lets the monthly object replace it', async () => {
    const opened = await scene();
    const october = Date.parse('2026-10-01');
    const publishMonth = (folder: string): void => {
      publishKlines(folder, BTC, '1h', 3_600_000, october, { days: 31 });
    };
    publishMonth(opened.folder);
    takeDown(opened, 'all');
    const line = [...FILL, '--from', '2026-10-01', '--to', '2026-10-31', ...PATIENT];
    const first = await opened.run(line);
    expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('1 ok in')]);
    expect(sources(opened, KLINES)).toEqual(['2026-10 REST instead']);
    takeDown(opened, undefined);
    expect((await opened.run(line)).stderr).toContain('1 ok in');
    expect(await parquetDigests(opened.lake)).toEqual(await undisturbed(line, publishMonth));
  });

  it('fails objects that REST lacks with the error of the archive, and its keys in the report', async () => {
    const opened = await scene();
    const month = Date.parse('2026-10-01');
    for (let day = month; day < Date.parse('2026-11-21'); day += DAY_MS)
      publishMetrics(opened.folder, BTC, day);
    takeDown(opened, 'objects');
    const line = ['vision', '--dataset', 'metrics', '--symbols', 'BTCUSDT', '--fill', 'rest'];
    const result = await opened.run(argv`${line} ${DOWN} --from 2026-10-20 --to 2026-10-23 --json`);
    // REST keeps 30 days, and the first of them is not whole.
    expect([result.code, result.stderr]).toEqual([3, expect.stringContaining('1 ok, 3 failed')]);
    expect(sources(opened, METRICS)).toEqual(['2026-10-23 REST instead']);
    const failed = result.events.filter(({ outcome }) => outcome === 'failed');
    expect(failed.map(({ key, code }) => [String(key).slice(-14), code])).toEqual(
      ['2026-10-20', '2026-10-21', '2026-10-22'].map((day) => [`${day}.zip`, 'http-server-error']),
    );
  });

  it('fails for the reason of the archive where REST has no such symbol, and is retried at the archive', async () => {
    const opened = await scene({ symbols: [{ symbol: 'ETHUSDT', host: 'fapi' }] });
    for (const day of days) publishKlines(opened.folder, BTC, '1h', 3_600_000, day);
    takeDown(opened, 'objects');
    const result = await opened.run([...FILL, ...SIX_DAYS, ...DOWN]);
    expect([result.code, result.stderr]).toEqual([3, expect.stringContaining('6 failed, http-server-error')]);
    expect(result.stderr).toContain('answered 503');
    // A report of such a run is one of the archive's objects.
    const [report = ''] = filesBelow(join(opened.lake, '_failures'));
    takeDown(opened, undefined);
    const again = await opened.run(['retry', join(opened.lake, '_failures', report)]);
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('6 ok in')]);
  });

  it.each([
    ['with a breaker', PATIENT],
    ['without one', DOWN],
  ])('asks REST where nothing listens for the archive, and there is no listing, %s', async (_, flags) => {
    const opened = await scene();
    const nowhere = ['--archive-url', 'http://127.0.0.1:9'];
    const result = await opened.run([...FILL, ...SIX_DAYS, ...flags, ...nowhere]);
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('6 ok in')]);
    expect(sources(opened, KLINES)).toHaveLength(6);
  });

  it('asks REST while the archive bans this address, also in the next run', async () => {
    const opened = await scene();
    for (const day of days) publishKlines(opened.folder, BTC, '1h', 3_600_000, day);
    opened.archive.fault = (path, _, response) => {
      if (path.includes('prefix=')) return false;
      response.writeHead(429, { 'retry-after': '3600' }).end();
      return true;
    };
    const state = { env: { CRYPTODL_STATE_DIR: join(scratch, randomUUID()) } };
    const [yesterday, ...more] = [['--days', '1'], SIX_DAYS];
    const first = await opened.run([...FILL, ...PATIENT, ...(yesterday ?? [])], state);
    expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('1 from REST')]);
    const asked = opened.archive.objectRequests().length;
    const second = await opened.run([...FILL, ...PATIENT, ...more.flat()], state);
    expect([second.code, second.stderr]).toEqual([0, expect.stringContaining('5 ok, 1 skipped in')]);
    expect(opened.archive.objectRequests()).toHaveLength(asked);
    // Without the other source a run is refused.
    expect((await opened.run(['vision', '--days', '1'], state)).code).toBe(7);
  });

  it('keeps rows of the archive whose new revision cannot be fetched, and the run fails', async () => {
    const opened = await scene();
    for (const day of days) publishKlines(opened.folder, BTC, '1h', 3_600_000, day);
    await opened.run([...FILL, ...SIX_DAYS]);
    publishKlines(opened.folder, BTC, '1h', 3_600_000, days[2] ?? 0, { lacks: [3] });
    takeDown(opened, 'objects');
    const result = await opened.run([...FILL, ...SIX_DAYS, ...NO_BREAKER]);
    expect([result.code, result.stderr]).toEqual([3, expect.stringContaining('5 skipped, 1 failed')]);
    expect(rowRequests(opened)).toEqual([]);
    expect(sources(opened, KLINES)).toEqual(days.map((day) => `${dayText(day)} archive`));
  });

  it('rewrites no rows of the archive with those of REST', async () => {
    const opened = await scene();
    for (const day of days) publishKlines(opened.folder, BTC, '1h', 3_600_000, day);
    await opened.run([...FILL, ...SIX_DAYS]);
    takeDown(opened, 'objects');
    const other = ['--partition', 'day', '--force', ...DOWN];
    const result = await opened.run([...FILL, ...SIX_DAYS, ...other]);
    expect([result.code, result.stderr]).toEqual([3, expect.stringContaining('6 failed')]);
    expect(rowRequests(opened)).toEqual([]);
    expect(sources(opened, KLINES)).toEqual(days.map((day) => `${dayText(day)} archive`));
  });
});

describe('metrics --join archive', () => {
  it('takes months of funding rates and days of the running month from REST while nothing of the archive answers', async () => {
    const opened = await scene();
    const publishBoth = (folder: string): void => {
      for (const month of ['2026-09-01', '2026-10-01']) publishFunding(folder, BTC, Date.parse(month));
    };
    publishBoth(opened.folder);
    takeDown(opened, 'all');
    const line = ['metrics', '--dataset', 'fundingRate', '--symbols', 'BTCUSDT', '--join', 'archive'];
    const first = await opened.run([...line, '--from', '2026-09-01', ...PATIENT]);
    expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('22 ok in')]);
    const series = 'um/fundingRate/symbol=BTCUSDT';
    expect(sources(opened, series).slice(0, 3)).toEqual([
      '2026-09 REST instead',
      '2026-10 REST instead',
      '2026-11-01 REST',
    ]);
    takeDown(opened, undefined);
    const second = await opened.run([...line, '--from', '2026-09-01']);
    expect([second.code, second.stderr]).toEqual([0, expect.stringContaining('2 ok, 20 skipped in')]);
    expect(await parquetDigests(opened.lake)).toEqual(
      await undisturbed([...line, '--from', '2026-09-01'], publishBoth),
    );
  });

  it('takes the days of the running month from REST where no listing tells of the months before', async () => {
    const opened = await scene();
    takeDown(opened, 'all');
    const line = ['metrics', '--dataset', 'fundingRate', '--symbols', 'BTCUSDT', '--join', 'archive'];
    const result = await opened.run([...line, '--from', '2026-11-01', ...PATIENT]);
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('20 ok in')]);
  });

  it.each([
    ['answers 503', { disturb: () => serverError(503) }],
    ['does not serve this location', { restricted: ['fapi'] as const }],
  ])('takes the days of the archive where REST %s', async (_, options) => {
    const opened = await scene(options);
    for (const day of days) publishMetrics(opened.folder, BTC, day);
    const result = await opened.run([...JOIN, ...SIX_DAYS, ...PATIENT]);
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('6 ok in')]);
    expect(result.stderr).toContain("the archive's symbols are taken instead");
  });

  it('refuses no name that only REST may have, while REST answers 503', async () => {
    const opened = await scene({ disturb: () => serverError(503) });
    publishMetrics(opened.folder, BTC, days[0] ?? 0);
    const words = [...JOIN, ...SIX_DAYS, '--symbols', `${BTC.symbol},NEWUSDT`, '--dry-run'];
    const result = await opened.run([...words, ...PATIENT]);
    expect([result.code, result.stderr]).toEqual([0, expect.not.stringContaining('REST has no')]);
    expect(result.stdout).toContain('NEWUSDT');
  });

  it('takes the days of the archive while REST bans this address, and leaves the rest undone', async () => {
    const opened = await scene({ isTicking: true });
    for (const day of days.slice(0, 4)) publishMetrics(opened.folder, BTC, day);
    opened.venue.ban(3_600_000);
    const state = { env: { CRYPTODL_STATE_DIR: join(scratch, randomUUID()) } };
    for (const outcomes of ['4 ok, 2 failed', '4 skipped, 2 failed']) {
      const result = await opened.run([...JOIN, ...SIX_DAYS], state);
      expect([result.code, result.stderr]).toEqual([7, expect.stringContaining(outcomes)]);
    }
    expect(opened.venue.log).toHaveLength(1);
  });

  it('commits the days of the archive before it waits for REST', async () => {
    const opened = await scene({
      disturb: ({ path }) => (path.endsWith('exchangeInfo') ? undefined : serverError(503)),
    });
    for (const day of days.slice(0, 4)) publishMetrics(opened.folder, BTC, day);
    const result = await opened.run([
      ...JOIN,
      ...SIX_DAYS,
      ...'--breaker-open 1h --max-wait 1s --json'.split(' '),
    ]);
    expect([result.code, result.stderr]).toEqual([7, expect.stringContaining('4 ok, 2 failed')]);
    const names = result.events.map(({ event }) => event);
    expect(names.indexOf('partition')).toBeLessThan(names.indexOf('round'));
  });
});
