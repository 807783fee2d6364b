/** What a first-time user types wrong. Every answer says what was wrong, and has a line that works when typed. */
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { serveVenue } from '../helpers/rest-venue-server.js';
import type { ServedVenue } from '../helpers/rest-venue-server.js';
import { RestVenue } from '../helpers/rest-venue.js';

const scratch = scratchFolder();
const shell = promisify(execFile);
const NOW = '2026-11-21T12:00:00Z';
let archive: TestArchive;
let rest: ServedVenue;

beforeAll(async () => {
  const directory = join(scratch, 'archive');
  const days = { from: '2026-11-14', to: '2026-11-20', cadence: 'daily' } as const;
  const um = { ...days, market: 'um', symbols: ['BTCUSDT', 'ETHUSDT', '1000SHIBUSDT'] } as const;
  for (const interval of ['1m', '1h']) makeArchive(directory, { ...um, dataset: 'klines', interval });
  makeArchive(directory, { ...um, dataset: 'metrics' });
  makeArchive(directory, { ...um, dataset: 'aggTrades' });
  makeArchive(directory, { ...um, dataset: 'fundingRate', cadence: 'monthly', from: '2026-10-01' });
  makeArchive(directory, { ...um, dataset: 'bookTicker', from: '2024-03-20', to: '2024-03-30' });
  makeArchive(directory, { ...days, market: 'spot', dataset: 'klines', symbols: ['BTCUSDT'] });
  const cm = { ...days, market: 'cm', symbols: ['BTCUSD_PERP'] } as const;
  makeArchive(directory, { ...cm, dataset: 'klines' });
  makeArchive(directory, { ...cm, dataset: 'indexPriceKlines', symbols: ['BTCUSD'] });
  makeArchive(directory, { ...cm, dataset: 'liquidationSnapshot', from: '2024-10-10', to: '2024-10-14' });
  makeArchive(directory, {
    ...days,
    market: 'option',
    dataset: 'EOHSummary',
    symbols: ['BTCUSDT'],
    from: '2023-10-17',
    to: '2023-10-23',
  });
  archive = await startArchive(directory);
  const venue = new RestVenue({
    now: () => Date.parse(NOW),
    symbols: [
      { symbol: 'BTCUSDT', host: 'fapi' },
      { symbol: 'BTCUSD_PERP', host: 'dapi' },
    ],
  });
  rest = await serveVenue(venue);
});
afterAll(() => Promise.all([archive.close(), rest.close()]));

/** Where the archive is and what day it is; a user has neither in the command line. */
function environment(): Record<string, string> {
  return {
    CRYPTODL_ARCHIVE_URL: archive.url,
    CRYPTODL_FAPI_URL: rest.urlOf('fapi'),
    CRYPTODL_DAPI_URL: rest.urlOf('dapi'),
    CRYPTODL_SPOT_URL: rest.urlOf('spot'),
    CRYPTODL_NOW: NOW,
    CRYPTODL_RETRY_DELAY: '2ms',
    CRYPTODL_PROGRESS: 'none',
  };
}

interface Mistake {
  readonly typed: readonly string[];
  readonly says: string;
  /** The line that is offered; what is not written down here need only work. */
  readonly line?: string;
}

const MISTAKES: readonly Mistake[] = [
  { typed: [], says: 'no command given', line: 'cryptodl vision --symbols BTCUSDT --days 1' },
  {
    typed: ['download', '--symbols', 'BTCUSDT'],
    says: '"download" is no command',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['run', '--symbols', 'BTCUSDT'],
    says: 'run has no flag --symbols',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  { typed: ['BTCUSDT'], says: '"BTCUSDT" is no command', line: 'cryptodl vision --symbols BTCUSDT' },
  {
    typed: ['--symbols', 'BTCUSDT'],
    says: 'no command given',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['vision', 'BTCUSDT', 'ETHUSDT'],
    says: 'vision takes no argument',
    line: 'cryptodl vision --symbols BTCUSDT,ETHUSDT',
  },
  {
    typed: ['vision', '--symbol', 'BTCUSDT'],
    says: 'vision has no flag --symbol',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--start', '2026-11-18', '--end', '2026-11-19'],
    says: 'vision has no flag --start',
    line: 'cryptodl vision --symbols BTCUSDT --from 2026-11-18 --to 2026-11-19',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--timeframe=1h'],
    says: 'vision has no flag --timeframe',
    line: 'cryptodl vision --symbols BTCUSDT --interval=1h',
  },
  {
    typed: ['vision', '--symbols', 'btcusdt'],
    says: 'the archive has no btcusdt in um klines',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--symbols', 'BTC/USDT'],
    says: '"BTC/USDT" is not a symbol',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT ETHUSDT'],
    says: '"BTCUSDT ETHUSDT" is not a symbol',
    line: 'cryptodl vision --symbols BTCUSDT,ETHUSDT',
  },
  {
    typed: ['vision', '--symbols', 'BTC USDT'],
    says: '"BTC USDT" is not a symbol',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--symbols', 'BTC-USDT,ETHUSDT'],
    says: 'the archive has no BTC-USDT in um klines',
    line: 'cryptodl vision --symbols BTCUSDT,ETHUSDT',
  },
  {
    typed: ['vision', '--symbols', 'BTC'],
    says: 'the archive has no BTC in um klines',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--symbols', 'SHIBUSDT'],
    says: 'the archive has no SHIBUSDT in um klines',
    line: 'cryptodl vision --symbols 1000SHIBUSDT',
  },
  {
    typed: ['vision', '--market', 'cm', '--symbols', 'BTCUSDT'],
    says: 'the archive has no BTCUSDT in cm klines',
    line: 'cryptodl vision --market cm --symbols BTCUSD_PERP',
  },
  {
    typed: ['vision', '--market', 'cm', '--dataset', 'indexPriceKlines', '--symbols', 'BTCUSD_PERP'],
    says: 'the archive has no BTCUSD_PERP in cm indexPriceKlines',
    line: 'cryptodl vision --market cm --dataset indexPriceKlines --symbols BTCUSD',
  },
  {
    typed: ['vision', '--market', 'futures', '--symbols', 'BTCUSDT'],
    says: '--market: "futures" is not one of spot, um, cm, option',
    line: 'cryptodl vision --market um --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--market', 'coinm', '--symbols', 'BTCUSD_PERP'],
    says: '--market: "coinm" is not one of spot, um, cm, option',
    line: 'cryptodl vision --market cm --symbols BTCUSD_PERP',
  },
  {
    typed: ['vision', '--market', 'option', '--symbols', 'BTCUSDT'],
    says: 'option has no "klines"',
    line: 'cryptodl vision --market um --symbols BTCUSDT',
  },
  {
    typed: ['schema', 'klines', '--market', 'option'],
    says: 'option has no klines',
    line: 'cryptodl schema klines --market um',
  },
  {
    typed: ['vision', '--market', 'SPOT', '--symbols', 'BTCUSDT'],
    says: '--market: "SPOT" is not one of spot, um, cm, option',
    line: 'cryptodl vision --market spot --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--dataset', 'aggtrades', '--symbols', 'BTCUSDT'],
    says: 'um has no "aggtrades"',
    line: 'cryptodl vision --dataset aggTrades --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--dataset', 'openInterest', '--symbols', 'BTCUSDT'],
    says: 'um has no "openInterest"',
    line: 'cryptodl vision --dataset metrics --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--dataset', 'openInterestHist', '--symbols', 'BTCUSDT'],
    says: 'um openInterestHist: only REST has it',
    line: 'cryptodl metrics --market um --dataset openInterestHist --symbols BTCUSDT --days 1',
  },
  {
    typed: ['vision', '--market', 'spot', '--dataset', 'openInterestHist', '--symbols', 'BTCUSDT'],
    says: 'um openInterestHist: only REST has it',
    line: 'cryptodl metrics --market um --dataset openInterestHist --symbols BTCUSDT --days 1',
  },
  {
    typed: ['list', 'symbols', '--market', 'cm', '--dataset', 'basis'],
    says: 'cm basis: only REST has it',
    line: 'cryptodl metrics --market cm --dataset basis --symbols BTCUSD_PERP --days 1',
  },
  {
    typed: ['metrics', '--dataset', 'kline', '--symbols', 'BTCUSDT'],
    says: 'um klines: the archive has it',
    line: 'cryptodl vision --market um --dataset klines --symbols BTCUSDT --days 1',
  },
  {
    typed: ['metrics', '--dataset', 'openInterest', '--symbols', 'BTCUSDT'],
    says: 'um has no "openInterest"',
    line: 'cryptodl metrics --dataset openInterestHist --symbols BTCUSDT',
  },
  {
    typed: ['metrics', '--symbols', 'BTCUSDC', '--days', '1'],
    says: 'BTCUSDC',
    line: 'cryptodl metrics --symbols BTCUSDT --days 1',
  },
  {
    typed: ['metrics', '--symbols', 'BTCUSDT', '--interval', '1m', '--days', '1'],
    says: 'has no "1m"',
  },
  { typed: ['metrics'], says: 'holds no series to continue' },
  { typed: ['funding', '--symbols', 'BTCUSDT'], says: '"funding" is no command' },
  {
    typed: ['vision', '--market', 'spot', '--dataset', 'fundingRate', '--symbols', 'BTCUSDT'],
    says: 'spot has no "fundingRate"',
    line: 'cryptodl vision --market um --dataset fundingRate --symbols BTCUSDT',
  },
  {
    typed: [
      'vision',
      '--dataset',
      'EOHSummary',
      '--symbols',
      'BTCUSDT',
      '--from',
      '2023-10-17',
      '--to',
      '2023-10-18',
    ],
    says: 'um has no "EOHSummary"',
    line: 'cryptodl vision --dataset EOHSummary --symbols BTCUSDT --from 2023-10-17 --to 2023-10-18 --market option',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--interval', '60m'],
    says: 'um klines has no "60m"',
    line: 'cryptodl vision --symbols BTCUSDT --interval 1h',
  },
  {
    typed: ['vision', '--dataset', 'fundingRate', '--cadence', 'daily', '--symbols', 'BTCUSDT'],
    says: 'um fundingRate exists only monthly',
    line: 'cryptodl vision --dataset fundingRate --cadence monthly --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--dataset', 'bookTicker', '--symbols', 'BTCUSDT', '--days', '7'],
    says: 'um bookTicker ended 2024-03-30; cm ended 2024-10-14',
    line: 'cryptodl vision --dataset bookTicker --symbols BTCUSDT --from 2024-03-24 --to 2024-03-30',
  },
  {
    typed: ['vision', '--dataset', 'liquidationSnapshot', '--symbols', 'BTCUSDT'],
    says: 'um liquidationSnapshot was removed by Binance; cm ended 2024-10-14',
    line: 'cryptodl list symbols --market cm --dataset liquidationSnapshot',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--from', '2026/11/18'],
    says: '--from: "2026/11/18" is not a date',
    line: 'cryptodl vision --symbols BTCUSDT --from 2026-11-18',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--from', '2026-11-20', '--to', '2026-11-18'],
    says: '--from 2026-11-20 is after --to 2026-11-18',
    line: 'cryptodl vision --symbols BTCUSDT --from 2026-11-18 --to 2026-11-20',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--to', '2026-11-21', '--from', '2026-11-19'],
    says: '--to 2026-11-21 is not over yet',
    line: 'cryptodl vision --symbols BTCUSDT --to 2026-11-20 --from 2026-11-19',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--days', '7', '--from', '2026-11-18'],
    says: '--days and --from are different kinds of range',
    line: 'cryptodl vision --symbols BTCUSDT --days 7',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--days', 'all'],
    says: '--days: "all" is not a whole number',
    line: 'cryptodl vision --symbols BTCUSDT --days 7',
  },
  { typed: ['vision', '--days'], says: '--days needs a value' },
  { typed: ['vision'], says: 'holds no series to continue' },
  {
    typed: ['vision', '--symbols', '*USTD'],
    says: '--symbols *USTD matches none of the 3 symbols of um klines',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--format', 'Parquet'],
    says: '--format: "Parquet" is not one of parquet, csv, zip',
    line: 'cryptodl vision --symbols BTCUSDT --format parquet',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--retry-delay', '5'],
    says: '--retry-delay: "5" is not a duration',
    line: 'cryptodl vision --symbols BTCUSDT --retry-delay 5s',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--concurrency', '5000'],
    says: '--concurrency: "5000" is not a number from 1 to 1024',
    line: 'cryptodl vision --symbols BTCUSDT --concurrency 1024',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--max-bytes', '1kB'],
    says: 'more than --max-bytes 1.0 kB',
  },
  {
    typed: ['vision', '--symbols', '*', '--quote', 'USD'],
    says: '--quote USD matches none of the 3 selected symbols',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', 'ETHUSDT', '--days', '1'],
    says: 'vision takes no argument: "ETHUSDT" is one too many',
    line: 'cryptodl vision --symbols BTCUSDT,ETHUSDT --days 1',
  },
  {
    typed: ['vision', 'klines', 'BTCUSDT', 'um', '1h'],
    says: 'vision takes no argument',
    line: 'cryptodl vision --dataset klines --symbols BTCUSDT --market um --interval 1h',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--foo', '1', '--days', '1'],
    says: 'vision has no flag --foo',
    line: 'cryptodl vision --symbols BTCUSDT --days 1',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT,ETH/USDT'],
    says: '"ETH/USDT" is not a symbol',
    line: 'cryptodl vision --symbols BTCUSDT,ETHUSDT',
  },
  {
    typed: ['vision', '--symbols', '--days', '7'],
    says: '--symbols needs a value',
    line: 'cryptodl vision --symbols BTCUSDT --days 7',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--days', '-3'],
    says: '--days: "-3" is not a whole number of at least 1',
    line: 'cryptodl vision --symbols BTCUSDT --days 7',
  },
  {
    typed: ['vision', '--max-wait', '-5s', '--symbols', 'BTCUSDT'],
    says: '--max-wait: "-5s" is not a duration',
    line: 'cryptodl vision --max-wait 30s --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '—-days', '7'],
    says: '"—-days" begins with a long dash',
    line: 'cryptodl vision --symbols BTCUSDT --days 7',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '–interval=1h'],
    says: '"–interval=1h" begins with a long dash',
    line: 'cryptodl vision --symbols BTCUSDT --interval=1h',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT,', 'ETHUSDT'],
    says: 'vision takes no argument: "ETHUSDT" is one too many',
    line: 'cryptodl vision --symbols BTCUSDT,ETHUSDT',
  },
  {
    typed: ['schema', '--dataset', 'klines'],
    says: 'schema has no flag --dataset',
    line: 'cryptodl schema klines',
  },
  { typed: ['datasets'], says: '"datasets" is no command', line: 'cryptodl list datasets' },
  { typed: ['markets', '--json'], says: '"markets" is no command', line: 'cryptodl list markets --json' },
  {
    typed: ['sql', '--csv', 'SELECT', '1', 'AS', 'one'],
    says: 'sql takes one argument: "1" is one too many',
    line: "cryptodl sql --csv 'SELECT 1 AS one'",
  },
  {
    typed: ['schedule', '--out', '/srv/lake', '--', 'vision', '--symbols', 'BTCUSDT'],
    says: 'schedule has no flag --out',
    line: 'cryptodl schedule -- vision --symbols BTCUSDT --out /srv/lake',
  },
  {
    typed: ['verify', '--fapi-url', 'http://a', '--spot-url=http://b', '--dapi-url', 'http://c'],
    says: 'verify has no flag --fapi-url',
    line: 'cryptodl verify',
  },
  {
    typed: ['vision', '--coin', 'BTCUSDT', '--upstream', '--timeframe', '1h', '--foo', '1'],
    says: 'vision has no flag --coin',
    line: 'cryptodl vision --symbols BTCUSDT --interval 1h',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--dry-run=yes'],
    says: '--dry-run takes no value',
    line: 'cryptodl vision --symbols BTCUSDT --dry-run',
  },
  {
    typed: ['vision', '--no-progress', 'BTCUSDT'],
    says: 'vision takes no argument: "BTCUSDT" is one too many',
    line: 'cryptodl vision --no-progress --symbols BTCUSDT',
  },
  {
    typed: ['vision', '-s', 'BTCUSDT', '-d', '1'],
    says: 'vision has no flag -s',
    line: 'cryptodl vision --symbols BTCUSDT --days 1',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--csv'],
    says: 'vision has no flag --csv',
    line: 'cryptodl vision --symbols BTCUSDT --format csv',
  },
  {
    typed: ['vision', '--exchange', 'binance', '--symbols', 'BTCUSDT'],
    says: 'vision has no flag --exchange',
    line: 'cryptodl vision --market um --symbols BTCUSDT',
  },
  {
    typed: ['download', 'BTCUSDT'],
    says: '"download" is no command',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['--market', 'um', 'list', 'datasets'],
    says: 'the command list comes first',
    line: 'cryptodl list --market um datasets',
  },
  {
    typed: ['list', 'datasets', 'extra'],
    says: 'list takes one argument: "extra" is one too many',
    line: 'cryptodl list datasets',
  },
  {
    typed: ['schema', '--market', 'option'],
    says: 'schema needs a dataset',
    line: 'cryptodl schema BVOLIndex --market option',
  },
  {
    typed: ['vision', '--dataset', 'metrics,fundingRate', '--cadence', 'monthly', '--symbols', 'BTCUSDT'],
    says: 'um metrics exists only daily',
    line: 'cryptodl vision --dataset metrics,fundingRate --symbols BTCUSDT',
  },
  {
    typed: [
      'vision',
      '--market',
      'option',
      '--dataset',
      'klines,EOHSummary',
      '--symbols',
      'BTCUSDT',
      '--from',
      '2023-10-17',
      '--to',
      '2023-10-17',
    ],
    says: 'option has no "klines"',
    line: 'cryptodl vision --market option --dataset EOHSummary --symbols BTCUSDT --from 2023-10-17 --to 2023-10-17',
  },
  {
    typed: ['vision', '--symbols', '*', '--quote', 'usdt'],
    says: '--quote usdt matches none',
    line: "cryptodl vision --symbols '*' --quote USDT",
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--from', '2010-01-01', '--to', '2011-01-01'],
    says: '--to 2011-01-01 is before the first day of the archive, 2017-07-01',
    line: 'cryptodl vision --symbols BTCUSDT --days 7',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--from', '2026-11-31'],
    says: '--from: "2026-11-31" is not a date',
  },
  { typed: ['list', 'symbol'], says: 'list: "symbol" is not one of', line: 'cryptodl list symbols' },
  { typed: ['schema', 'ohlcv'], says: 'no market has a dataset "ohlcv"', line: 'cryptodl schema klines' },
  {
    typed: ['audit'],
    says: 'holds no archive series that matches the flags',
    line: 'cryptodl audit --symbols BTCUSDT',
  },
  { typed: ['audit', '--symbols', 'BTCUSDT', '--prefer', 'monthly'], says: '--prefer: "monthly"' },
  { typed: ['sql'], says: 'sql needs a query', line: "cryptodl sql 'SHOW TABLES'" },
  { typed: ['sql', '--csv', '--json', 'SELECT 1'], says: '--csv and --json exclude each other' },
  { typed: ['query', 'SELECT 1'], says: '"query" is no command', line: "cryptodl sql 'SELECT 1'" },
  {
    typed: ['sql', 'SELECT * FROM um_klines'],
    says: 'the lake data is empty',
    line: 'cryptodl vision --symbols BTCUSDT --days 1',
  },
  { typed: ['completion', 'powershell'], says: 'no script for "powershell"' },
];

/** Flags of a job behind a file of jobs: what is typed, and what stands in the file instead. */
const IN_THE_FILE: readonly (readonly [string, string, string])[] = [
  ['run jobs.yaml --concurrency 5', '--concurrency', 'concurrency: 5'],
  ['run --concurrency=5 jobs.yaml', '--concurrency', 'concurrency: 5'],
  ['run jobs.yaml --concurrency', '--concurrency', 'concurrency: auto'],
  ['run --force jobs.yaml', '--force', 'force: true'],
  ['run jobs.yaml --symbols *USDT --include-today', '--symbols', "symbols: '*USDT'"],
];

describe('a flag of a job behind a file of jobs', () => {
  it.each(IN_THE_FILE)('cryptodl %s', async (typed, flag, entry) => {
    const cwd = join(scratch, `jobs-${IN_THE_FILE.findIndex(([line]) => line === typed)}`);
    mkdirSync(cwd);
    writeFileSync(join(cwd, 'jobs.yaml'), 'jobs: { a: { verb: vision, symbols: BTCUSDT, days: 1 } }');
    const result = await cryptodl(typed.split(' '), { cwd, env: environment() });
    expect([result.code, result.stderr]).toEqual([
      2,
      `cryptodl: run has no flag ${flag}: write it as "${entry}" in the job or under defaults of jobs.yaml\n` +
        '  cryptodl run jobs.yaml\n',
    ]);
    await type('cryptodl run jobs.yaml', cwd);
  });
});

describe('a typical mistake', () => {
  it.each(MISTAKES)('cryptodl $typed', async ({ typed, says, line }) => {
    const cwd = join(scratch, `in-${MISTAKES.findIndex((mistake) => mistake.typed === typed)}`);
    mkdirSync(cwd);
    const result = await cryptodl(typed, { cwd, env: environment() });
    const [what = '', ...more] = result.stderr.trimEnd().split('\n');
    expect(what).toMatch(/^cryptodl: /);
    expect(what).toContain(says);
    expect(result.code).toBe(2);
    expect(result.stdout).toBe('');
    const offered = more.at(-1)?.trim() ?? '';
    expect(offered).toMatch(/^cryptodl /);
    if (line !== undefined) expect(offered).toBe(line);
    await type(offered, cwd);
  });
});

/** Mistakes in files and on stdin. The advice is a change there, because no other command line helps. */
const ELSEWHERE: readonly {
  readonly typed: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly says: string;
}[] = [
  {
    typed: 'vision --symbols -',
    stdin: '# none\n',
    says: '--symbols: stdin has no symbol\n',
  },
  {
    typed: 'run jobs.yaml --config c.yaml',
    says: 'run takes no config file\n  write its keys under defaults of jobs.yaml\n  cryptodl run jobs.yaml\n',
  },
  {
    typed: 'run jobs.yaml',
    files: { 'jobs.yaml': 'jobs: { a: { verb: vision, symbols: BTCUSDT, config: c.yaml } }' },
    says: 'jobs.yaml: jobs.a: config: run takes no config file\n  write its keys under defaults of jobs.yaml\n',
  },
  {
    typed: 'run jobs.yaml',
    files: { 'jobs.yaml': 'defaults: { config: c.yaml }\njobs: { a: { verb: vision, symbols: BTCUSDT } }' },
    says: 'jobs.yaml: defaults: config: run takes no config file\n  write its keys under defaults of jobs.yaml\n',
  },
  {
    typed: 'vision --config c.yaml',
    files: { 'c.yaml': 'symbols: "*"\nquote: EUR\n' },
    says:
      'c.yaml: quote EUR matches none of the 3 selected symbols\n' +
      '  for example 1000SHIBUSDT, BTCUSDT, ETHUSDT\n  delete the line "quote: EUR" in c.yaml\n',
  },
  {
    typed: 'vision --config c.yaml',
    files: { 'c.yaml': 'symbols: BTCUSDT\ndays: 2\nfrom: 2026-11-18\n' },
    says:
      'c.yaml: days and c.yaml: from are different kinds of range\n  keep one, for example --days\n' +
      '  delete the line "from: 2026-11-18" in c.yaml\n',
  },
  {
    typed: 'run jobs.yaml',
    files: { 'jobs.yaml': 'jobs: { a: { verb: vision, symbols: BTCUSDT, days: 2, from: 2026-11-18 } }' },
    says: 'jobs.yaml: jobs.a: days and from are different kinds of range\n  keep one, for example days\n  delete "from"\n',
  },
];

it('retry of a missing report offers the newest report, and no line without one', async () => {
  const cwd = join(scratch, 'no-report');
  mkdirSync(join(cwd, 'data/failures'), { recursive: true });
  const refused = async (): Promise<string> =>
    (await cryptodl(['retry', 'none.jsonl'], { cwd, env: environment() })).stderr;
  expect(await refused()).toBe('cryptodl: cannot read none.jsonl (ENOENT)\n');
  for (const name of ['vision-20261119T070000Z', 'metrics-20261120T070000Z', 'vision-20261118T070000Z'])
    writeFileSync(join(cwd, 'data/failures', `${name}.jsonl`), '');
  writeFileSync(join(cwd, 'data/failures/zz.txt'), '');
  expect(await refused()).toBe(
    'cryptodl: cannot read none.jsonl (ENOENT)\n  the newest report of data/failures:\n' +
      '  cryptodl retry data/failures/metrics-20261120T070000Z.jsonl\n',
  );
});

it('names the setting of the lake, and the place of the other setting', async () => {
  const cwd = join(scratch, 'held');
  mkdirSync(cwd);
  const env = environment();
  const args = ['vision', '--symbols', 'BTCUSDT', '--interval', '1h', '--days', '1'];
  await cryptodl(args, { cwd, env });
  writeFileSync(join(cwd, 'c.yaml'), 'numbers: string\n');
  const config = await cryptodl([...args, '--days', '2', '--config', 'c.yaml'], { cwd, env });
  expect(config.code).toBe(2);
  expect(config.stderr).toContain('is held with numbers double, but c.yaml: numbers is string\n');
  const given = { ...env, CRYPTODL_NUMBERS: 'string' };
  const variable = await cryptodl([...args, '--days', '2'], { cwd, env: given });
  expect(variable.stderr).toContain('is held with numbers double, but CRYPTODL_NUMBERS is string\n');
});

it.each([
  ['CRYPTODL_SIMBOLS', 'warning: CRYPTODL_SIMBOLS is not an option; did you mean CRYPTODL_SYMBOLS?\n'],
  [
    'CRYPTODL_ARCHIVEURL',
    'warning: CRYPTODL_ARCHIVEURL is not an option; did you mean CRYPTODL_ARCHIVE_URL?\n',
  ],
  ['CRYPTODL_HOME', ''],
  ['CRYPTODL_SYMBOLS', ''],
  ['CRYPTODL_JOBS', ''],
])('the variable %s', async (name, warning) => {
  const cwd = join(scratch, name);
  mkdirSync(cwd);
  const result = await cryptodl(['schema', 'klines'], { cwd, env: { [name]: '2' } });
  expect([result.code, result.stderr]).toEqual([0, warning]);
});

describe('a mistake in a file or on stdin', () => {
  it.each(ELSEWHERE)('cryptodl $typed: $says', async (mistake) => {
    const { typed, files, stdin, says } = mistake;
    const cwd = join(scratch, `elsewhere-${ELSEWHERE.indexOf(mistake)}`);
    mkdirSync(cwd);
    const jobs = 'jobs: { a: { verb: vision, symbols: BTCUSDT, days: 1 } }';
    for (const [name, text] of Object.entries({ 'jobs.yaml': jobs, ...files }))
      writeFileSync(join(cwd, name), text);
    const given = stdin === undefined ? {} : { stdin };
    const result = await cryptodl(typed.split(' '), { cwd, env: environment(), ...given });
    expect([result.code, result.stderr]).toEqual([2, `cryptodl: ${says}`]);
  });
});

/** As a shell reads it, as it stands there; one line may lead to the next when two things were wrong. */
async function type(line: string, cwd: string, more = 1): Promise<void> {
  const script = `cryptodl() { printf '%s\\0' "$@"; }\n${line}`;
  const { stdout } = await shell('sh', ['-c', script], { cwd });
  const result = await cryptodl(stdout.split('\0').slice(0, -1), { cwd, env: environment() });
  if (result.code === 0) return;
  const next = result.stderr.trimEnd().split('\n').at(-1)?.trim() ?? '';
  if (result.code === 2 && more > 0 && next.startsWith('cryptodl ')) return type(next, cwd, more - 1);
  throw new Error(`${line}\nended with ${result.code}\n${result.stderr}`);
}
