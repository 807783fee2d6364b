/** `cryptodl audit`: differences between monthly and daily objects, the findings, and the rebuilt lake. */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeCsv } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { argv, cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, manifestLines, parquetDigests } from '../helpers/lake.js';
import { publish } from '../helpers/published.js';

const scratch = scratchFolder();
const folder = join(scratch, 'archive');
const JANUARY = ['--from', '2024-01-01', '--to', '2024-01-31'];
const HOUR_MS = 3_600_000;
let archive: TestArchive;

type Edit = (rows: string[]) => string[];

/** Daily objects as they should be, and a monthly object of the same rows after `edit`. */
function bars(symbol: string, edit: Edit = (rows) => rows, days = 31): void {
  const spec = { market: 'um', dataset: 'klines', interval: '1h', symbol } as const;
  let header = '';
  const rows: string[] = [];
  for (let day = 1; day <= 31; day += 1) {
    const period = `2024-01-${String(day).padStart(2, '0')}`;
    const { csv } = makeCsv({ ...spec, period });
    const [first = '', ...own] = csv.trimEnd().split('\n');
    header = first;
    rows.push(...own);
    if (day <= days) publish(folder, keyOf(symbol, period), csv);
  }
  publish(folder, keyOf(symbol, '2024-01'), `${[header, ...edit(rows)].join('\n')}\n`);
}

/** Its last two rows are gone. */
function cutDay(symbol: string, period: string): void {
  const { csv } = makeCsv({ market: 'um', dataset: 'klines', interval: '1h', symbol, period });
  publish(folder, keyOf(symbol, period), csv.split('\n').slice(0, -3).join('\n'));
}

function keyOf(symbol: string, period: string): string {
  const cadence = period.length === 7 ? 'monthly' : 'daily';
  return `data/futures/um/${cadence}/klines/${symbol}/1h/${symbol}-1h-${period}.zip`;
}

/** Rows of the hours since the month began, with one cell changed. */
function withCell(hours: readonly number[], column: number, value: string): Edit {
  return (rows) =>
    rows.map((row, hour) => {
      if (!hours.includes(hour)) return row;
      return row
        .split(',')
        .map((cell, at) => (at === column ? value : cell))
        .join(',');
    });
}

const without =
  (from: number, to: number): Edit =>
  (rows) =>
    rows.filter((_, hour) => hour < from || hour >= to);

const later: Edit = (rows) =>
  rows.map((row) =>
    row
      .split(',')
      .map((cell, at) => (at === 0 || at === 6 ? String(Number(cell) + HOUR_MS) : cell))
      .join(','),
  );

beforeAll(async () => {
  bars('RIGHTUSDT', (rows) => [...rows.slice(5), ...rows.slice(0, 5), ...rows.slice(0, 2)]);
  bars('SHORTUSDT', without(240, 288));
  bars('LACKSUSDT', without(30, 33));
  bars('DIFFUSDT', withCell([100, 200], 4, '12345.6'));
  bars('LATERUSDT', later);
  bars('FEWUSDT', withCell([100], 4, '12345.6'), 20);
  // The days lack what the month has.
  bars('EXTRAUSDT');
  bars('MIXEDUSDT', withCell([100], 4, '12345.6'));
  for (const symbol of ['EXTRAUSDT', 'MIXEDUSDT']) cutDay(symbol, '2024-01-03');
  archive = await startArchive(folder);
});
afterAll(() => archive.close());

function run(verb: 'audit' | 'vision', out: string, ...args: readonly string[]): Promise<CliResult> {
  const fast = verb === 'vision' ? FAST : FAST.slice(0, -2);
  return cryptodl([verb, '--archive-url', archive.url, '--out', join(scratch, out), ...fast, ...args]);
}

function audit(out: string, symbols: string, ...args: readonly string[]): Promise<CliResult> {
  return run('audit', out, '--interval', '1h', '--symbols', symbols, ...JANUARY, ...args);
}

async function findingsOf(symbol: string): Promise<Readonly<Record<string, unknown>>[]> {
  const { events, code } = await audit('none', symbol, '--json');
  const findings = events.filter(({ event }) => event === 'finding');
  expect(code).toBe(findings.length === 0 ? 0 : 4);
  return findings;
}

describe('a month and its days', () => {
  it('with equal rows give no finding, also in another order or with exact duplicates', async () => {
    const quiet = await audit('none', 'RIGHTUSDT', '--quiet');
    expect(quiet).toMatchObject({ code: 0, stdout: '', stderr: '' });
    const told = await audit('none', 'RIGHTUSDT');
    expect(told).toMatchObject({ code: 0, stdout: '' });
    expect(told.stderr).toBe('1 series, 1 month: 1 with both cadences, 744 rows compared; 0 findings\n');
  });

  it('reports rows that only the daily objects have', async () => {
    expect(await findingsOf('LACKSUSDT')).toMatchObject([
      { kind: 'rows-missing', rows: 3, days: ['2024-01-02'], example: { open_time: '2024-01-02 06:00:00' } },
    ]);
  });

  it('reports rows that only the monthly object has', async () => {
    expect(await findingsOf('EXTRAUSDT')).toMatchObject([
      { kind: 'rows-extra', rows: 2, days: ['2024-01-03'], example: { open_time: '2024-01-03 22:00:00' } },
    ]);
  });

  it('reports rows that differ, with their columns and the first row', async () => {
    const [finding, ...others] = await findingsOf('DIFFUSDT');
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      kind: 'rows-differ',
      rows: 2,
      columns: { close: 2 },
      example: { open_time: '2024-01-05 04:00:00', 'monthly.close': 12345.6 },
    });
    const { stdout } = await audit('none', 'DIFFUSDT');
    expect(stdout).toMatch(
      /^um klines 1h DIFFUSDT 2024-01 {2}rows-differ {2}2 rows, close \(2\); first open_time 2024-01-05 04:00:00, monthly\.close 12345\.6, daily\.close [\d.]+\n$/,
    );
  });

  it('reports rows one hour later as different, missing and extra rows', async () => {
    expect(await findingsOf('LATERUSDT')).toMatchObject([
      { kind: 'rows-differ', rows: 743 },
      { kind: 'rows-missing', rows: 1, days: ['2024-01-01'] },
      { kind: 'rows-extra', rows: 1, days: ['2024-02-01'] },
    ]);
  });

  it('missing daily objects are not compared; the summary counts the compared rows', async () => {
    const { events, stderr } = await audit('none', 'FEWUSDT', '--json');
    expect(events.map(({ kind }) => kind)).toEqual(['rows-differ', undefined]);
    expect(events.at(-1)).toEqual({
      event: 'audit',
      series: 1,
      months: 1,
      compared: 1,
      rows: 480,
      findings: { 'rows-differ': 1 },
      failed: 0,
      rebuildable: 0,
      mended: 0,
      exitCode: 4,
    });
    expect(stderr).toContain('480 rows compared; 1 finding');
  });
});

describe('single objects', () => {
  const days = ['2025-03-01', '2025-03-02', '2025-03-03', '2025-03-04', '2025-03-05'];
  const march = ['--from', '2025-03-01', '--to', '2025-03-31'];

  /** One daily object per day, edited line by line. */
  function daily(
    market: 'spot' | 'um',
    dataset: 'aggTrades',
    edit: (rows: string[], day: string) => string[],
  ): void {
    const symbol = 'BTCUSDT';
    for (const period of days) {
      const { csv } = makeCsv({ market, dataset, symbol, period, header: true });
      const [header = '', ...rows] = csv.trimEnd().split('\n');
      const path = market === 'spot' ? 'spot' : 'futures/um';
      const key = `data/${path}/daily/${dataset}/${symbol}/${symbol}-${dataset}-${period}.zip`;
      publish(folder, key, `${[header, ...edit(rows, period)].join('\n')}\n`);
    }
  }

  it('reports missing ids within a day and between two days, also of ids out of order', async () => {
    daily('spot', 'aggTrades', (rows, day) => {
      if (day === days[0]) return rows.filter((_, at) => at !== 4 && at !== 5);
      if (day === days[2]) return rows.slice(3);
      return day === days[4] ? [...rows.slice(9), ...rows.slice(0, 9)] : rows;
    });
    const args = ['--market', 'spot', '--dataset', 'aggTrades', '--symbols', 'BTCUSDT', ...march, '--json'];
    const { code, events } = await run('audit', 'none', ...args);
    expect(code).toBe(4);
    const ofDay = (day: string | undefined): unknown => expect.stringContaining(`-${day ?? ''}.zip`);
    expect(events.slice(0, -1)).toMatchObject([
      { kind: 'ids-missing', key: ofDay(days[0]), rows: 2 },
      { kind: 'ids-missing', key: ofDay(days[1]), rows: 3 },
    ]);
  });
});

describe('an object that fails', () => {
  it('is named, gives exit code 3, and the other objects are audited', async () => {
    archive.fault = (path, _request, response) => {
      if (!path.endsWith('DIFFUSDT-1h-2024-01-07.zip')) return false;
      response.writeHead(503).end();
      return true;
    };
    const temp = join(scratch, 'spool');
    mkdirSync(temp);
    const flags = argv`--json --temp-dir ${temp} --retries 1`;
    const { code, events, stderr } = await audit('none', 'DIFFUSDT,SHORTUSDT', ...flags);
    archive.fault = undefined;
    expect(code).toBe(3);
    expect(events.map(({ event, kind, code: why }) => kind ?? why ?? event)).toEqual([
      'rows-differ',
      'http-server-error',
      'rows-missing',
      'audit',
    ]);
    expect(stderr).toContain(`failed  ${keyOf('DIFFUSDT', '2024-01-07')}: `);
    expect(readdirSync(temp)).toEqual([]);
  });

  it('an object with a wrong CSV is a permanent failure', async () => {
    bars('BROKENUSDT', without(192, 216));
    publish(folder, keyOf('BROKENUSDT', '2024-01-09'), 'not,a,row\n');
    const { code, stderr } = await audit('none', 'BROKENUSDT');
    expect(code).toBe(4);
    expect(stderr).toContain(`failed  ${keyOf('BROKENUSDT', '2024-01-09')}: `);
  });

  it('a lake without series is a usage error with the next step', async () => {
    const { code, stderr } = await run('audit', 'no-lake');
    expect(code).toBe(2);
    expect(stderr).toContain('holds no series');
    expect(stderr).toContain('name the lake with --out');
    expect(existsSync(join(scratch, 'no-lake'))).toBe(false);
  });
});

describe('a lake', () => {
  const SYMBOLS = 'RIGHTUSDT,SHORTUSDT,DIFFUSDT,MIXEDUSDT,FEWUSDT';
  const lake = join(scratch, 'lake');
  const seriesOf = (symbol: string): string => join(lake, `binance/um/klines/interval=1h/symbol=${symbol}`);
  const download = (...args: readonly string[]): Promise<CliResult> =>
    run('vision', 'lake', '--interval', '1h', '--symbols', SYMBOLS, ...JANUARY, '--json', ...args);

  beforeAll(async () => {
    rmSync(lake, { recursive: true, force: true });
    await download();
  });

  it('without --symbols, its own series and months are audited, and the lake does not change', async () => {
    const before = [filesBelow(lake), await parquetDigests(lake)];
    const { code, events, stderr } = await run('audit', 'lake', '--json');
    expect(code).toBe(4);
    expect(events.at(-1)).toMatchObject({ series: 5, months: 5, rebuildable: 1 });
    expect(stderr).toMatch(
      /\n1 month of the lake should be rebuilt from daily objects\nnext {2}the same command with --prefer daily\n$/,
    );
    expect([filesBelow(lake), await parquetDigests(lake)]).toEqual(before);
    const none = await run('audit', 'lake', '--market', 'spot');
    expect(none.code).toBe(2);
  });

  it('counts a month that is held in two formats once', async () => {
    const flags = ['--interval', '1h', '--symbols', 'DIFFUSDT', ...JANUARY];
    await run('vision', 'two-formats', ...flags);
    await run('vision', 'two-formats', ...flags, '--format', 'csv');
    const { events, stderr } = await run('audit', 'two-formats', '--json');
    expect(events.at(-1)).toMatchObject({ months: 1, rebuildable: 1 });
    expect(stderr).toContain('\n1 month of the lake should be rebuilt');
  });

  it('--prefer daily rebuilds months whose daily objects are better', async () => {
    const { code, events, stderr } = await run('audit', 'lake', '--prefer', 'daily', '--json');
    expect(code).toBe(4);
    // Of SHORTUSDT the lake had the days before.
    expect(events.at(-1)).toMatchObject({ event: 'audit', rebuildable: 1, mended: 2 });
    expect(stderr).toContain('; 2 fixed in the lake\n');
    expect(events.at(-2)).toMatchObject({ event: 'summary', outcomes: { ok: 31, failed: 0 }, files: 1 });
    expect(stderr).toContain('um klines 1h FEWUSDT 2024-01 is not rebuilt: ');

    for (const symbol of ['SHORTUSDT', 'DIFFUSDT']) {
      const lines = manifestLines(seriesOf(symbol));
      expect(lines.slice(1).map(({ cadence }) => cadence)).toEqual(Array.from({ length: 31 }, () => 'daily'));
      expect(lines.at(-1)).toMatchObject({ file: '2024-01.parquet', fileRows: 744 });
    }
    for (const symbol of ['RIGHTUSDT', 'MIXEDUSDT', 'FEWUSDT'])
      expect(manifestLines(seriesOf(symbol))).toHaveLength(1);
  });

  it('later runs keep the rebuilt months, and the lake equals a download of the daily objects', async () => {
    const digests = await parquetDigests(lake);
    const again = await download();
    expect(again.events.at(-1)).toMatchObject({ outcomes: { ok: 0, skipped: 3 + 62 }, exitCode: 0 });
    expect(await parquetDigests(lake)).toEqual(digests);

    const fresh = join(scratch, 'fresh');
    const days = ['--cadence', 'daily', '--symbols', 'SHORTUSDT,DIFFUSDT', '--interval', '1h'];
    await cryptodlOk(['vision', '--archive-url', archive.url, '--out', fresh, ...FAST, ...days, ...JANUARY]);
    expect(await parquetDigests(fresh)).toEqual(digests.filter((line) => /SHORTUSDT|DIFFUSDT/.test(line)));

    const healed = await run('audit', 'lake', '--prefer', 'daily', '--json');
    expect(healed.events.at(-1)).toMatchObject({ event: 'audit', rebuildable: 0, mended: 2, exitCode: 4 });
  });

  it('a month downloaded with --cadence monthly is not rebuilt', async () => {
    const args = ['--interval', '1h', '--symbols', 'DIFFUSDT', ...JANUARY, '--cadence', 'monthly'];
    expect((await run('vision', 'monthly', ...args)).code).toBe(0);
    const { events, stderr } = await run('audit', 'monthly', '--prefer', 'daily', '--json');
    expect(events.at(-1)).toMatchObject({ rebuildable: 0 });
    expect(stderr).toContain('DIFFUSDT 2024-01 is not rebuilt: ');
  });

  it('a month held as zip is not rebuilt', async () => {
    const args = ['--interval', '1h', '--symbols', 'DIFFUSDT', ...JANUARY, '--format', 'zip'];
    expect((await run('vision', 'zips', ...args)).code).toBe(0);
    const before = filesBelow(join(scratch, 'zips/data'));
    const { events, stderr } = await run('audit', 'zips', '--prefer', 'daily', '--json');
    expect(events.at(-1)).toMatchObject({ rebuildable: 0 });
    expect(stderr).toContain('DIFFUSDT 2024-01 is not rebuilt: ');
    expect(filesBelow(join(scratch, 'zips/data'))).toEqual(before);
  });

  it('a month file in a series of day files is replaced by day files', async () => {
    // The days are published after the month was taken.
    bars('NEWUSDT', withCell([100], 4, '12345.6'), 0);
    const args = ['--interval', '1h', '--symbols', 'NEWUSDT', ...JANUARY, '--partition', 'day'];
    expect((await run('vision', 'split', ...args)).code).toBe(0);
    bars('NEWUSDT', withCell([100], 4, '12345.6'));
    const { events } = await run('audit', 'split', '--prefer', 'daily', '--json');
    expect(events.at(-1)).toMatchObject({ rebuildable: 1 });
    const files = filesBelow(join(scratch, 'split/binance'), '.parquet');
    expect(files).toHaveLength(31);
    expect(files[0]).toContain('2024-01-01.parquet');
  });
});

describe('a lake whose months have days that neither cadence has', () => {
  function dropDays(symbol: string, days: readonly number[]): void {
    for (const day of days) rmSync(join(folder, keyOf(symbol, `2024-01-${String(day).padStart(2, '0')}`)));
  }

  const MONTHS = {
    // Listed on the tenth: neither cadence has the days before.
    YOUNGUSDT: (): void => {
      bars('YOUNGUSDT', (rows) => withCell([300], 4, '12345.6')(rows).slice(9 * 24));
      dropDays('YOUNGUSDT', [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    },
    // Neither cadence has the fifth, and the monthly object lacks the tenth as well.
    HOLEUSDT: (): void => {
      bars('HOLEUSDT', (rows) => rows.filter((_, hour) => ![4, 9].includes(Math.floor(hour / 24))));
      dropDays('HOLEUSDT', [5]);
    },
  };

  it.each([
    ['YOUNGUSDT', 0],
    ['HOLEUSDT', 0],
  ] as const)(
    'ends with the code of the remaining findings, also in a second audit: %s %i',
    async (symbol, left) => {
      const out = `mended-${symbol}`;
      const month = ['--interval', '1h', '--symbols', symbol, ...JANUARY];
      MONTHS[symbol]();
      rmSync(join(folder, `data/futures/um/daily/klines/${symbol}`), { recursive: true });
      await run('vision', out, ...month);
      MONTHS[symbol]();
      const { code, events, stderr } = await run('audit', out, '--prefer', 'daily', '--json');
      expect(events.at(-1)).toMatchObject({ event: 'audit', rebuildable: 1, mended: 1, exitCode: left });
      expect(code).toBe(left);
      expect(stderr).toMatch(/findings?; 1 fixed in the lake\n$/);
      const again = await run('audit', out, '--prefer', 'daily', '--json');
      expect(again.events.at(-1)).toMatchObject({ rebuildable: 0, mended: 1, exitCode: left });

      const fresh = join(scratch, `fresh-${symbol}`);
      const daily = ['--cadence', 'daily', ...month];
      await cryptodlOk(['vision', '--archive-url', archive.url, '--out', fresh, ...FAST, ...daily]);
      expect(await parquetDigests(join(scratch, out))).toEqual(await parquetDigests(fresh));
      const after = await run('vision', out, ...month, '--json');
      expect(after.events.at(-1)).toMatchObject({ outcomes: { ok: 0, failed: 0 }, exitCode: 0 });
    },
  );
});
