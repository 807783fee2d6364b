/** What a first-time user types wrong. Every answer says what was wrong, and has a line that works when typed. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { shownPath } from '../../src/text/printable.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, cryptodlOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { serveVenue } from '../helpers/rest-venue-server.js';
import type { ServedVenue } from '../helpers/rest-venue-server.js';
import { RestVenue } from '../helpers/rest-venue.js';
import { sizedRows } from '../helpers/tier-size.js';

const scratch = scratchFolder();
const shell = promisify(execFile);
const NOW = '2026-11-21T12:00:00Z';
const JOBS_EXAMPLE = shownPath(fileURLToPath(new URL('../../config/jobs.example.yaml', import.meta.url)));
let archive: TestArchive;
let rest: ServedVenue;

beforeAll(async () => {
  const directory = join(scratch, 'archive');
  const days = { from: '2026-11-14', to: '2026-11-20', cadence: 'daily' } as const;
  const um = { ...days, market: 'um', symbols: ['BTCUSDT', 'ETHUSDT', '1000SHIBUSDT'] } as const;
  for (const interval of ['1m', '5m', '1h']) makeArchive(directory, { ...um, dataset: 'klines', interval });
  makeArchive(directory, { ...um, dataset: 'metrics' });
  makeArchive(directory, { ...um, dataset: 'aggTrades' });
  makeArchive(directory, { ...um, dataset: 'trades' });
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
  const lake = ['--out', join(scratch, 'lake'), '--interval', '1h', '--days', '2'];
  await cryptodlOk(['vision', '--symbols', 'BTCUSDT', ...lake], { env: environment() });
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
  /** The line that is offered, which must work; null for a mistake without a known correction. */
  readonly line: string | null;
  /** The folder of a lake; true: ./data. */
  readonly lake?: true | string;
}

const MISTAKES: readonly Mistake[] = [
  { typed: [], says: 'no command given', line: 'cryptodl vision --symbols BTCUSDT --days 1' },
  {
    typed: ['download', '--symbols', 'BTCUSDT'],
    says: '"download" is not a command',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['run', '--symbols', 'BTCUSDT'],
    says: 'run has no flag --symbols',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  { typed: ['BTCUSDT'], says: '"BTCUSDT" is not a command', line: 'cryptodl vision --symbols BTCUSDT' },
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
    line: 'cryptodl vision --symbols BTCUSDT --interval 1h',
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
    typed: ['vision', '--market', 'umm', '--symbols', 'BTCUSDT'],
    says: '--market: "umm" is not one of spot, um, cm, option',
    line: 'cryptodl vision --market um --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--market', 'cmm', '--symbols', 'BTCUSD_PERP'],
    says: '--market: "cmm" is not one of spot, um, cm, option',
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
    typed: ['vision', '--market', 'SPOTS', '--symbols', 'BTCUSDT'],
    says: '--market: "SPOTS" is not one of spot, um, cm, option',
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
    line: 'cryptodl metrics --dataset openInterestHist --symbols BTCUSDT',
  },
  {
    typed: ['vision', '--market', 'spot', '--dataset', 'openInterestHist', '--symbols', 'BTCUSDT'],
    says: 'um openInterestHist: only REST has it',
    line: 'cryptodl metrics --market um --dataset openInterestHist --symbols BTCUSDT',
  },
  {
    typed: ['list', 'symbols', '--market', 'cm', '--dataset', 'basis'],
    says: 'cm basis: only REST has it',
    line: null,
  },
  {
    typed: ['metrics', '--dataset', 'kline', '--symbols', 'BTCUSDT'],
    says: 'um klines: the archive has it',
    line: 'cryptodl vision --dataset klines --symbols BTCUSDT',
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
    line: null,
  },
  {
    typed: ['metrics'],
    says: 'holds no series to continue',
    line: 'cryptodl metrics --symbols BTCUSDT,ETHUSDT --days 7',
  },
  {
    typed: ['funding', '--symbols', 'BTCUSDT'],
    says: '"funding" is not a command',
    line: 'cryptodl metrics --symbols BTCUSDT',
  },
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
    typed: ['vision', '--symbols', 'BTCUSDT', '--interval', 'h1'],
    says: 'um klines has no "h1"',
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
    line: null,
  },
  { typed: ['vision', '--days'], says: '--days needs a value', line: null },
  {
    typed: ['vision'],
    says: 'holds no series to continue',
    line: 'cryptodl vision --symbols BTCUSDT,ETHUSDT --days 7',
  },
  {
    typed: ['vision', '--symbols', '*USTD'],
    says: '--symbols *USTD matches none of the 3 symbols of um klines',
    line: null,
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
    line: 'cryptodl vision --symbols BTCUSDT --max-bytes 68290',
  },
  {
    typed: ['vision', '--symbols', '*', '--quote', 'USD'],
    says: '--quote USD matches none of the 3 selected symbols',
    line: null,
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
    line: null,
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
    line: 'cryptodl vision --symbols BTCUSDT --days 3',
  },
  {
    typed: ['vision', '--max-wait', '-5s', '--symbols', 'BTCUSDT'],
    says: '--max-wait: "-5s" is not a duration',
    line: null,
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
  { typed: ['datasets'], says: '"datasets" is not a command', line: 'cryptodl list datasets' },
  { typed: ['markets', '--json'], says: '"markets" is not a command', line: 'cryptodl list markets --json' },
  {
    typed: ['sql', '--csv', 'SELECT', '1', 'AS', 'one'],
    says: 'sql takes one argument: "1" is one too many',
    line: "cryptodl sql --csv 'SELECT 1 AS one'",
    lake: true,
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
    lake: true,
  },
  {
    typed: ['vision', '--coin', 'BTCUSDT', '--upstream', '--timeframe', '1h', '--foo', '1'],
    says: 'vision has no flag --coin',
    line: null,
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
    typed: ['vision', '-s', 'BTCUSDT', '-d'],
    says: '--days needs a value',
    line: 'cryptodl vision --symbols BTCUSDT --days 7',
  },
  {
    typed: ['vision', '--symbols', 'BTCUSDT', '--csv'],
    says: 'vision has no flag --csv',
    line: 'cryptodl vision --symbols BTCUSDT --format csv',
  },
  {
    typed: ['vision', '--exchange', 'binance', '--symbols', 'BTCUSDT'],
    says: 'vision has no flag --exchange',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['download', 'BTCUSDT'],
    says: '"download" is not a command',
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
    line: null,
  },
  { typed: ['list', 'symbol'], says: 'list: "symbol" is not one of', line: 'cryptodl list symbols' },
  { typed: ['schema', 'ohlcv'], says: 'no market has a dataset "ohlcv"', line: 'cryptodl schema klines' },
  {
    typed: ['audit'],
    says: 'holds no archive series that matches the flags',
    line: 'cryptodl audit --symbols BTCUSDT',
  },
  {
    typed: ['audit', '--symbols', 'BTCUSDT', '--prefer', 'monthly'],
    says: '--prefer: "monthly"',
    line: null,
  },
  { typed: ['sql'], says: 'sql needs a query', line: "cryptodl sql 'SHOW TABLES'", lake: true },
  {
    typed: ['sql', '--csv', '--json', 'SELECT 1'],
    says: '--csv and --json cannot be used together',
    line: "cryptodl sql --json 'SELECT 1'",
    lake: true,
  },
  {
    typed: ['query', 'SELECT 1'],
    says: '"query" is not a command',
    line: "cryptodl sql 'SELECT 1'",
    lake: true,
  },
  {
    typed: ['sql', 'SELECT * FROM um_klines'],
    says: 'data does not exist, so there is no lake',
    line: 'cryptodl vision --symbols BTCUSDT --days 1',
  },
  {
    typed: ['sql', 'SELECT * FROM BTCUSDT LIMIT 1'],
    says: 'no table "BTCUSDT" (line 1, column 15); the lake has um_klines',
    line: "cryptodl sql 'SELECT * FROM (FROM um_klines WHERE symbol = '\\''BTCUSDT'\\'') LIMIT 1'",
    lake: true,
  },
  {
    typed: ['sql', 'SELECT close FROM um_klines WHERE symbol = "BTCUSDT"'],
    says: 'no column "BTCUSDT" (line 1, column 44)',
    line: "cryptodl sql 'SELECT close FROM um_klines WHERE symbol = '\\''BTCUSDT'\\'''",
    lake: true,
  },
  {
    typed: ['verify', 'lake2'],
    says: 'verify takes no argument: "lake2" is one too many',
    line: 'cryptodl verify --out lake2',
    lake: 'lake2',
  },
  {
    typed: ['repair', 'lake2'],
    says: 'repair takes no argument: "lake2" is one too many',
    line: 'cryptodl repair --out lake2',
    lake: 'lake2',
  },
  {
    typed: ['coverage', 'lake2'],
    says: 'coverage takes no argument: "lake2" is one too many',
    line: 'cryptodl coverage --out lake2',
    lake: 'lake2',
  },
  {
    typed: ['runs', 'lake2'],
    says: 'runs takes no argument: "lake2" is one too many',
    line: 'cryptodl runs --out lake2',
    lake: 'lake2',
  },
  {
    typed: ['vision', 'BTCUSDT', 'lake2', '--days', '1', '--interval', '1h'],
    says: 'vision takes no argument',
    line: 'cryptodl vision --days 1 --interval 1h --symbols BTCUSDT --out lake2',
    lake: 'lake2',
  },
  {
    typed: ['audit', 'BTCUSDT', '-i', '1h', '--days', '2'],
    says: 'audit takes no argument: "BTCUSDT" is one too many',
    line: 'cryptodl audit --interval 1h --days 2 --symbols BTCUSDT',
  },
  {
    typed: ['verify', 'no-lake'],
    says: 'verify takes no argument: "no-lake" is one too many',
    line: null,
    lake: true,
  },
  {
    typed: ['sql', 'lake2', 'SELECT 1'],
    says: '"lake2" is a folder',
    line: "cryptodl sql --out lake2 'SELECT 1'",
    lake: 'lake2',
  },
  {
    typed: ['sql', 'SELECT', 'data', 'FROM', 'um_klines'],
    says: '"data" is one too many',
    line: null,
    lake: true,
  },
  {
    typed: ['schedule', 'vision -s BTCUSDT -d 7'],
    says: 'schedule: write -- before the command',
    line: 'cryptodl schedule -- vision -s BTCUSDT -d 7',
  },
  {
    typed: ['schedule', '--', 'cryptodl vision -s BTCUSDT -d 7'],
    says: 'is not a command',
    line: 'cryptodl schedule -- vision -s BTCUSDT -d 7',
  },
  {
    typed: ['vision -s BTCUSDT'],
    says: 'is not a command',
    line: 'cryptodl vision -s BTCUSDT',
  },
  {
    typed: ['schedule', '--', 'verify', '--kind', 'cron'],
    says: 'verify has no flag --kind',
    line: 'cryptodl schedule --kind cron -- verify',
    lake: true,
  },
  {
    typed: ['schedule', '--', 'verify', '--at=09:30', '--deep'],
    says: 'verify has no flag --at',
    line: 'cryptodl schedule --at=09:30 -- verify --deep',
    lake: true,
  },
  {
    typed: ['run', 'vision', '-s', 'BTCUSDT'],
    says: 'run takes a file of jobs; vision is a command of its own',
    line: 'cryptodl vision -s BTCUSDT',
  },
  {
    typed: ['run', 'verify'],
    says: 'run takes a file of jobs; verify is a command of its own',
    line: 'cryptodl verify',
    lake: true,
  },
  {
    typed: ['resume'],
    says: '"resume" is not a command',
    line: null,
  },
  {
    typed: ['resume', 'vision', '--symbols', 'BTCUSDT'],
    says: '"resume" is not a command',
    line: 'cryptodl vision --symbols BTCUSDT',
  },
  {
    typed: ['verify', '--repair', '--deep'],
    says: 'verify has no flag --repair',
    line: 'cryptodl repair --deep',
    lake: true,
  },
  { typed: ['completion', 'powershell'], says: 'no script for "powershell"', line: null },
];

/** The habits of users of freqtrade, dukascopy-node, tardis, ccxt, rclone and curl, and mistakes whose suggestions were wrong once: the line, the cause, the suggestion. */
const HABITS: readonly (readonly [typed: string, says: string, line: string | null])[] = [
  [
    'download-data --exchange binance --pairs BTC/USDT ETH/USDT --timeframes 1m 1h --timerange 20261118-20261119',
    '"download-data" is not a command',
    'cryptodl vision --symbols BTCUSDT,ETHUSDT --interval 1m --from 2026-11-18 --to 2026-11-19 --interval 1h',
  ],
  [
    'vision --pairs BTC/USDT --timeframes 1h',
    'vision has no flag --pairs',
    'cryptodl vision --symbols BTCUSDT --interval 1h',
  ],
  [
    'vision --symbols BTCUSDT --timerange 20261118-',
    'vision has no flag --timerange',
    'cryptodl vision --symbols BTCUSDT --from 2026-11-18',
  ],
  ['vision --symbols BTCUSDT --timerange lastweek', 'vision has no flag --timerange', null],
  [
    'vision --symbols BTCUSDT --trading-mode futures',
    'vision has no flag --trading-mode',
    'cryptodl vision --symbols BTCUSDT --market um',
  ],
  ['vision --symbols BTCUSDT --trading-mode margin', 'vision has no flag --trading-mode', null],
  [
    'vision --symbols BTCUSDT -t 1h',
    'vision has no flag -t',
    'cryptodl vision --symbols BTCUSDT --interval 1h',
  ],
  [
    'vision --symbols BTCUSDT --datadir lake',
    'vision has no flag --datadir',
    'cryptodl vision --symbols BTCUSDT --out lake',
  ],
  [
    'vision --symbols BTCUSDT --data-format-ohlcv feather',
    'vision has no flag --data-format-ohlcv',
    'cryptodl vision --symbols BTCUSDT --format parquet',
  ],
  [
    'vision --symbols BTCUSDT --dl-trades --from 2026-11-18',
    'vision has no flag --dl-trades',
    'cryptodl vision --symbols BTCUSDT --dataset trades --from 2026-11-18',
  ],
  [
    'vision --symbols BTCUSDT --erase',
    'vision has no flag --erase',
    'cryptodl vision --symbols BTCUSDT --force',
  ],
  ['list-pairs --exchange binance', '"list-pairs" is not a command', 'cryptodl list symbols'],
  [
    'vision --instrument BTCUSDT --timeframe m1 --date-from 2026-11-18 --date-to 2026-11-19',
    'vision has no flag --instrument',
    'cryptodl vision --symbols BTCUSDT --interval 1m --from 2026-11-18 --to 2026-11-19',
  ],
  [
    'vision --symbols BTCUSDT --timeframe h1',
    'vision has no flag --timeframe',
    'cryptodl vision --symbols BTCUSDT --interval 1h',
  ],
  [
    'vision --symbols BTCUSDT --timeframe tick',
    'vision has no flag --timeframe',
    'cryptodl vision --symbols BTCUSDT --dataset trades',
  ],
  [
    'vision --exchange binance-futures --data-types trades --symbols BTCUSDT',
    'vision has no flag --exchange',
    'cryptodl vision --market um --dataset trades --symbols BTCUSDT',
  ],
  ['vision --exchange deribit --data-types trades --symbols BTCUSDT', 'vision has no flag --exchange', null],
  ['vision --symbols BTCUSDT --exchange bybit', 'vision has no flag --exchange', null],
  [
    'vision --symbols BTCUSDT --api-key abc',
    'vision has no flag --api-key',
    'cryptodl vision --symbols BTCUSDT',
  ],
  ['vision --symbols BTCUSDT --data-types incremental_book_L2', 'vision has no flag --data-types', null],
  [
    'vision --symbols BTCUSDT --data-types quotes --from 2024-03-29 --to 2024-03-30',
    'vision has no flag --data-types',
    'cryptodl vision --symbols BTCUSDT --dataset bookTicker --from 2024-03-29 --to 2024-03-30',
  ],
  [
    'fetch_ohlcv BTC/USDT 1h',
    '"fetch_ohlcv" is not a command',
    'cryptodl vision --symbols BTCUSDT --interval 1h',
  ],
  ['vision --symbols BTC/USDT:USDT', '"BTC/USDT:USDT" is not a symbol', 'cryptodl vision --symbols BTCUSDT'],
  [
    'vision --symbols BTCUSDT --since 1794960000000',
    'vision has no flag --since',
    'cryptodl vision --symbols BTCUSDT --from 2026-11-18',
  ],
  [
    'vision --symbols BTCUSDT --since 2026-11-18T00:00:00Z',
    'vision has no flag --since',
    'cryptodl vision --symbols BTCUSDT --from 2026-11-18',
  ],
  ['vision --symbols BTCUSDT --limit 1000', 'vision has no flag --limit', null],
  ['copy binance:BTCUSDT ./data', '"copy" is not a command', null],
  ['ls', '"ls" is not a command', 'cryptodl list datasets'],
  [
    'vision --symbols BTCUSDT --transfers 16',
    'vision has no flag --transfers',
    'cryptodl vision --symbols BTCUSDT --concurrency 16',
  ],
  ['vision --symbols BTCUSDT --checkers 8', 'vision has no flag --checkers', null],
  [
    'vision --symbols BTCUSDT --max-transfer 10G',
    'vision has no flag --max-transfer',
    'cryptodl vision --symbols BTCUSDT --max-bytes 10GiB',
  ],
  [
    'vision --symbols BTCUSDT --bwlimit 10M',
    '--bwlimit: "10M" is not a size',
    'cryptodl vision --symbols BTCUSDT --bwlimit 10MiB',
  ],
  ['vision --symbols BTCUSDT -P', 'vision has no flag -P', 'cryptodl vision --symbols BTCUSDT'],
  ['vision -O --symbols BTCUSDT', 'vision has no flag -O', 'cryptodl vision --symbols BTCUSDT'],
  [
    'vision --symbols BTCUSDT --retry 5',
    'vision has no flag --retry',
    'cryptodl vision --symbols BTCUSDT --retries 5',
  ],
  ['vision --symbols BTCUSDT -k', 'vision has no flag -k', null],
  ['vision --symbols BTCUSDT -L', 'vision has no flag -L', 'cryptodl vision --symbols BTCUSDT'],
  [
    'vision --symbols BTCUSDT --limit-rate 200k',
    'vision has no flag --limit-rate',
    'cryptodl vision --symbols BTCUSDT --bwlimit 200KiB',
  ],
  [
    'vision --symbols BTCUSDT --connect-timeout 10',
    '--connect-timeout: "10" is not a duration',
    'cryptodl vision --symbols BTCUSDT --connect-timeout 10s',
  ],
  [
    'vision --symbols BTCUSDT --max-time 60',
    'vision has no flag --max-time',
    'cryptodl vision --symbols BTCUSDT --max-duration 60s',
  ],
  [
    'vision --symbols BTCUSDT --start_date 2026-11-18',
    'vision has no flag --start_date',
    'cryptodl vision --symbols BTCUSDT --from 2026-11-18',
  ],
  ['vision --symbols BTCUSDT --resume', 'vision has no flag --resume', 'cryptodl vision --symbols BTCUSDT'],
  ['vision --symbols BTCUSDT --top 10', 'vision has no flag --top', null],
  [
    'metrics --symbols BTCUSDT --dataset liquidations',
    'um liquidationSnapshot was removed by Binance',
    'cryptodl list symbols --market cm --dataset liquidationSnapshot',
  ],
  [
    'vision --symbols BTCUSDT --interval m5 --dry-run',
    'um klines has no "m5"',
    'cryptodl vision --symbols BTCUSDT --interval 5m --dry-run',
  ],
  [
    'vision --symbols BTCUSDT --interval hour',
    'um klines has no "hour"',
    'cryptodl vision --symbols BTCUSDT --interval 1h',
  ],
  ['vision --symbols BTCUSDT --interval 60', 'um klines has no "60"', null],
  [
    'vision --symbols BTCUSDT --max-wait 5min',
    '--max-wait: "5min" is not a duration',
    'cryptodl vision --symbols BTCUSDT --max-wait 5m',
  ],
  [
    'vision --symbols BTCUSDT --max-bytes 5G',
    '--max-bytes: "5G" is not a size',
    'cryptodl vision --symbols BTCUSDT --max-bytes 5GiB',
  ],
  ['vision --symbols BTCUSDT --retries all', '--retries: "all" is not a whole number', null],
  [
    'vision --symbols BTCUSDT --days 3d',
    '--days: "3d" is not a whole number',
    'cryptodl vision --symbols BTCUSDT --days 3',
  ],
  ['vision --symbols XYZ*', '--symbols XYZ* matches none', null],
  ['vision --symbols !all', 'has only exclusions', null],
  ['vision --symbols @', '"@" needs the name of a file', null],
  ['schedule --every 60 -- vision --symbols BTCUSDT', '--every: "60" is not one of', null],
  [
    'schedule --every 60m -- vision --symbols BTCUSDT',
    '--every: "60m" is not one of',
    'cryptodl schedule --every 1h -- vision --symbols BTCUSDT',
  ],
  ['vision --symbols BTCUSDT --proxy 127.0.0.1', '--proxy is not the address of a proxy', null],
  ['vision -O lake -s BTCUSDT', 'vision has no flag -O', 'cryptodl vision --out lake --symbols BTCUSDT'],
  ['vision -P lake -s BTCUSDT', 'vision has no flag -P', null],
  ['vision -D 2 -s BTCUSDT', 'vision has no flag -D', 'cryptodl vision --days 2 --symbols BTCUSDT'],
  ['vision -S BTCUSDT', 'vision has no flag -S', 'cryptodl vision --symbols BTCUSDT'],
  ['vision -N -s BTCUSDT', 'vision has no flag -N', 'cryptodl vision --dry-run --symbols BTCUSDT'],
  ['vision -x BTCUSDT', 'vision has no flag -x', null],
  ['vision -p BTC/USDT', 'vision has no flag -p', 'cryptodl vision --symbols BTCUSDT'],
  [
    'vision -s BTCUSDT --from-date 2026-11-18 --to_date 2026-11-19',
    'vision has no flag --from-date',
    'cryptodl vision --symbols BTCUSDT --from 2026-11-18 --to 2026-11-19',
  ],
  [
    'vision -s BTCUSDT --since 2026-11-18 --until 2026-11-19',
    'vision has no flag --since',
    'cryptodl vision --symbols BTCUSDT --from 2026-11-18 --to 2026-11-19',
  ],
  [
    'vision -s BTCUSDT --date 2026-11-18',
    'vision has no flag --date',
    'cryptodl vision --symbols BTCUSDT --from 2026-11-18 --to 2026-11-18',
  ],
  [
    'vision -s BTCUSDT --dry_run --max_bytes=5GB',
    'vision has no flag --dry_run',
    'cryptodl vision --symbols BTCUSDT --dry-run --max-bytes=5GB',
  ],
  [
    'vision -s BTCUSDT --startDate 2026-11-18 --dryRun',
    'vision has no flag --startDate',
    'cryptodl vision --symbols BTCUSDT --from 2026-11-18 --dry-run',
  ],
  [
    'vision -s BTCUSDT -f feather',
    '--format: "feather" is not one of parquet, csv, zip',
    'cryptodl vision --symbols BTCUSDT --format parquet',
  ],
  [
    'vision -s BTCUSDT -f pq',
    '--format: "pq" is not one of parquet, csv, zip',
    'cryptodl vision --symbols BTCUSDT --format parquet',
  ],
  ['vision -s BTCUSDT -f json', '--format: "json" is not one of parquet, csv, zip', null],
  [
    'vision -s BTCUSDT -m margin',
    '--market: "margin" is not one of spot, um, cm, option, all',
    'cryptodl vision --symbols BTCUSDT --market spot',
  ],
  ['vision -s BTCUSDT -i 10m', 'um klines has no "10m"', null],
  ['vision -s BTCUSDT -i 1M', 'um klines has no "1M"', null],
  ['vision -s BTCUSDT -i 5', 'um klines has no "5"', 'cryptodl vision --symbols BTCUSDT --interval 5m'],
  [
    'vision -s BTCUSDT -i tick',
    'um klines has no "tick"',
    'cryptodl vision --symbols BTCUSDT --dataset trades',
  ],
  [
    'vision -s BTCUSDT -d 1w',
    '--days: "1w" is not a whole number',
    'cryptodl vision --symbols BTCUSDT --days 7',
  ],
  ['vision -s BTCUSDT -d 1month', '--days: "1month" is not a whole number', null],
  ['vision -s “BTCUSDT”', 'has curly quotes', 'cryptodl vision --symbols BTCUSDT'],
  ['vision “BTCUSDT”', 'vision takes no argument', 'cryptodl vision --symbols BTCUSDT'],
  ['verify --deep --json --csv', 'verify has no flag --csv', null],
  ['vision -s BTCUSDT --timestamps s', '--timestamps: "s" is not one of us, ms, iso, utc', null],
  [
    'vision -s BTCUSDT -m usdt',
    '--market: "usdt" is not one of',
    'cryptodl vision --symbols BTCUSDT --market um',
  ],
  ['list pairs', 'list: "pairs" is not one of', 'cryptodl list symbols'],
  ['list intervals', 'list: "intervals" is not one of', 'cryptodl list datasets'],
  ['ls coins', '"ls" is not a command', 'cryptodl list symbols'],
  [
    'list periods BTCUSDT um',
    'list takes one argument: "BTCUSDT" is one too many',
    'cryptodl list periods --symbols BTCUSDT --market um',
  ],
  ['schema um klines', 'schema takes one argument', 'cryptodl schema klines --market um'],
  ['schema klines um', 'schema takes one argument', 'cryptodl schema klines --market um'],
  ['run', 'run needs a file', null],
  [
    'schedule vision --symbls BTC/USDT -f pq',
    'schedule: write -- before the command',
    'cryptodl schedule -- vision --symbols BTCUSDT --format parquet',
  ],
];

/** Flags of a job behind a file of jobs: what is typed, and what stands in the file instead. */
const IN_THE_FILE: readonly (readonly [string, string, string])[] = [
  ['run jobs.yaml --concurrency 5', '--concurrency', 'concurrency: 5'],
  ['run --concurrency=5 jobs.yaml', '--concurrency', 'concurrency: 5'],
  ['run jobs.yaml --concurrency', '--concurrency', 'concurrency: auto'],
  ['run --force jobs.yaml', '--force', 'force: true'],
  ['run jobs.yaml -d 7', '-d', 'days: 7'],
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

const ALIKE: readonly Mistake[] = HABITS.map(([typed, says, line]) => ({
  typed: typed.split(' '),
  says,
  line,
}));
const ALL: readonly Mistake[] = [...MISTAKES, ...ALIKE];

it('there are 120 typical mistakes, each once', () => {
  expect(new Set(ALL.map(({ typed }) => typed.join(' '))).size).toBe(ALL.length);
  expect(ALL.length).toBeGreaterThanOrEqual(120);
});

it('a flag that cannot have the value is not suggested', async () => {
  const result = await cryptodl(['vision', '--symbols', 'BTCUSDT', '--toppest', '10'], {
    env: environment(),
  });
  expect(result.stderr).toBe('cryptodl: vision has no flag --toppest\n  see cryptodl vision --help\n');
});

it('a flag of other commands is answered with all of them', async () => {
  const result = await cryptodl(['schema', 'klines', '--interval', '1h']);
  expect(result.stderr).toBe(
    'cryptodl: schema has no flag --interval\n' +
      '  --interval is a flag of vision, metrics, verify, repair, list, audit, coverage, report, plot, bars, export and enqueue\n',
  );
  const short = await cryptodl(['sql', '-v', 'SHOW TABLES']);
  expect(short.stderr).toBe(
    'cryptodl: sql has no flag -v\n' +
      '  -v is a flag of vision, metrics, run, retry, verify, repair, list, audit, universe, enqueue and worker\n',
  );
});

describe('a typical mistake', () => {
  it.each([...sizedRows(MISTAKES, 25), ...sizedRows(ALIKE, 10)])(
    'cryptodl $typed',
    async ({ typed, says, line, lake }) => {
      const cwd = join(scratch, `in-${ALL.findIndex((mistake) => mistake.typed === typed)}`);
      mkdirSync(cwd);
      if (lake !== undefined)
        cpSync(join(scratch, 'lake'), join(cwd, lake === true ? 'data' : lake), { recursive: true });
      const result = await cryptodl(typed, { cwd, env: environment() });
      const [what = '', ...more] = result.stderr.trimEnd().split('\n');
      expect(what).toMatch(/^cryptodl: /);
      expect(what).toContain(says);
      expect(result.code).toBe(2);
      expect(result.stdout).toBe('');
      const offered = more.map((each) => each.trim()).filter((each) => each.startsWith('cryptodl '));
      expect(offered).toEqual(line === null ? [] : [line]);
      for (const each of offered) await type(each, cwd);
    },
  );
});

/** Mistakes in files and on stdin. The advice is a change there, because no other command line helps. */
const ELSEWHERE: readonly {
  readonly typed: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly encoding?: 'utf16le';
  readonly env?: Readonly<Record<string, string>>;
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
    files: { 'c.yaml': 'symbols: "*"\nquote: usdt\n' },
    says:
      'c.yaml: quote usdt matches none of the 3 selected symbols\n' +
      '  for example 1000SHIBUSDT, BTCUSDT, ETHUSDT\n  write the line "quote: USDT" in c.yaml\n',
  },
  {
    typed: 'vision --config c.yaml',
    files: { 'c.yaml': 'symbols: BTCUSDT\nformat: parket\n' },
    says:
      'c.yaml: format: "parket" is not one of parquet, csv, zip\n' +
      '  did you mean parquet?\n  write the line "format: parquet" in c.yaml\n',
  },
  {
    typed: 'vision --config c.yaml',
    files: { 'c.yaml': 'days: 1\nsymbols: !ETHUSDT\n' },
    says: "--config: c.yaml line 2: the value needs quotes: symbols: !ETHUSDT\n  symbols: '!ETHUSDT'\n",
  },
  {
    typed: 'vision --config c.yaml',
    files: { 'c.yaml': 'days: 1\nout: my: lake\n' },
    says: "--config: c.yaml line 2: the value needs quotes: out: my: lake\n  out: 'my: lake'\n",
  },
  {
    typed: 'vision --config c.yaml',
    files: { 'c.yaml': 'days: 1\nsymbols: BTCUSDT\ndays: 2\n' },
    says: '--config: c.yaml line 3: the key "days" appears twice\n  delete one of them\n',
  },
  {
    typed: 'vision --config c.yaml',
    files: { 'c.yaml': 'config: d.yaml\n' },
    says: 'c.yaml: config: a config file cannot name another one\n  delete the line\n',
  },
  {
    typed: 'run jobs.yaml',
    files: { 'jobs.yaml': 'jobs: { a: { verb: vision, symbols: [BTCUSDT, !ETHUSDT] } }' },
    says: "run: jobs.yaml line 1: the value needs quotes: !ETHUSDT\n  '!ETHUSDT'\n",
  },
  {
    typed: 'vision --symbols -,-',
    stdin: '# none\n',
    says: '--symbols: stdin has no symbol\n',
  },
  {
    typed: 'vision --config .',
    says: '--config: cannot read . (it is a folder)\n  name a file\n',
  },
  {
    typed: 'vision --config f.txt/c.yaml',
    files: { 'f.txt': '' },
    says:
      '--config: cannot read f.txt/c.yaml (a part of the path is a file)\n' +
      '  name a YAML or JSON file with lines like "market: spot"\n',
  },
  {
    typed: 'vision --symbols @univers.txt',
    files: { 'universe.txt': '' },
    says: '--symbols: cannot read univers.txt (no such file or folder)\n  did you mean universe.txt?\n',
  },
  {
    typed: 'run jobs.yaml',
    files: { 'jobs.yaml': 'jobs:\n  - name: a\n' },
    says:
      'jobs.yaml: jobs is not a map of names to jobs\n' +
      '  for example: jobs: { bars: { verb: vision, symbols: BTCUSDT, days: 7 } }\n' +
      `  ${JOBS_EXAMPLE} is an example of a file of jobs\n`,
  },
  {
    typed: 'sql SELECT jobs.yaml FROM um_klines',
    says:
      'sql takes one argument: "jobs.yaml" is one too many\n' +
      '  put the query in quotes: without them, the shell replaces * by names of files, for example jobs.yaml\n' +
      "  for example: cryptodl sql 'SELECT * FROM um_klines'\n",
  },
  {
    typed: 'vision -s universe.txt',
    files: { 'universe.txt': 'BTCUSDT' },
    says:
      '--symbols: universe.txt is a file\n' +
      '  @ reads a list of symbols: --symbols @universe.txt\n  cryptodl vision --symbols @universe.txt\n',
  },
  {
    typed: 'vision -s BTCUSDT --max-bytes 5G --dry-run',
    says:
      '--max-bytes: "5G" is not a size\n' +
      '  did you mean 5GiB?\n  cryptodl vision --symbols BTCUSDT --max-bytes 5GiB --dry-run\n',
  },
  {
    typed: 'sql q.sql',
    files: { 'q.sql': 'SELECT 1' },
    says: 'sql: q.sql is a file\n  @ reads the query from a file\n',
  },
  {
    typed: 'sql @none.sql',
    says: 'sql: cannot read none.sql (no such file or folder)\n  name a file with a query: @FILE\n',
  },
  {
    typed: 'vision --symbols BTCUSDT --ca-file none.pem',
    says:
      '--ca-file: cannot read none.pem (no such file or folder)\n' +
      '  give a file in PEM form (-----BEGIN CERTIFICATE-----)\n',
  },
  {
    typed: 'vision --symbols BTCUSDT --out f.txt/lake',
    files: { 'f.txt': '' },
    says: '--out: f.txt/lake is not a folder: a part of the path is a file\n  choose another --out\n',
  },
  {
    typed: 'vision --symbols BTCUSDT --temp-dir f.txt',
    files: { 'f.txt': '' },
    says: '--temp-dir: f.txt is a file, not a folder\n  choose another --temp-dir\n',
  },
  {
    typed: 'vision --symbols BTCUSDT --log-file f.txt/log',
    files: { 'f.txt': '' },
    says:
      '--log-file f.txt/log cannot be written (a part of the path is a file)\n' +
      '  choose another --log-file, or leave it out\n',
  },
  {
    typed: 'serve .',
    says:
      '. has no folder data with the zips of the archive\n' +
      '  name the --out of a run with --format zip, for example:\n' +
      '  cryptodl vision --symbols BTCUSDT --days 7 --format zip --out ./raw\n',
  },
  {
    typed: 'vision --symbols @list.txt',
    files: { 'list.txt': '\ufeffBTCUSDT\n' },
    encoding: 'utf16le',
    says: '--symbols: list.txt is UTF-16\n  save it as UTF-8\n',
  },
  {
    typed: 'vision --symbols BTCUSDT',
    env: { CRYPTODL_FORMAT: 'parket' },
    says:
      'CRYPTODL_FORMAT: "parket" is not one of parquet, csv, zip\n' +
      '  did you mean parquet?\n  CRYPTODL_FORMAT=parquet\n',
  },
  {
    typed: 'vision --days 1',
    env: { CRYPTODL_SYMBOLS: 'BTC/USDT' },
    says:
      'CRYPTODL_SYMBOLS: "BTC/USDT" is not a symbol\n' +
      '  symbols look like BTCUSDT, BTCUSD_PERP or 币安人生USDT\n  CRYPTODL_SYMBOLS=BTCUSDT\n',
  },
  {
    typed: 'vision --symbols BTCUSDT',
    env: { CRYPTODL_CONFIG: 'none.yaml' },
    says: 'CRYPTODL_CONFIG: cannot read none.yaml (no such file or folder)\n  name a YAML or JSON file with lines like "market: spot"\n',
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

/** A report without failures. */
const REPORT = `${JSON.stringify({ v: 1, kind: 'header', tool: 'x', at: NOW, verb: 'vision', options: {} })}\n`;

it('retry of a missing report offers the newest report, and no line without one', async () => {
  const cwd = join(scratch, 'no-report');
  mkdirSync(join(cwd, 'data/_failures'), { recursive: true });
  const refused = async (): Promise<string> =>
    (await cryptodl(['retry', 'none.jsonl'], { cwd, env: environment() })).stderr;
  expect(await refused()).toBe(
    'cryptodl: cannot read none.jsonl (no such file or folder)\n' +
      '  name the failure report of a run; runs without failures write none\n',
  );
  for (const name of ['vision-20261119T070000Z', 'metrics-20261120T070000Z', 'vision-20261118T070000Z'])
    writeFileSync(join(cwd, 'data/_failures', `${name}.jsonl`), REPORT);
  writeFileSync(join(cwd, 'data/_failures/zz.txt'), '');
  expect(await refused()).toBe(
    'cryptodl: cannot read none.jsonl (no such file or folder)\n  the newest report of data/_failures:\n' +
      '  cryptodl retry data/_failures/metrics-20261120T070000Z.jsonl\n',
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
  expect(config.stderr).toContain('was written with numbers double, but c.yaml: numbers is string\n');
  const given = { ...env, CRYPTODL_NUMBERS: 'string' };
  const variable = await cryptodl([...args, '--days', '2'], { cwd, env: given });
  expect(variable.stderr).toContain('was written with numbers double, but CRYPTODL_NUMBERS is string\n');
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
    const { typed, files, encoding, env, stdin, says } = mistake;
    const cwd = join(scratch, `elsewhere-${ELSEWHERE.indexOf(mistake)}`);
    mkdirSync(cwd);
    const jobs = 'jobs: { a: { verb: vision, symbols: BTCUSDT, days: 1 } }';
    for (const [name, text] of Object.entries({ 'jobs.yaml': jobs, ...files }))
      writeFileSync(join(cwd, name), text, encoding);
    const given = stdin === undefined ? {} : { stdin };
    const result = await cryptodl(typed.split(' '), { cwd, env: { ...environment(), ...env }, ...given });
    expect([result.code, result.stderr]).toEqual([2, `cryptodl: ${says}`]);
  });
});

/** Types the line into a shell, as it stands there. It must not be refused. */
async function type(line: string, cwd: string): Promise<void> {
  const script = `cryptodl() { printf '%s\\0' "$@"; }\n${line}`;
  const { stdout } = await shell('sh', ['-c', script], { cwd });
  const result = await cryptodl(stdout.split('\0').slice(0, -1), { cwd, env: environment() });
  if (result.code === 0) return;
  throw new Error(`${line}\nended with ${result.code}\n${result.stderr}`);
}
