/** `cryptodl bars`: bars of several kinds against an independent computation, and what other verbs make of them. */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { timeBars, tradesOf, writeAggTrades, writeKlines, writeTrades } from '../helpers/bar-archive.js';
import type { Bar, Trade } from '../helpers/bar-archive.js';
import { FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, manifestLines, parquetMetadata, readParquet } from '../helpers/lake.js';
import { writeObject } from '../helpers/published.js';

const scratch = scratchFolder();
const ARCHIVE = join(scratch, 'archive');
const NOW = '2024-02-20T08:00:00Z';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
let archive: TestArchive;
let lakes = 0;

const DAYS = ['2024-01-29', '2024-01-30', '2024-01-31', '2024-02-01', '2024-02-02', '2024-02-03'];
const TRADES = new Map(DAYS.map((day) => [day, tradesOf(day)]));
const ALL = [...TRADES.values()].flat();

function writeDay(folder: string, day: string, trades: readonly Trade[]): void {
  writeTrades(folder, 'BTCUSDT', day, trades);
  writeAggTrades(folder, 'BTCUSDT', day, trades);
  writeKlines(folder, { symbol: 'BTCUSDT', day, interval: '1m' }, trades);
  writeKlines(folder, { symbol: 'BTCUSDT', day, interval: '1h', lengthMs: HOUR }, trades);
}

beforeAll(async () => {
  for (const [day, trades] of TRADES) writeDay(ARCHIVE, day, trades);
  archive = await startArchive(ARCHIVE);
  await download(MINUTES, '-i', '1m');
});
afterAll(() => archive.close());

/** A new lake; without another one that it copies, its folder is not there. */
function newLake(copied?: string): string {
  lakes += 1;
  const lake = join(scratch, `lake-${lakes}`);
  if (copied !== undefined) cpSync(copied, lake, { recursive: true });
  return lake;
}

/** A lake of minutes of all days, for copies. */
const MINUTES = newLake();

async function download(lake: string, ...args: readonly string[]): Promise<CliResult> {
  const range = args.includes('--from') ? [] : ['--from', DAYS[0] ?? '', '--to', DAYS.at(-1) ?? ''];
  const own = args.includes('-s') ? args : ['-s', 'BTCUSDT', ...args];
  const places = ['--archive-url', archive.url, '--out', lake, '--now', NOW];
  return cryptodlOk(['vision', ...places, ...FAST, ...range, ...own]);
}

function bars(lake: string, ...args: readonly string[]): Promise<CliResult> {
  return cryptodl(['bars', ...args, '--out', lake, '--now', NOW]);
}

async function barsOk(lake: string, ...args: readonly string[]): Promise<CliResult> {
  const result = await bars(lake, ...args);
  expect(result).toMatchObject({ code: 0 });
  return result;
}

const folderOf = (lake: string, interval: string): string =>
  join(lake, `binance/um/bars/interval=${interval}/symbol=BTCUSDT`);

async function barsIn(lake: string, interval: string): Promise<Bar[]> {
  const folder = folderOf(lake, interval);
  const rows = await Promise.all(
    filesBelow(folder, '.parquet').map((file) => readParquet(join(folder, file))),
  );
  return rows.flat().map((row) => ({
    ...(row as unknown as Bar),
    open_time: Number(row['open_time']),
    close_time: Number(row['close_time']),
    count: Number(row['count']),
  }));
}

/** Names and digests of the files of bars. */
function digestsOf(lake: string, interval: string): unknown[] {
  return filesBelow(folderOf(lake, interval)).map((file) => [
    file,
    readFileSync(join(folderOf(lake, interval), file)).toString('base64'),
  ]);
}

describe('bars of a length', () => {
  const lake = newLake();
  beforeAll(async () => {
    cpSync(MINUTES, lake, { recursive: true });
    await download(lake, '--dataset', 'aggTrades');
    await download(lake, '--dataset', 'trades');
  });

  it.each(['7m', '15m', '1h', '90m', '4h', '1d'])('of %s from 1m are those of the trades', async (bar) => {
    const { stderr } = await barsOk(lake, bar);
    expect(stderr).toContain(`um bars ${bar} BTCUSDT: `);
    expect(stderr).toContain('made from klines 1m');
    const number = Number.parseInt(bar, 10);
    const lengthMs = number * (bar.endsWith('m') ? MINUTE : bar.endsWith('h') ? HOUR : DAY);
    const first = Date.parse('2024-01-29T00:00:00Z');
    const end = Date.parse('2024-02-04T00:00:00Z');
    const whole = timeBars(ALL, lengthMs).filter(({ open_time: at }) => at >= first && at + lengthMs <= end);
    const made = (await barsIn(lake, bar)).filter(({ count }) => count > 0);
    expect(made.length).toBeGreaterThan(5);
    expect(made).toEqual(whole);
  });

  it.each(['aggTrades', 'trades'])('from %s are the same', async (dataset) => {
    const other = newLake();
    cpSync(lake, other, { recursive: true });
    rmSync(join(other, 'binance/um/bars'), { recursive: true, force: true });
    rmSync(join(other, '_manifests/binance/um/bars'), { recursive: true, force: true });
    expect((await barsOk(other, '15m', '--dataset', dataset)).stderr).toContain(`made from ${dataset}`);
    expect(await barsIn(other, '15m')).toEqual(timeBars(ALL, 15 * MINUTE));
  });

  it('of 3 days begin at multiples since 1970, also across months', async () => {
    await barsOk(lake, '3d');
    const made = await barsIn(lake, '3d');
    const trades = ALL.filter(
      ({ timeMs }) =>
        timeMs >= Date.parse('2024-01-30T00:00:00Z') && timeMs < Date.parse('2024-02-02T00:00:00Z'),
    );
    expect(made).toEqual(timeBars(trades, 3 * DAY));
    expect(manifestLines(folderOf(lake, '3d')).map(({ period, rows }) => [period, rows])).toEqual([
      ['2024-01-30', 1],
      ['2024-01-31', 0],
    ]);
  });

  it('of a week begin on a Monday, and wait until the week is over', async () => {
    const { stderr } = await barsOk(lake, '1w');
    expect(stderr).toContain(
      'no bar of 1w of the range lies within 2024-01-29 … 2024-02-03, the days of klines 1m',
    );
    expect(existsSync(folderOf(lake, '1w'))).toBe(false);
  });

  it('have a footer with the rule and the files, and a last line with their digest', async () => {
    await barsOk(lake, '15m');
    const { key_value_metadata: entries } = await parquetMetadata(
      join(folderOf(lake, '15m'), '2024-01.parquet'),
    );
    const entryOf = (name: string): string => entries?.find(({ key }) => key === name)?.value ?? '';
    const { made } = JSON.parse(entryOf('cryptodl')) as { made: object };
    const source = manifestLines(join(lake, 'binance/um/klines/interval=1m/symbol=BTCUSDT')).findLast(
      ({ file }) => file === '2024-01.parquet',
    );
    expect(made).toEqual({
      rule: 'bars 15m, from klines 1m, numbers double',
      files: [['2024-01.parquet', source?.['fileSha256']]],
    });
    expect(entryOf('license')).toContain('Binance');
    const lines = manifestLines(folderOf(lake, '15m')).slice(0, 3);
    expect(lines.map(({ key, verified, rows }) => [key, verified, rows])).toEqual(
      DAYS.slice(0, 3).map((day) => [`made/um/bars/15m/BTCUSDT/${day}`, 'lake', 96]),
    );
    expect(new Set(lines.map(({ sha256 }) => sha256)).size).toBe(1);
  });
});

describe('bars of trades', () => {
  it('have no volume and the close before in times without trades, with --fill-empty', async () => {
    const own = newLake();
    await download(own, '--dataset', 'aggTrades');
    await barsOk(own, '1m');
    expect((await barsOk(own, '1m', '--fill-empty')).stderr).not.toContain('nothing new');
    const made = await barsIn(own, '1m');
    const end = Date.parse('2024-02-04T00:00:00Z');
    expect(made).toHaveLength((end - (made[0]?.open_time ?? 0)) / MINUTE);
    expect((await barsOk(own, '1m', '--fill-empty')).stderr).toContain('nothing new');
  });

  it('count trades once that aggregates repeat under new ids', async () => {
    const folder = join(scratch, 'repeated');
    const own = newLake();
    const day = DAYS[0] ?? '';
    const trades = tradesOf(day, 900);
    const rows = trades.map(({ id, timeMs }, at) => `${at},100.5,2,${id},${id},${timeMs},true`);
    const again = trades
      .slice(400, 500)
      .map(({ id, timeMs }, at) => `${900 + at},100.5,2,${id},${id},${timeMs},true`);
    writeObject(folder, `data/futures/um/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-${day}`, [
      'agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker',
      ...rows,
      ...again,
    ]);
    const served = await startArchive(folder);
    try {
      const places = ['--archive-url', served.url, '--out', own, '--now', NOW, ...FAST];
      await cryptodl(argv`vision ${places} -s BTCUSDT --dataset aggTrades --from ${day} --to ${day}`);
    } finally {
      await served.close();
    }
    await barsOk(own, '1d');
    expect(await barsIn(own, '1d')).toMatchObject([{ count: 900, volume: 1800 }]);
  });
});

describe('the same command again', () => {
  it('makes nothing, then only the month of new days, and writes a line for each of these', async () => {
    const lake = newLake();
    await download(lake, '-i', '1m', '--from', '2024-01-29', '--to', '2024-02-01');
    await barsOk(lake, '15m');
    const before = digestsOf(lake, '15m');
    const lines = manifestLines(folderOf(lake, '15m')).length;
    const again = await barsOk(lake, '15m');
    expect([again.stdout, again.stderr]).toEqual([
      '',
      expect.stringMatching(/^nothing new for 1 series in /),
    ]);
    expect(digestsOf(lake, '15m')).toEqual(before);
    await download(lake, '-i', '1m', '--from', '2024-02-02', '--to', '2024-02-03');
    const { events } = await barsOk(lake, '15m', '--json');
    expect(events[0]).toMatchObject({ outcome: 'made', months: ['2024-02'], days: 3 });
    expect(
      manifestLines(folderOf(lake, '15m'))
        .slice(lines)
        .map(({ period }) => period),
    ).toEqual(['2024-02-02', '2024-02-03']);
    const whole = newLake(MINUTES);
    await barsOk(whole, '15m');
    expect(digestsOf(lake, '15m')).toEqual(digestsOf(whole, '15m'));
  });

  it('makes the month of a revised day again, and no other', async () => {
    const lake = newLake(MINUTES);
    await barsOk(lake, '15m');
    const revised = join(scratch, 'revised');
    cpSync(ARCHIVE, revised, { recursive: true });
    const trades = tradesOf('2024-01-30', 900, 2);
    writeDay(revised, '2024-01-30', trades);
    const second = await startArchive(revised);
    try {
      await download(
        lake,
        ...`-i 1m --from 2024-01-30 --to 2024-01-30 --archive-url ${second.url} --recheck-days 40`.split(' '),
      );
    } finally {
      await second.close();
    }
    const { events } = await barsOk(lake, '15m', '--json');
    expect(events[0]).toMatchObject({ months: ['2024-01'], days: 3 });
    const day = Date.parse('2024-01-30T00:00:00Z');
    const made = (await barsIn(lake, '15m')).filter(({ count }) => count > 0);
    expect(made.filter(({ open_time: at }) => at >= day && at < day + DAY)).toEqual(
      timeBars(trades, 15 * MINUTE),
    );
    expect(made.filter(({ open_time: at }) => at < day)).toEqual(
      timeBars(TRADES.get('2024-01-29') ?? [], 15 * MINUTE),
    );
  });

  it('takes the klines with the most days, and of these the longest', async () => {
    const lake = newLake(MINUTES);
    await download(lake, '-i', '1h', '--from', '2024-01-29', '--to', '2024-02-01');
    expect((await barsOk(lake, '4h', '-n', '--json')).events[0]).toMatchObject({ source: 'klines 1m' });
    await download(lake, '-i', '1h');
    expect((await barsOk(lake, '4h', '-n', '--json')).events[0]).toMatchObject({ source: 'klines 1h' });
  });

  it('tells bars that lack a day of trades', async () => {
    const lake = newLake();
    for (const day of ['2024-01-30', '2024-02-01'])
      await download(lake, '--dataset', 'aggTrades', '--from', day, '--to', day, '--recheck-days', '0');
    expect((await barsOk(lake, '3d', '--json')).events[0]).toMatchObject({ bars: 1, short: 1 });
  });

  it('makes bars again when empty ones are wanted, and when they are not wanted any more', async () => {
    const lake = newLake();
    const day = DAYS[0] ?? '';
    await download(lake, '--dataset', 'aggTrades', '--from', day, '--to', day);
    await barsOk(lake, '15m');
    for (const flags of [['--fill-empty'], []]) {
      const { events } = await barsOk(lake, '15m', '--json', ...flags);
      expect(events[0]).toMatchObject({ outcome: 'made', days: 1 });
      expect((await barsOk(lake, '15m', ...flags)).stderr).toContain('nothing new for 1 series');
    }
  });

  it('with --force makes all bars again, and with --dry-run changes nothing', async () => {
    const lake = newLake(MINUTES);
    const plan = await barsOk(lake, '1h', '-n');
    expect(plan.stdout).toBe('make\tum bars 1h BTCUSDT\t2024-01\nmake\tum bars 1h BTCUSDT\t2024-02\n');
    expect(existsSync(folderOf(lake, '1h'))).toBe(false);
    await barsOk(lake, '1h');
    const before = digestsOf(lake, '1h');
    expect((await barsOk(lake, '1h', '--force', '--json')).events[0]).toMatchObject({ days: 6 });
    expect(digestsOf(lake, '1h')).toEqual(before);
  });
});

describe('missing rows', () => {
  const lake = newLake();
  const gap = Date.parse('2024-01-30T10:05:00Z');
  beforeAll(async () => {
    const folder = join(scratch, 'gaps');
    for (const [day, trades] of TRADES)
      writeKlines(
        folder,
        { symbol: 'GAPUSDT', day, interval: '1m' },
        trades,
        (at) => at >= gap && at < gap + 30 * MINUTE,
      );
    const served = await startArchive(folder);
    try {
      await cryptodlOk(argv`vision --archive-url ${served.url} --out ${lake} --now ${NOW} ${FAST} -s GAPUSDT -i 1m --from
        2024-01-29 --to 2024-01-31`);
    } finally {
      await served.close();
    }
  });
  const gapBars = async (): Promise<Record<string, unknown>[]> => {
    const rows = await readParquet(join(lake, 'binance/um/bars/interval=15m/symbol=GAPUSDT/2024-01.parquet'));
    return rows.filter((row) => {
      const at = Number(row['open_time']);
      return at >= gap - 5 * MINUTE && at < gap + 40 * MINUTE;
    });
  };

  it('are told; bars are made from the rows that exist, and empty ones are absent', async () => {
    const { events } = await barsOk(lake, '15m', '--json');
    // 10:00 and 10:30 lack rows; 10:15 has none, so it is absent.
    expect(events[0]).toMatchObject({ outcome: 'made', short: 3 });
    expect(
      (await gapBars()).map((row) => new Date(Number(row['open_time'])).toISOString().slice(11, 16)),
    ).toEqual(['10:00', '10:30']);
    expect((await barsOk(lake, '15m', '--force')).stderr).toContain('3 bars lack rows of the source');
  });

  it('stay absent with --fill-empty', async () => {
    await barsOk(lake, '15m', '--fill-empty', '--force');
    expect(await gapBars()).toHaveLength(2);
  });

  it('are not gaps of the bars for coverage, which asks only for their own days', async () => {
    const found = await cryptodl(
      argv`coverage -o ${lake} --dataset bars --from 2024-01-01 --to 2024-02-19 --now ${NOW} --min 100 --json`,
    );
    expect(found).toMatchObject({ code: 0 });
  });
});

describe('the query of docs/bars.md', () => {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/bars.md'), 'utf8');
  const query = /```sql\n([\s\S]*?)```/.exec(guide)?.[1] ?? '';

  it('finds bars that differ from the klines of the archive', async () => {
    const folder = join(scratch, 'other');
    const day = DAYS[0] ?? '';
    const trades = TRADES.get(day) ?? [];
    const last = trades.at(-1);
    const changed = trades.map((trade) =>
      trade === last ? { ...trade, quantity: trade.quantity + 1n } : trade,
    );
    const gone = Date.parse(`${day}T05:00:00Z`);
    writeKlines(folder, { symbol: 'BTCUSDT', day, interval: '1m' }, trades);
    writeKlines(
      folder,
      { symbol: 'BTCUSDT', day, interval: '1h', lengthMs: HOUR },
      changed,
      (at) => at === gone,
    );
    const served = await startArchive(folder);
    const lake = newLake();
    try {
      const range = ['--from', day, '--to', day, '--archive-url', served.url];
      await download(lake, '-i', '1m,1h', ...range);
    } finally {
      await served.close();
    }
    const { events } = await cryptodlOk(['sql', query, '--out', lake, '--json']);
    const hour = Math.floor((last?.timeMs ?? 0) / HOUR) * HOUR;
    const times = [gone, hour].map((at) => new Date(at).toISOString().slice(0, 13));
    expect(events.map(({ open_time: time }) => String(time).replace(' ', 'T').slice(0, 13))).toEqual(times);
    await barsOk(lake, '1h');
    const ofBars = query.replace(
      "FROM um_klines WHERE interval = '1h'",
      "FROM um_bars WHERE interval = '1h'",
    );
    expect((await cryptodlOk(['sql', ofBars, '--out', lake, '--json'])).events).toEqual([]);
  });
});

describe('other verbs', () => {
  const lake = newLake();
  beforeAll(async () => {
    cpSync(MINUTES, lake, { recursive: true });
    await barsOk(lake, '15m');
    await download(lake, '--dataset', 'aggTrades', '--from', '2024-01-29', '--to', '2024-01-29');
    await barsOk(lake, '1h', '--dataset', 'aggTrades');
  });

  it('sql, verify, coverage, plot and list know the bars', async () => {
    const found =
      await cryptodlOk(argv`sql ${'SELECT interval, count(*) AS bars FROM um_bars GROUP BY ALL ORDER BY ALL'} -o ${lake}
      --json`);
    expect(found.events).toEqual([
      { interval: '15m', bars: 576 },
      { interval: '1h', bars: timeBars(TRADES.get('2024-01-29') ?? [], 60 * MINUTE).length },
    ]);
    expect(await cryptodl(['verify', '--deep', '-o', lake])).toMatchObject({ code: 0, stdout: '' });
    const covered = await cryptodlOk(['coverage', '-o', lake, '--dataset', 'bars', '--now', NOW, '--json']);
    expect(covered.events.at(-1)).toMatchObject({ event: 'summary' });
    expect(covered.stdout).not.toContain('"isMissing":true');
    expect(
      (await cryptodlOk(['plot', 'BTCUSDT', '--dataset', 'bars', '-i', '15m', '-o', lake, '--now', NOW]))
        .stdout,
    ).toContain('a candle is');
    const listed = await cryptodlOk(['list', 'datasets', '-m', 'um']);
    expect(listed.stdout).toMatch(/^bars\tum\tlake\tmade by cryptodl bars\t/m);
    const schema = await cryptodlOk(['schema', 'bars', '-m', 'um']);
    expect(schema.stdout).toContain('made by');
    expect(schema.stdout).not.toContain('ignore');
  });

  it('vision and metrics do not continue them, and refuse the dataset', async () => {
    const own = newLake();
    cpSync(lake, own, { recursive: true });
    archive.requests.length = 0;
    await cryptodlOk(
      argv`vision --archive-url ${archive.url} -o ${own} --now ${NOW} --to 2024-02-03 ${FAST}`,
    );
    expect(JSON.stringify(archive.requests)).not.toContain('bars');
    for (const verb of ['vision', 'metrics', 'audit', 'enqueue']) {
      const args = verb === 'enqueue' ? ['enqueue', 'vision', '--redis', 'redis://127.0.0.1:1'] : [verb];
      const refused = await cryptodl([...args, '--dataset', 'bars', '-s', 'BTCUSDT', '-d', '1', '-o', own]);
      expect([verb, refused.code]).toEqual([verb, 2]);
      expect(refused.stderr).toContain('has no dataset "bars"');
    }
  });

  it('verify --fix and repair leave a damaged file to bars, and send no request', async () => {
    const own = newLake();
    cpSync(lake, own, { recursive: true });
    const path = join(folderOf(own, '15m'), '2024-01.parquet');
    const sound = readFileSync(path);
    writeFileSync(path, sound.subarray(0, -100));
    const found = await cryptodl(['verify', '-o', own]);
    expect(found.code).toBe(4);
    const fixed = await cryptodl(['verify', '--fix', '-o', own]);
    expect(fixed.stderr).toContain('next  cryptodl repair --out');
    archive.requests.length = 0;
    const repaired = await cryptodl(argv`repair --archive-url ${archive.url} -o ${own} --now ${NOW} ${FAST}`);
    expect(repaired.stderr).toContain('cryptodl bars 15m --market um --symbols BTCUSDT');
    expect(archive.requests).toEqual([]);
    expect((await barsOk(own, '15m', '--json')).events[0]).toMatchObject({ months: ['2024-01'] });
    expect(readFileSync(path).equals(sound)).toBe(true);
    expect(await cryptodl(['verify', '--deep', '-o', own])).toMatchObject({ code: 0 });
  });

  it('bars keeps a damaged file in the quarantine and makes it again', async () => {
    const own = newLake();
    cpSync(lake, own, { recursive: true });
    const path = join(folderOf(own, '15m'), '2024-02.parquet');
    const sound = readFileSync(path);
    const wrong = Buffer.from(sound);
    wrong[100] = (wrong[100] ?? 0) ^ 1;
    writeFileSync(path, wrong.subarray(0, -1));
    await barsOk(own, '15m');
    expect(readFileSync(path).equals(sound)).toBe(true);
    expect(filesBelow(join(own, '_quarantine')).length).toBeGreaterThan(0);
  });
});

describe('spot', () => {
  it('has the inclusive ends of the archive, before and after its change to microseconds', async () => {
    const folder = join(scratch, 'spot');
    const spec = { market: 'spot', symbols: ['BTCUSDT'], cadence: 'daily', dataset: 'klines' } as const;
    for (const interval of ['1m', '1h'])
      makeArchive(folder, { ...spec, interval, from: '2024-12-31', to: '2025-01-01' });
    const served = await startArchive(folder);
    const lake = newLake();
    try {
      await cryptodlOk(
        'vision -m spot -s BTCUSDT -i 1m,1h --from 2024-12-31 --to 2025-01-01 --now 2025-02-20T08:00:00Z'
          .split(' ')
          .concat('--archive-url', served.url, '--out', lake, ...FAST),
      );
    } finally {
      await served.close();
    }
    await barsOk(lake, '1h');
    const query = `SELECT count(*) AS bars, count_if(b.close_time = k.close_time) AS same FROM spot_bars AS b
      JOIN spot_klines AS k USING (symbol, interval, open_time)`;
    const { events } = await cryptodlOk(['sql', query, '--out', lake, '--json']);
    expect(events).toEqual([{ bars: 48, same: 48 }]);
  });
});

describe('numbers as text', () => {
  it('keep the digits of the archive', async () => {
    const lake = newLake();
    await download(lake, '-i', '1m,1h', '--numbers', 'string');
    await barsOk(lake, '1h');
    const folder = join(lake, 'binance/um/klines/interval=1h/symbol=BTCUSDT');
    const published = (
      await Promise.all(filesBelow(folder).map((file) => readParquet(join(folder, file))))
    ).flat();
    const own = folderOf(lake, '1h');
    const made = (await Promise.all(filesBelow(own).map((file) => readParquet(join(own, file))))).flat();
    for (const row of published) delete row['ignore'];
    expect(made.length).toBe(144);
    // Sums have no zeros at the end.
    const trimmed = ([name, value]: readonly [string, unknown]): readonly [string, unknown] =>
      name.includes('volume') ? [name, String(value).replace(/\.?0+$/, '')] : [name, value];
    expect(made).toEqual(published.map((row) => Object.fromEntries(Object.entries(row).map(trimmed))));
  });
});

describe('bars refuses', () => {
  const lake = newLake();
  beforeAll(() => download(lake, '-i', '1h', '--from', '2024-01-29', '--to', '2024-01-29'));

  it.each([
    ['0m', 'bars: "0m" is no bar'],
    ['29d', 'bars: "29d" is no bar'],
    ['1M', 'a bar is a number with m, h, d or w'],
    ['tick:500', 'bars: "tick:500" is no bar'],
    ["1h'; DROP TABLE x", 'is no bar'],
    ['../../x', 'is no bar'],
  ])('%s', async (bar, message) => {
    const { code, stderr } = await bars(lake, bar);
    expect([code, stderr.split('\n').length]).toEqual([2, expect.any(Number)]);
    expect(stderr).toContain(message);
  });

  it('a symbol without a source in one line, and makes the others', async () => {
    const own = newLake();
    await download(own, '-i', '1h', '--from', '2024-01-29', '--to', '2024-01-29');
    const { code, stderr } = await bars(own, '15m');
    expect(code).toBe(4);
    expect(stderr).toContain(
      'um bars 15m BTCUSDT: not made: no source: the lake has klines 1h; a bar of 15m needs shorter klines that divide it, aggTrades (not of cm) or trades',
    );
  });
});
