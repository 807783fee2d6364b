/** `cryptodl coverage`: held and missing rows of a lake, from its manifests. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { klinesFolder, klinesLine, SETTINGS, writeManifest } from '../../scripts/synthetic-lake.js';
import { startArchive } from '../helpers/archive.js';
import { FAST, cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { manifestOf } from '../helpers/lake.js';

const scratch = scratchFolder();
const NOW = '2024-01-11T12:00:00Z';
const DAYS = Array.from({ length: 10 }, (_, i) => `2024-01-${String(i + 1).padStart(2, '0')}`);
let lakes = 0;

type Change = Record<string, unknown> | 'missing';

/** Ten days of each symbol, to 2024-01-10, but for the days that are different. */
function newLake(symbols: Readonly<Record<string, Readonly<Record<string, Change>>>>): string {
  const lake = join(scratch, `lake-${(lakes += 1)}`);
  for (const [symbol, changes] of Object.entries(symbols)) {
    const lines = DAYS.flatMap((day) => {
      const change = changes[day];
      return change === 'missing' ? [] : [klinesLine(symbol, day, change)];
    });
    writeManifest(klinesFolder(lake, symbol), lines);
  }
  return lake;
}

function lacking(from: string, to: string, minutes: number): Change {
  return { rows: 1440 - minutes, gaps: [[`${from}:00.000Z`, `${to}:00.000Z`]] };
}

function absent(first: string, last: string, reason: string): object {
  const at = '2024-01-11T00:00:00.000Z';
  return { v: 1, kind: 'absent', cadence: 'daily', first, last, reason, asked: 1, at, tool: 'test' };
}

function coverage(lake: string, ...flags: readonly string[]): Promise<CliResult> {
  return cryptodl(['coverage', '--out', lake, '--now', NOW, ...flags]);
}

/** Of --json: the series by symbol. */
async function seriesOf(lake: string, ...flags: readonly string[]): Promise<Record<string, unknown>[]> {
  const { events } = await coverage(lake, '--json', ...flags);
  return events.filter(({ event }) => event === 'series');
}

const midnight = (day: string): string => `${day}T00:00:00.000Z`;

/** A failure report of a run of `vision` into the lake. */
function writeReport(lake: string, stamp: string, days: readonly string[], code = 'connect-failed'): void {
  const header = { v: 1, kind: 'header', verb: 'vision', tool: 'test', at: NOW, options: { out: [lake] } };
  const failed = days.map((period) => ({
    v: 1,
    kind: 'failed',
    market: 'um',
    dataset: 'klines',
    interval: '1m',
    symbol: 'BTCUSDT',
    cadence: 'daily',
    period,
    key: klinesLine('BTCUSDT', period).key,
    code,
    retryable: true,
    attempts: 1,
    message: code,
    at: NOW,
    settings: SETTINGS,
  }));
  mkdirSync(join(lake, '_failures'), { recursive: true });
  const lines = [header, ...failed].map((line) => `${JSON.stringify(line)}\n`);
  writeFileSync(join(lake, '_failures', `vision-${stamp}.jsonl`), lines.join(''));
}

/** The program accepts the suggested line. */
async function isValid(stderr: string): Promise<void> {
  const [, words = ''] = /^next {2}cryptodl (.*)$/m.exec(stderr) ?? [];
  await cryptodlOk([...words.split(' '), '--print-options']);
}

const gap = (from: string, to: string, reason: string, rows: number, missing = true): object => ({
  from: `${from}:00.000Z`,
  to: `${to}:00.000Z`,
  reason,
  rows,
  missing,
});

describe('a series', () => {
  it('counts the rows of its manifest lines, with gaps for missing days and minutes', async () => {
    const lake = newLake({
      BTCUSDT: {
        '2024-01-02': { duplicates: 3, replaces: { bytes: 1, sha256: '0'.repeat(64), at: NOW } },
        '2024-01-03': 'missing',
        '2024-01-04': 'missing',
        '2024-01-06': lacking('2024-01-06T03:00', '2024-01-06T03:10', 10),
        '2024-01-07': { verified: 'rest', rows: 1430 },
      },
    });
    const [btc] = await seriesOf(lake);
    expect(btc).toMatchObject({
      market: 'um',
      dataset: 'klines',
      interval: '1m',
      symbol: 'BTCUSDT',
      format: 'parquet',
      from: '2024-01-01T00:00:00.000Z',
      to: '2024-01-11T00:00:00.000Z',
      unit: 'rows',
      expected: 14_400,
      held: 14_400 - 2880 - 20,
      missing: 2900,
      percent: 79.8611,
      objects: 8,
      restObjects: 1,
      rows: 8 * 1440 - 20,
      duplicates: 3,
      revisions: 1,
      first: '2024-01-01T00:00:00.000Z',
      last: '2024-01-10T23:59:00.000Z',
      by: 'day',
    });
    expect(btc?.['gaps']).toEqual([
      gap('2024-01-03T00:00', '2024-01-05T00:00', 'unexplained', 2880),
      gap('2024-01-06T03:00', '2024-01-06T03:10', 'unexplained', 10),
      { ...gap('2024-01-07T00:00', '2024-01-08T00:00', 'unexplained', 10), located: false },
    ]);
    const periods = btc?.['periods'] as { period: string; missing: number }[];
    expect(periods.map(({ period, missing }) => [period, missing])).toEqual(
      DAYS.map((day) => [
        day,
        { '2024-01-03': 1440, '2024-01-04': 1440, '2024-01-06': 10, '2024-01-07': 10 }[day] ?? 0,
      ]),
    );
  });

  it('does not count days without possible data as missing, and prints recorded reasons', async () => {
    const lake = newLake({});
    writeManifest(klinesFolder(lake, 'NEWUSDT'), [
      absent('2024-01-01', '2024-01-02', 'not-listed-yet'),
      klinesLine('NEWUSDT', '2024-01-03', {
        rows: 1380,
        first: '2024-01-03T01:00:00Z',
        gaps: [['2024-01-03T00:00:00.000Z', '2024-01-03T01:00:00.000Z']],
      }),
      absent('2024-01-04', '2024-01-04', 'hole'),
      klinesLine('NEWUSDT', '2024-01-05'),
      klinesLine('NEWUSDT', '2024-01-06'),
      klinesLine('NEWUSDT', '2024-01-07'),
      absent('2024-01-08', '2024-01-08', 'delisted'),
    ]);
    const [series] = await seriesOf(lake, '--from', '2023-12-30', '--to', '2024-01-10');
    expect(series).toMatchObject({ expected: 5 * 1440 - 60, missing: 1440 });
    const archive = { evidence: 'archive' };
    expect(series?.['gaps']).toEqual([
      { ...gap('2023-12-30T00:00', '2024-01-03T01:00', 'not-listed-yet', 4 * 1440 + 60, false), ...archive },
      gap('2024-01-04T00:00', '2024-01-05T00:00', 'hole', 1440),
      { ...gap('2024-01-08T00:00', '2024-01-11T00:00', 'delisted', 3 * 1440, false), ...archive },
    ]);
  });

  it('counts from its first to its last held day; --to asks for more, which is not-fetched', async () => {
    const lake = newLake({ BTCUSDT: { '2024-01-09': 'missing', '2024-01-10': 'missing' } });
    const [own] = await seriesOf(lake, '--min', '100');
    expect(own).toMatchObject({
      from: midnight('2024-01-01'),
      to: midnight('2024-01-09'),
      percent: 100,
      gaps: [],
    });
    const more = await coverage(lake, '--json', '--to', '2024-01-10', '--min', '100');
    expect(more.events[0]?.['gaps']).toEqual([
      gap('2024-01-09T00:00', '2024-01-11T00:00', 'not-fetched', 2880),
    ]);
    expect(more.code).toBe(4);
  });

  it('counts the days of lost objects and of failures too, which repair fetches', async () => {
    const lake = newLake({});
    const [first = '', ...others] = DAYS.slice(1, 5);
    const dropped = {
      v: 1,
      kind: 'dropped',
      key: klinesLine('AUSDT', first).key,
      format: 'parquet',
      at: NOW,
    };
    writeManifest(klinesFolder(lake, 'AUSDT'), [
      klinesLine('AUSDT', first),
      ...others.map((day) => klinesLine('AUSDT', day)),
      { ...dropped, key: klinesLine('AUSDT', first).key },
      { ...absent('2024-01-07', '2024-01-07', 'hole'), failed: 'zip-broken' },
    ]);
    const lost = { ...dropped, key: klinesLine('BUSDT', first).key, settings: SETTINGS };
    writeManifest(klinesFolder(lake, 'BUSDT'), [klinesLine('BUSDT', first), lost]);
    const [a, b] = await seriesOf(lake);
    expect(a).toMatchObject({ from: midnight('2024-01-02'), to: midnight('2024-01-08'), missing: 3 * 1440 });
    expect(a?.['gaps']).toMatchObject([
      { from: midnight('2024-01-02'), reason: 'not-fetched' },
      { from: midnight('2024-01-06'), reason: 'not-fetched' },
      { from: midnight('2024-01-07'), reason: 'failed:zip-broken' },
    ]);
    expect(b).toMatchObject({
      symbol: 'BUSDT',
      from: midnight('2024-01-02'),
      to: midnight('2024-01-03'),
      percent: 0,
    });
    expect((await coverage(lake)).stderr).toBe(`next  cryptodl repair --out ${lake} --now ${NOW}\n`);
  });

  it('names the failures of the newest report by their code, and offers to retry them', async () => {
    const lake = newLake({ BTCUSDT: { '2024-01-04': 'missing' } });
    writeReport(lake, '20240110T080000000Z', ['2024-01-04', '2024-01-05', '2024-01-11']);
    writeReport(lake, '20240109T080000000Z', ['2024-01-04'], 'zip-broken');
    const now = ['--now', '2024-01-20T12:00:00Z'];
    const { events } = await coverage(lake, ...now, '--json');
    expect(events[0]).toMatchObject({ to: midnight('2024-01-12'), missing: 2880 });
    expect(events[0]?.['gaps']).toEqual([
      gap('2024-01-04T00:00', '2024-01-05T00:00', 'failed:connect-failed', 1440),
      gap('2024-01-11T00:00', '2024-01-12T00:00', 'failed:connect-failed', 1440),
    ]);
    const { stderr } = await coverage(lake, ...now);
    const report = join(lake, '_failures', 'vision-20240110T080000000Z.jsonl');
    expect(stderr).toBe(`next  cryptodl retry ${report} --now 2024-01-20T12:00:00Z\n`);
    await isValid(stderr);
  });

  it('outside the days of a series are offered as a download that continues the series of the lake', async () => {
    const lake = newLake({ BTCUSDT: {} });
    const given = ['--market', 'um', '--symbols', '*', '--from', '2023-12-30'];
    const { stderr } = await coverage(lake, ...given);
    expect(stderr).toBe(
      `next  cryptodl vision --out ${lake} --market um --from 2023-12-30 --to 2023-12-31 --now ${NOW}\n`,
    );
    await isValid(stderr);
  });

  it('fetched before the end of a day lacks the rest of the day', async () => {
    const open = { verified: 'rest', open: true, rows: 721, last: '2024-01-10T12:00:00.000Z' };
    const [series] = await seriesOf(newLake({ BTCUSDT: { '2024-01-10': open } }));
    expect(series?.['gaps']).toEqual([gap('2024-01-10T12:01', '2024-01-11T00:00', 'not-fetched', 719)]);
  });

  it('with jitter in its times lacks the right number of rows', async () => {
    const lake = newLake({});
    const lines = ['00', '01', '02'].map((seconds, at) => ({
      ...klinesLine(`M${at}USDT`, '2024-01-10', {
        key: `data/futures/um/daily/metrics/M${at}USDT/M${at}USDT-metrics-2024-01-10.zip`,
        rows: 286,
        gaps: [
          [`2024-01-10T03:05:${seconds}.500Z`, `2024-01-10T03:10:0${at}Z`],
          [`2024-01-10T0${at + 4}:00:00Z`, `2024-01-10T0${at + 4}:05:02Z`],
        ],
      }),
    }));
    for (const [at, line] of lines.entries())
      writeManifest(join(lake, 'binance/um/metrics', `symbol=M${at}USDT`), [line]);
    const { events } = await coverage(lake, '--json');
    expect(events.slice(0, 3).map(({ expected, missing }) => [expected, missing])).toEqual(
      lines.map(() => [288, 2]),
    );
  });
});

describe('coverage as text', () => {
  it('has a heat-map line per series with a cell per day, a table, and the next step', async () => {
    const lake = newLake({
      BTCUSDT: { '2024-01-03': 'missing', '2024-01-06': lacking('2024-01-06T03:00', '2024-01-06T03:10', 10) },
      ETHUSDT: {},
    });
    const { stdout, stderr, code } = await coverage(lake);
    const lines = stdout.split('\n');
    expect(lines[0]).toBe('um klines 1m  2024-01-01 … 2024-01-10');
    expect(lines).toContain('BTCUSDT  ██x██▓████  89.93 %');
    expect(lines).toContain('ETHUSDT  ██████████    100 %');
    expect(lines).toContain('  2024-01-03: BTCUSDT, unexplained, 1,440 rows');
    expect(lines).toContain('  2024-01-06 03:00 … 03:09: BTCUSDT, unexplained, 10 rows');
    expect(stdout).not.toContain('\u001b');
    expect(stderr).toBe(`next  cryptodl repair --out ${lake} --now ${NOW}\n`);
    expect(code).toBe(0);
  });

  it('with --summary is one line: what is missing, and the least complete series', async () => {
    const lake = newLake({ BTCUSDT: { '2024-01-03': 'missing' }, ETHUSDT: {} });
    const { stdout, stderr } = await coverage(lake, '--summary');
    expect(stdout).toBe(
      'incomplete: 1 of 2 series lack 1,440 rows; the least complete is um klines 1m BTCUSDT (90.00 %)\n',
    );
    expect(stderr).toBe('');
    expect((await coverage(lake, '--summary', '--min', '99')).code).toBe(4);
    const whole = await coverage(lake, '--summary', '--symbols', 'ETHUSDT', '--min', '99');
    expect([whole.code, whole.stdout]).toEqual([0, 'complete: nothing is missing in 1 series\n']);
    const { events } = await coverage(lake, '--summary', '--json');
    expect(events).toMatchObject([{ event: 'summary', series: 2, incomplete: 1 }]);
    const both = await coverage(lake, '--summary', '--csv');
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('keep one') as string]);
  });

  it('with --quiet prints only the table', async () => {
    const lake = newLake({ BTCUSDT: { '2024-01-03': 'missing' } });
    const [usual, quiet] = [await coverage(lake), await coverage(lake, '-q')];
    expect([quiet.stdout, quiet.stderr]).toEqual([usual.stdout, '']);
  });

  it('with --csv has a line per series and period', async () => {
    const lake = newLake({ BTCUSDT: { '2024-01-03': 'missing' } });
    const { stdout, stderr } = await coverage(lake, '--csv', '--days', '10', '--by', 'month');
    expect(stderr).toBe('');
    expect(stdout).toBe(
      'market,dataset,interval,symbol,format,period,unit,expected,held,missing,percent,reasons\n' +
        'um,klines,1m,BTCUSDT,parquet,2024-01,rows,14400,12960,1440,90,unexplained\n',
    );
  });
});

describe('--min', () => {
  it('ends with 4 when a series is below it, else with 0', async () => {
    const lake = newLake({ BTCUSDT: { '2024-01-03': 'missing' }, ETHUSDT: {} });
    expect((await coverage(lake, '--min', '90')).code).toBe(0);
    const below = await coverage(lake, '--min', '90.1%');
    expect(below.code).toBe(4);
    expect(below.stderr).toContain('below --min 90.1 %: um klines 1m BTCUSDT (90.00 %)\n');
  });
});

describe('a data file that no longer exists', () => {
  const ZIP = { settings: { ...SETTINGS, format: 'zip' }, rows: undefined };
  const GONE = '2024-01-03';
  // Each day has a file of its own. No reason of the manifest applies to a missing file.
  const changes = (
    more: object,
    fileOf = (day: string): string => `${day}.parquet`,
  ): Record<string, Change> => Object.fromEntries(DAYS.map((day) => [day, { file: fileOf(day), ...more }]));

  it('is missing data: in the table, in --summary, --json and --min, with repair as the next command', async () => {
    const lake = newLake({ BTCUSDT: changes({}), ETHUSDT: {} });
    rmSync(join(klinesFolder(lake, 'BTCUSDT'), `${GONE}.parquet`));
    const { code, stdout, stderr } = await coverage(lake, '--min', '99');
    expect([code, stdout]).toEqual([4, expect.stringContaining(`${GONE}: BTCUSDT, missing, 1,440 rows`)]);
    expect(stderr).toContain('next  cryptodl repair');
    await isValid(stderr);
    expect((await coverage(lake, '--summary')).stdout).toBe(
      'incomplete: 1 of 2 series lack 1,440 rows; the least complete is um klines 1m BTCUSDT (90.00 %)\n',
    );
    const [btc, eth] = await seriesOf(lake);
    expect(btc).toMatchObject({ expected: 14_400, missing: 1440, objects: 9, rows: 9 * 1440 });
    expect(btc?.['gaps']).toEqual([gap(`${GONE}T00:00`, '2024-01-04T00:00', 'missing', 1440)]);
    expect(eth).toMatchObject({ missing: 0 });
  });

  it('counts when all files of a series are gone, and when the lake has zips', async () => {
    const zipOf = (day: string): string => klinesLine('ETHUSDT', day).key;
    const lake = newLake({ BTCUSDT: changes({}), ETHUSDT: changes(ZIP, zipOf) });
    rmSync(klinesFolder(lake, 'BTCUSDT'), { recursive: true });
    rmSync(join(lake, zipOf(GONE)));
    const days = (await seriesOf(lake)).map(({ symbol, expected, missing }) => [symbol, expected, missing]);
    expect(days).toEqual([
      ['BTCUSDT', 14_400, 14_400],
      ['ETHUSDT', 10, 1],
    ]);
  });
});

describe('a damaged manifest', () => {
  it('is named with its line, the other series are printed, and the exit code is 1', async () => {
    const lake = newLake({ ETHUSDT: {} });
    const lines = DAYS.map((day) => klinesLine('BTCUSDT', day));
    writeManifest(klinesFolder(lake, 'BTCUSDT'), [
      ...lines.slice(0, 4),
      '{"v":1,',
      ...lines.slice(5),
      { v: 2 },
    ]);
    const { code, stderr, events } = await coverage(lake, '--json', '--min', '99.9');
    const file = manifestOf(klinesFolder(lake, 'BTCUSDT'));
    expect(stderr).toContain(`cryptodl: ${file} line 5 is damaged\n`);
    expect(stderr).toContain(`cryptodl: ${file} line 11 has version 2; this cryptodl reads version 1\n`);
    expect(events.map(({ symbol, missing }) => [symbol, missing])).toEqual([
      ['BTCUSDT', 1440],
      ['ETHUSDT', 0],
      [undefined, undefined],
    ]);
    expect(code).toBe(1);
  });
});

describe('the selection', () => {
  it('uses the flags of the download verbs', async () => {
    const lake = newLake({ BTCUSDT: {}, ETHUSDT: {}, BTCBUSD: {} });
    const symbols = async (...flags: readonly string[]): Promise<unknown[]> =>
      (await seriesOf(lake, ...flags)).map(({ symbol }) => symbol);
    expect(await symbols('--symbols', 'BTC*,!*BUSD')).toEqual(['BTCUSDT']);
    expect(await symbols('--quote', 'USDT')).toEqual(['BTCUSDT', 'ETHUSDT']);
    expect(await symbols('--market', 'um', '--dataset', 'klines', '--interval', '1m')).toHaveLength(3);
  });

  it.each([
    ['--symbols', 'BTCUSD', 'has no BTCUSD in um klines 1m'],
    ['--dataset', 'trades', 'holds no trades; it holds klines'],
    ['--market', 'spot', 'holds no spot; it holds um'],
    ['--format', 'zip', 'holds no zip series'],
    ['--interval', '1h', 'holds no 1h; it holds 1m'],
  ])('%s %s: a value that the lake lacks is a usage error', async (flag, value, says) => {
    const { code, stderr } = await coverage(newLake({ BTCUSDT: {} }), flag, value);
    expect([code, stderr]).toEqual([2, expect.stringContaining(says) as string]);
  });

  it('may be given as words without flags', async () => {
    const lake = newLake({ BTCUSDT: {}, ETHUSDT: {} });
    const words = await cryptodl(['coverage', lake, 'BTCUSDT', '--dataset', 'klines', '--now', NOW]);
    const flags = await coverage(lake, '--symbols', 'BTCUSDT', '--dataset', 'klines');
    expect([words.code, words.stdout]).toEqual([0, flags.stdout]);
  });

  it('of a folder inside a lake is refused with the lake, by every verb', async () => {
    const lake = newLake({ BTCUSDT: {} });
    const download = '--symbols BTCUSDT --days 1 --dry-run --archive-url http://127.0.0.1:1'.split(' ');
    mkdirSync(join(lake, 'data/futures'), { recursive: true });
    const tries = [
      ['coverage', 'binance'],
      ['verify', 'binance/um/klines'],
      ['vision', 'binance/um', ...download],
      ['vision', 'data/futures', ...download],
    ];
    for (const [verb = '', folder = '', ...flags] of tries) {
      const { code, stderr } = await cryptodl([verb, '--out', join(lake, folder), '--now', NOW, ...flags]);
      expect([code, stderr]).toEqual([
        2,
        expect.stringContaining(`${folder} is a folder of the lake ${lake}\n`),
      ]);
      expect(stderr).toContain(`  --out ${lake}\n`);
    }
    // A folder with another name may have a lake of its own.
    for (const folder of ['other', 'other/binance']) {
      const { stderr } = await coverage(join(lake, folder));
      expect(stderr).toContain('holds no series');
    }
  });
});

it('a lake of a real run reports the day that the archive lacks, without reading data files', async () => {
  const folder = join(scratch, 'archive');
  const made = { market: 'um', dataset: 'klines', interval: '1h', symbols: ['BTCUSDT', 'ETHUSDT'] } as const;
  makeArchive(folder, { ...made, from: '2026-11-10', to: '2026-11-20', cadence: 'daily' });
  const day = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-14.zip';
  for (const name of [day, `${day}.CHECKSUM`]) rmSync(join(folder, name));
  const archive = await startArchive(folder);
  const out = join(scratch, 'real');
  const now = '2026-11-21T12:00:00Z';
  const range = ['--from', '2026-11-10', '--to', '2026-11-20', '--interval', '1h'];
  const url = ['--archive-url', archive.url, '--now', now];
  await cryptodlOk(['vision', '--symbols', 'all', ...range, ...url, '--out', out, ...FAST]);
  await archive.close();
  for (const symbol of made.symbols)
    writeFileSync(join(out, `binance/um/klines/interval=1h/symbol=${symbol}/2026-11.parquet`), 'not read');
  const { events } = await cryptodlOk(['coverage', '--out', out, '--now', now, '--json']);
  expect(events).toMatchObject([
    {
      symbol: 'BTCUSDT',
      expected: 11 * 24,
      missing: 24,
      gaps: [{ from: '2026-11-14T00:00:00.000Z', rows: 24, reason: 'hole' }],
    },
    { symbol: 'ETHUSDT', expected: 11 * 24, missing: 0, gaps: [] },
    { event: 'summary', incomplete: 1 },
  ]);
});
