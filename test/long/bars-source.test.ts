/** The source of `cryptodl bars`: which one it keeps, what it says of others, and sources with faults. */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import { timeBars, tradesOf, writeAggTrades, writeKlines } from '../helpers/bar-archive.js';
import type { Trade } from '../helpers/bar-archive.js';
import { FAST, cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { flipByte, scratchFolder } from '../helpers/folders.js';
import { filesBelow, manifestLines, manifestOf, readParquet } from '../helpers/lake.js';
import { whileLosingLock, whileStaged } from '../helpers/lost-lock.js';
import { writeObject } from '../helpers/published.js';

const scratch = scratchFolder();
const NOW = '2024-03-20T08:00:00Z';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAYS = ['2024-01-29', '2024-01-30', '2024-01-31'];
const HEADER =
  'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore';
const LENGTHS = { '1m': MINUTE, '5m': 5 * MINUTE } as const;
let number = 0;

const newFolder = (name: string): string => {
  number += 1;
  return join(scratch, `${name}-${number}`);
};

/** An archive with these days as klines of 1m and 5m and as aggTrades. */
function writeArchive(seed: number, symbol = 'BTCUSDT'): string {
  const folder = newFolder('archive');
  for (const day of DAYS) {
    const trades = tradesOf(day, 300, seed);
    for (const [interval, lengthMs] of Object.entries(LENGTHS))
      writeKlines(folder, { symbol, day, interval, lengthMs }, trades);
    writeAggTrades(folder, symbol, day, trades);
  }
  return folder;
}

async function download(folder: string, lake: string, ...args: readonly string[]): Promise<void> {
  const served = await startArchive(folder);
  const range = args.includes('--to') ? [] : ['--to', '2024-01-31'];
  const from = args.includes('--from') ? [] : ['--from', '2024-01-29'];
  const own = ['--archive-url', served.url, '--out', lake, '--now', NOW, ...FAST, ...from];
  try {
    await cryptodlOk([
      'vision',
      ...own,
      ...range,
      ...(args.includes('-s') ? [] : ['-s', 'BTCUSDT']),
      ...args,
    ]);
  } finally {
    await served.close();
  }
}

const bars = (lake: string, ...args: readonly string[]): Promise<CliResult> =>
  cryptodl(['bars', ...args, '--out', lake, '--now', NOW]);

const folderOf = (lake: string, series: string): string => join(lake, 'binance/um', series);
const BARS_1H = 'bars/interval=1h/symbol=BTCUSDT';
const KLINES_1M = 'klines/interval=1m/symbol=BTCUSDT';

async function rowsIn(lake: string, series: string): Promise<Record<string, unknown>[]> {
  const folder = folderOf(lake, series);
  const files = filesBelow(folder, '.parquet').sort();
  return (await Promise.all(files.map((file) => readParquet(join(folder, file))))).flat();
}

/** Volumes of hours with trades. */
async function volumes(lake: string): Promise<number[]> {
  const rows = await rowsIn(lake, BARS_1H);
  return rows.map((row) => Number(row['volume'])).filter((volume) => volume > 0);
}

const expectedVolumes = (seed: number, days = DAYS): number[] =>
  timeBars(
    days.flatMap((day): Trade[] => tradesOf(day, 300, seed)),
    HOUR,
  ).map(({ volume }) => volume);

const first = writeArchive(1);
const revised = writeArchive(2);
const lakeOfMinutes = async (): Promise<string> => {
  const lake = newFolder('lake');
  await download(first, lake, '-i', '1m');
  return lake;
};

describe('the source of bars', () => {
  it('changes with flags for whole months, and with --force if it lacks days of them', async () => {
    const lake = await lakeOfMinutes();
    await bars(lake, '1h');
    await download(revised, lake, '--dataset', 'aggTrades', '--to', '2024-01-30');
    const range = ['--from', '2024-01-29', '--to', '2024-01-29'];
    const refused = await bars(lake, '1h', '--dataset', 'aggTrades', ...range);
    expect([refused.code, refused.stderr]).toEqual([
      4,
      expect.stringContaining(
        'its bars have days that aggTrades does not have: 2024-01-31; --force makes their months again without them',
      ) as string,
    ]);
    expect(await volumes(lake)).toEqual(expectedVolumes(1));
    const { code, stderr } = await bars(lake, '1h', '--dataset', 'aggTrades', '--force', ...range);
    expect(code).toBe(0);
    expect(stderr).toContain('of 2 days in 1 month made from aggTrades');
    expect(await volumes(lake)).toEqual(expectedVolumes(2, DAYS.slice(0, 2)));
    expect((await bars(lake, '1h')).stderr).toContain('made from klines 1m');
    expect(await volumes(lake)).toEqual(expectedVolumes(1));
  });

  it('changes when the lake no longer has it', async () => {
    const lake = await lakeOfMinutes();
    await bars(lake, '1h');
    await download(first, lake, '-i', '5m');
    rmSync(manifestOf(folderOf(lake, KLINES_1M)));
    rmSync(folderOf(lake, KLINES_1M), { recursive: true });
    const { code, stderr } = await bars(lake, '1h');
    expect(code).toBe(0);
    expect(stderr).toContain('made from klines 5m');
  });

  it('lacks days, which is told with their number', async () => {
    const folder = newFolder('archive');
    const lake = newFolder('lake');
    for (const day of ['2024-01-29', '2024-01-31', '2024-02-02'])
      writeKlines(folder, { symbol: 'BTCUSDT', day, interval: '1m' }, tradesOf(day, 300, 1));
    await download(folder, lake, '-i', '1m', '--to', '2024-02-02');
    const { code, stderr } = await bars(lake, '1h');
    expect(code).toBe(0);
    expect(stderr).toContain('72 bars of 3 days in 2 months made from klines 1m; klines 1m lack 2 days\n');
    expect(stderr).toContain('\nthe sources lack 2 days; cryptodl coverage shows gaps\n');
    const part = await bars(lake, '1h', '--force', '--to', '2024-01-31', '--json');
    expect(part.events).toMatchObject([{ days: 2, missingDays: 1 }, { missingDays: 1 }]);
  });
});

describe('a source with a fault', () => {
  const lake = newFolder('lake');
  const file = join(folderOf(lake, KLINES_1M), '2024-01.parquet');
  const barsFile = join(folderOf(lake, BARS_1H), '2024-01.parquet');
  let sound: Buffer;
  let made: Buffer;
  beforeAll(async () => {
    await download(first, lake, '-i', '1m');
    await download(writeArchive(3, 'ETHUSDT'), lake, '-i', '1m', '-s', 'ETHUSDT');
    await bars(lake, '1h', '-s', 'BTCUSDT');
    sound = readFileSync(file);
    made = readFileSync(barsFile);
  });

  it.each([
    [
      'is missing',
      () => {
        rmSync(file);
      },
    ],
    [
      'has another size',
      () => {
        truncateSync(file, sound.length - 5);
      },
    ],
  ] as const)('that %s: its bars stay, others are made, exit 4', async (_, damage) => {
    damage();
    try {
      const { code, stderr } = await bars(lake, '1h', '--force');
      expect(code).toBe(4);
      expect(stderr).toContain(`um bars 1h BTCUSDT: not made: klines 1m: ${file} is missing or`);
      expect(stderr).toContain(
        `cryptodl verify --fix --out ${lake}, then cryptodl repair --out ${lake}, fetches`,
      );
      expect(stderr).toMatch(/um bars 1h ETHUSDT: 72 bars .* made/);
      expect(readFileSync(barsFile).equals(made)).toBe(true);
      expect((await bars(lake, '1h', '-n')).code).toBe(4);
    } finally {
      writeFileSync(file, sound);
    }
  });

  it('that has the size but other bytes', async () => {
    flipByte(file, 300);
    try {
      const { code, stderr } = await bars(lake, '1h', '--force', '-s', 'BTCUSDT');
      expect(code).toBe(4);
      expect(stderr).toContain(
        `not made: the rows of klines 1m: ${file} does not have the content that was committed; cryptodl verify --fix --out ${lake}, then`,
      );
      expect(readFileSync(barsFile).equals(made)).toBe(true);
    } finally {
      flipByte(file, 300);
    }
  });

  it('with a number out of range', async () => {
    const own = newFolder('lake');
    const archive = newFolder('archive');
    writeMinutes(archive, '1m', (at) => (at === 7 ? '1e31' : '1'));
    await download(archive, own, '-i', '1m', '--to', '2024-01-29');
    const { code, stderr } = await bars(own, '1h');
    expect([code, stderr]).toEqual([
      4,
      expect.stringMatching(/^um bars 1h BTCUSDT: not made: the rows of klines 1m: Conversion Error: .*$/m),
    ]);
    expect(stderr).not.toContain('unexpected');
  });
});

/** Writes candles of 2024-01-29 with this volume, which is the quote volume too. */
function writeMinutes(
  archive: string,
  interval: '1m' | '1h',
  volumeOf: (at: number) => string,
  isThere: (at: number) => boolean = () => true,
  change: (cells: readonly string[], at: number) => readonly string[] = (cells) => cells,
): void {
  const lengthMs = interval === '1m' ? MINUTE : HOUR;
  const start = Date.parse('2024-01-29T00:00:00Z');
  const rows = Array.from({ length: (24 * HOUR) / lengthMs }, (_, at) => {
    const volume = volumeOf(at);
    const open = start + at * lengthMs;
    return `${open},2.5,2.5,2.5,2.5,${volume},${open + lengthMs - 1},${volume},${lengthMs / MINUTE},${volume},${volume},0`;
  });
  writeObject(archive, `data/futures/um/daily/klines/BTCUSDT/${interval}/BTCUSDT-${interval}-2024-01-29`, [
    HEADER,
    ...rows.map((row, at) => change(row.split(','), at).join(',')).filter((_, at) => isThere(at)),
  ]);
}

describe('a damaged file of bars with days that no source has', () => {
  it('loses these days with --force, also in its manifest', async () => {
    const lake = await lakeOfMinutes();
    await bars(lake, '1h');
    rmSync(manifestOf(folderOf(lake, KLINES_1M)));
    rmSync(folderOf(lake, KLINES_1M), { recursive: true });
    await download(first, lake, '-i', '1m', '--from', '2024-01-30');
    truncateSync(join(folderOf(lake, BARS_1H), '2024-01.parquet'), 1000);
    expect((await bars(lake, '1h')).code).toBe(4);
    expect((await bars(lake, '1h', '--force')).code).toBe(0);
    const lines = manifestLines(folderOf(lake, BARS_1H)).slice(DAYS.length);
    expect(lines.map(({ kind, key }) => `${String(kind)} ${String(key).slice(-10)}`)).toEqual([
      'dropped 2024-01-29',
      // The line of 2024-01-30 still holds.
      'object 2024-01-31',
    ]);
    expect(await volumes(lake)).toEqual(expectedVolumes(1, DAYS.slice(1)));
    expect((await cryptodl(['verify', '--out', lake])).code).toBe(0);
    expect((await bars(lake, '1h')).stderr).toContain('nothing new for 1 series');
  });
});

describe('a symbolic link in place of the folder of bars', () => {
  it('is not followed, also if it appears while the bars are made', async () => {
    const lake = newFolder('lake');
    const outside = newFolder('outside');
    mkdirSync(outside);
    await download(first, lake, '-i', '1m');
    const link = (): void => {
      symlinkSync(outside, folderOf(lake, 'bars'));
    };
    const { code, stderr } = await whileStaged(join(lake, '.cryptodl'), link, () => bars(lake, '1h'));
    expect([code, stderr]).toEqual([1, expect.stringContaining('symbolic link') as string]);
    expect(filesBelow(outside)).toEqual([]);
  });
});

describe('a source with other settings', () => {
  it('makes whole months again, and none if it lacks days of them', async () => {
    const lake = await lakeOfMinutes();
    await bars(lake, '1h');
    const replaceSource = async (...flags: readonly string[]): Promise<void> => {
      rmSync(manifestOf(folderOf(lake, KLINES_1M)));
      rmSync(folderOf(lake, KLINES_1M), { recursive: true });
      await download(first, lake, '-i', '1m', '--numbers', 'string', ...flags);
    };
    await replaceSource('--from', '2024-01-30');
    const before = await rowsIn(lake, BARS_1H);
    const { code, stderr } = await bars(lake, '1h');
    expect(code).toBe(4);
    expect(stderr).toContain('not made: its bars have days that klines 1m does not have: 2024-01-29; ');
    expect(await rowsIn(lake, BARS_1H)).toEqual(before);
    await replaceSource();
    expect((await bars(lake, '1h')).code).toBe(0);
    const rows = await rowsIn(lake, BARS_1H);
    expect(rows.map((row) => typeof row['open'])).toEqual(before.map(() => 'string'));
    expect((await cryptodl(['verify', '--out', lake])).code).toBe(0);
  });
});

describe('times with a zone', () => {
  it('give the same bars where the local time is not UTC', async () => {
    const made: unknown[] = [];
    for (const [timestamps, TZ] of [
      ['us', 'UTC'],
      ['utc', 'Asia/Tokyo'],
      ['utc', 'America/New_York'],
    ] as const) {
      const lake = newFolder('lake');
      await download(first, lake, '-i', '1m', '--timestamps', timestamps);
      const range = ['--from', '2024-01-30', '--to', '2024-01-30'];
      await cryptodlOk(['bars', '1h', ...range, '--out', lake, '--now', NOW], { env: { TZ } });
      made.push(await rowsIn(lake, BARS_1H));
    }
    expect(made[0]).toHaveLength(72);
    expect(made[1]).toEqual(made[0]);
    expect(made[2]).toEqual(made[0]);
  });
});

describe('a lost lock', () => {
  it('ends the command before it writes to the lake, without a temporary file', async () => {
    const lake = await lakeOfMinutes();
    const { code, stderr } = await whileLosingLock(join(lake, '.cryptodl'), () => bars(lake, '1h'));
    expect([code, stderr]).toEqual([6, expect.stringContaining('has lost the lock') as string]);
    expect(existsSync(folderOf(lake, BARS_1H))).toBe(false);
    expect(filesBelow(join(lake, '.cryptodl/tmp'))).toEqual([]);
  });
});

describe('sums', () => {
  it('of texts have all digits, without zeros at the end', async () => {
    const archive = newFolder('archive');
    const lake = newFolder('lake');
    const published = (cells: readonly string[], at: number): readonly string[] =>
      at === 0 ? cells.with(5, '59').with(7, '0.50').with(9, '29.5').with(10, '0.12345678') : cells;
    writeMinutes(
      archive,
      '1m',
      () => '0',
      () => true,
      published,
    );
    await download(archive, lake, '-i', '1m', '--to', '2024-01-29', '--numbers', 'string');
    expect((await bars(lake, '1h')).code).toBe(0);
    const [row] = await rowsIn(lake, BARS_1H);
    expect(row).toMatchObject({
      volume: '59',
      quote_volume: '0.5',
      taker_buy_volume: '29.5',
      taker_buy_quote_volume: '0.12345678',
    });
  });

  it('of texts with exponents have all digits', async () => {
    const archive = newFolder('archive');
    const lake = newFolder('lake');
    writeMinutes(archive, '1m', (at) => (at % 60 === 0 ? '137.50' : at % 60 === 1 ? '5E-7' : '0.0'));
    await download(archive, lake, '-i', '1m', '--to', '2024-01-29', '--numbers', 'string');
    expect((await bars(lake, '1h')).code).toBe(0);
    const [row] = await rowsIn(lake, BARS_1H);
    expect(row).toMatchObject({ volume: '137.5000005', quote_volume: '137.5000005' });
  });
});

describe('--fill-empty', () => {
  it('fills whole days of trades that the lake has, and no others', async () => {
    const archive = newFolder('archive');
    const lake = newFolder('lake');
    for (const [at, day] of DAYS.entries())
      if (at !== 1) writeAggTrades(archive, 'BTCUSDT', day, tradesOf(day, 3));
    await download(archive, lake, '--dataset', 'aggTrades');
    const { stderr } = await bars(lake, '7m', '--fill-empty');
    expect(stderr).toContain('made from aggTrades');
    const times = (await rowsIn(lake, 'bars/interval=7m/symbol=BTCUSDT')).map((row) =>
      Number(row['open_time']),
    );
    const [from, to] = [Date.parse('2024-01-30T00:00:00Z'), Date.parse('2024-01-31T00:00:00Z')];
    expect(times.length).toBeGreaterThan(200);
    expect(times.filter((at) => at + 7 * MINUTE > from && at < to)).toEqual([]);
  });
});
