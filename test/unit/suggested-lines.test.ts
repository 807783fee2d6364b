/** Suggested command lines: the checks of `check-line.ts`, one by one, and the words of other tools. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SETTINGS } from '../../scripts/synthetic-lake.js';
import { refusalOf } from '../../src/cli/check-line.js';
import { correctedLine, lineText, workingLine } from '../../src/cli/corrected-line.js';
import { DATA_TYPES, EXCHANGES, FOREIGN_FLAGS, FOREIGN_VERBS } from '../../src/cli/foreign-words.js';
import { CryptodlError } from '../../src/model/errors.js';
import type { Io } from '../../src/model/io.js';
import type { FlagName } from '../../src/options/flags.js';
import { loadBinance } from '../../src/source/binance/binance.js';
import { scratchFolder } from '../helpers/folders.js';

const SOURCE = loadBinance();
const NOW = '2026-11-21T12:00:00Z';
const scratch = scratchFolder();
/** A lake, and a folder without one. */
const LAKE = join(scratch, 'lake');
const ZIPS = join(scratch, 'zips');
const EMPTY = join(scratch, 'empty');
mkdirSync(join(LAKE, 'binance'), { recursive: true });
mkdirSync(join(ZIPS, 'data'), { recursive: true });
mkdirSync(EMPTY);

function fileOf(name: string, text: string): string {
  writeFileSync(join(scratch, name), text);
  return join(scratch, name);
}

type Environment = Readonly<Record<string, string>>;

async function refused(
  words: readonly string[],
  environment: Environment = {},
  without: readonly FlagName[] = [],
): Promise<CryptodlError | undefined> {
  const io = { environment, clock: { now: () => Date.parse(NOW) } } as unknown as Io;
  return refusalOf(words, { io, loadSource: () => Promise.resolve(SOURCE), without });
}

/** The text of the refusal; undefined if the line is accepted. */
async function refusalText(
  line: string | readonly string[],
  environment?: Environment,
): Promise<string | undefined> {
  return (await refused(typeof line === 'string' ? line.split(' ') : line, environment))?.message;
}

const VISION = 'vision --symbols BTCUSDT';
const JOBS = fileOf('jobs.yaml', 'jobs: { a: { verb: vision, symbols: BTCUSDT, days: 1 } }');
const BAD_JOBS = fileOf('bad.yaml', 'jobs: { a: { verb: vision, symbols: BTCUSDT, days: x } }');
const BAD_JOB_DATES = fileOf(
  'dates.yaml',
  'jobs: { a: { verb: vision, symbols: BTCUSDT, days: 1, months: 1 } }',
);
const SYMBOLS = fileOf('symbols.txt', 'BTC/USDT\n');
const CONFIG = fileOf('config.yaml', 'format: parket\n');
const HEADER = { v: 1, kind: 'header', verb: 'vision', tool: 'test', at: NOW, options: { out: [LAKE] } };
const FAILURE = {
  v: 1,
  kind: 'failed',
  market: 'um',
  dataset: 'klines',
  interval: '1m',
  symbol: 'BTCUSDT',
  cadence: 'daily',
  period: '2026-11-20',
  key: 'k',
  code: 'bug',
  retryable: false,
  attempts: 1,
  message: 'm',
  at: NOW,
  settings: SETTINGS,
};
const reportOf = (name: string, failure: object): string =>
  fileOf(name, [HEADER, failure].map((line) => `${JSON.stringify(line)}\n`).join(''));
const REPORT = reportOf('report.jsonl', FAILURE);
const STRAY = reportOf('stray.jsonl', { ...FAILURE, market: 'mars' });

describe('a line is refused', () => {
  it.each<[string, string, string, Environment?]>([
    ['a word that is no command', 'visio', '"visio" is not a command'],
    ['an unknown flag', `${VISION} --foo 1`, 'vision has no flag --foo'],
    ['a flag without a value', `${VISION} --days`, '--days needs a value'],
    ['a value that the flag does not take', `${VISION} --days x`, '--days: "x" is not a whole number'],
    [
      'two kinds of range',
      `${VISION} --days 1 --months 1`,
      '--days and --months are different kinds of range',
    ],
    ['days that are not over', `${VISION} --to 2026-11-21`, 'is not over yet'],
    ['an unknown dataset', `${VISION} --dataset nope`, 'um has no "nope"'],
    ['an unknown interval', `${VISION} --interval 2m`, 'um klines has no "2m"'],
    ['a dataset of REST', `${VISION} --dataset openInterestHist`, 'only REST has it'],
    ['a dataset of the archive', 'metrics --symbols BTCUSDT --dataset trades', 'the archive has it'],
    ['exclusions alone', 'vision --symbols !A', 'has only exclusions'],
    ['a file with a bad symbol', `vision --symbols @${SYMBOLS}`, 'BTC/USDT'],
    ['a missing file of symbols', `vision --symbols @${scratch}/none.txt`, 'cannot read'],
    ['a wrong variable', VISION, 'CRYPTODL_DAYS: "x"', { CRYPTODL_DAYS: 'x' }],
    ['a wrong key of a config file', `${VISION} --config ${CONFIG}`, 'format: "parket" is not one of'],
    ['a missing config file', `${VISION} --config ${scratch}/none.yaml`, 'cannot read'],
    ['a selection of audit', 'audit --symbols BTCUSDT --dataset nope', 'um has no "nope"'],
    ['a selection of list symbols', 'list symbols --dataset nope', 'um has no "nope"'],
    ['a selection of list periods', 'list periods --symbols BTCUSDT --interval 2m', 'um klines has no "2m"'],
    ['list periods without symbols', 'list periods', 'list periods needs --symbols'],
    ['an unknown operand', 'list symbol', 'list: "symbol" is not one of markets'],
    ['an unknown shell', 'completion powershell', 'completion: "powershell" is not known'],
    ['an unknown dataset of schema', 'schema nope', 'schema: "nope" is not known'],
    ['a file without jobs', `run ${scratch}/none.yaml`, 'cannot read'],
    ['a wrong job', `run ${BAD_JOBS}`, 'jobs.a: days: "x" is not a whole number'],
    ['a wrong selection of a job', `run ${BAD_JOB_DATES}`, 'different kinds of range'],
    ['a report that does not exist', `retry ${scratch}/none.jsonl`, 'cannot read'],
    ['a report of another exchange', `retry ${STRAY}`, 'line 2 is not a failure'],
    ['a wrong flag of retry', `retry ${REPORT} --retries x`, '--retries: "x"'],
    ['a wrong command after --', 'schedule -- vision --symbols BTCUSDT --days x', '--days: "x"'],
    ['a lake that vision continues', `vision --out ${EMPTY}`, 'vision needs a lake'],
    ['a lake that metrics continues', `metrics --out ${EMPTY}`, 'metrics needs a lake'],
    ['a lake that audit reads', `audit --out ${EMPTY}`, 'audit needs a lake'],
    ...['verify', 'repair', 'coverage', 'sql'].map((verb): [string, string, string] => [
      `a lake that ${verb} reads`,
      `${verb} --out ${EMPTY}${verb === 'sql' ? ' SELECT' : ' --symbols BTCUSDT'}`,
      `${verb} needs a lake`,
    ]),
  ])('for %s', async (_, line, says, environment) => {
    expect(await refusalText(line, environment)).toContain(says);
  });

  it('but not by an option that the correction removes', async () => {
    const environment = { CRYPTODL_MONTHS: '1', CRYPTODL_BWLIMIT: 'x' };
    const words = VISION.split(' ');
    expect((await refused(words, environment))?.message).toContain('CRYPTODL_BWLIMIT');
    expect(await refused(words, environment, ['bwlimit'])).toBeUndefined();
    // A flag of the line itself stays.
    expect((await refused([...words, '--bwlimit', 'x'], {}, ['bwlimit']))?.message).toContain('--bwlimit');
    // A command after -- has its own options.
    const schedule = ['schedule', '--', ...words];
    expect((await refused(schedule, environment, ['bwlimit']))?.message).toContain('CRYPTODL_BWLIMIT');
  });
});

describe('a line is accepted', () => {
  it.each([
    VISION,
    `${VISION} --help`,
    'metrics --symbols BTCUSDT --dataset openInterestHist --interval 5m',
    'audit --symbols BTCUSDT',
    'list symbols',
    'list datasets',
    'list periods --symbols BTCUSDT',
    'schema klines',
    'schema BVOLIndex',
    'completion bash',
    'doctor',
    `run ${JOBS}`,
    `retry ${REPORT}`,
    'schedule -- vision --symbols BTCUSDT',
    // A lake of any format.
    `vision --out ${LAKE}`,
    `verify --out ${ZIPS}`,
    `coverage --out ${LAKE} --symbols BTCUSDT`,
    // What a lake holds is not known before it is read.
    `verify --out ${LAKE} --dataset openInterestHist`,
    `audit --out ${LAKE} --dataset openInterestHist`,
    // The text of a pipe is not read.
    'vision --symbols -',
    'vision --symbols @/dev/null',
  ])('cryptodl %s', async (line) => {
    expect(await refusalText(line)).toBeUndefined();
  });

  it('with ~ as the home folder', async () => {
    expect(await refusalText('verify --out ~/lake', { HOME: scratch })).toBeUndefined();
    expect(await refusalText('verify --out ~/empty', { HOME: scratch })).toContain('needs a lake');
  });
});

/** The line that is suggested for a mistake; undefined if there is none. */
async function suggested(words: readonly string[]): Promise<string | undefined> {
  const error = await refused(words);
  expect(error?.code).toBe('usage');
  const line = await workingLine(words, error?.correction, (each, without) => refused(each, {}, without));
  return line?.words.join(' ');
}

describe('a suggestion', () => {
  const typed = VISION.split(' ');

  it('has the corrections of all mistakes, and is missing if one has none', async () => {
    const mistakes = [...typed, '--format', 'Parquet', '--interval', 'h1', '--retry-delay', '5'];
    expect(await suggested(mistakes)).toBe(`${VISION} --format parquet --interval 1h --retry-delay 5s`);
    expect(await suggested([...mistakes, '--days', 'all'])).toBeUndefined();
  });

  it('is missing without a correction', async () => {
    expect(await workingLine(typed, undefined, () => Promise.resolve(undefined))).toBeUndefined();
  });

  it('is missing if its correction is refused again and again, or by an error with another command', async () => {
    let asked = 0;
    const flags = { days: '1' };
    const always = (correction: CryptodlError['correction']) => () => {
      asked += 1;
      return Promise.resolve(new CryptodlError('usage', 'x', { correction }));
    };
    expect(await workingLine(typed, { flags }, always({ flags }))).toBeUndefined();
    expect(asked).toBe(8);
    const command = ['vision', '--symbols', 'ETHUSDT'];
    expect(await workingLine(typed, { flags }, always({ command }))).toBeUndefined();
    expect(asked).toBe(9);
    const accepted = await workingLine(typed, { command }, () => Promise.resolve(undefined));
    expect(accepted?.words).toEqual(command);
  });

  it('checks the line without the removed options', async () => {
    const removed: (readonly FlagName[])[] = [];
    const corrections = [{ flags: { months: null, days: '1' } }, { flags: { from: null } }];
    const found = await workingLine([...typed, '--from', 'x'], corrections[0], (_, without) => {
      removed.push(without);
      const correction = corrections[removed.length];
      return Promise.resolve(correction && new CryptodlError('usage', 'x', { correction }));
    });
    expect(removed.map((names) => names.toSorted())).toEqual([['months'], ['from', 'months']]);
    expect(found).toEqual({
      words: [...typed, '--days', '1'],
      flags: { months: null, days: '1', from: null },
    });
  });
});

describe('passwords', () => {
  const PROXY = 'http://me:s3cret@127.0.0.1:8080';

  it.each([
    ['--proxy', PROXY, "--proxy 'http://me:***@127.0.0.1:8080'"],
    ['--archive-url', `${PROXY}/a`, "--archive-url 'http://me:***@127.0.0.1:8080/a'"],
  ])('of %s are masked in a suggested line, and the user stays', (flag, url, shown) => {
    expect(correctedLine(['vision', flag, url], { flags: { days: '1' } })).toBe(
      `cryptodl vision ${shown} --days 1`,
    );
    expect(correctedLine(['vision', `${flag}=${url}`], {})).toContain(':***@');
  });
});

describe('a line for a shell', () => {
  it('quotes each word', () => {
    expect(lineText(['sql', 'SELECT 1', '--out', "it's"])).toBe(
      String.raw`cryptodl sql 'SELECT 1' --out 'it'\''s'`,
    );
  });

  it('repeats words before a command that schedule can repeat, and before no other', () => {
    expect(lineText(['vision'], ['schedule', '--'])).toBe('cryptodl schedule -- vision');
    expect(lineText(['list', 'markets'], ['schedule', '--'])).toBe('cryptodl list markets');
  });
});

describe('a command of another tool', () => {
  it('is a command of freqtrade, ccxt or rclone', () => {
    const commands = ['download-data', 'list-pairs', 'fetchOHLCV', 'fetch_funding_rate_history', 'copy'];
    expect(Object.keys(FOREIGN_VERBS)).toEqual(expect.arrayContaining(commands));
  });

  it.each(Object.entries(FOREIGN_VERBS))('%s means %s', async (word, verb) => {
    const line = await suggested([word, '--market', 'um', '--symbols', 'BTCUSDT']);
    const operands: Readonly<Record<string, string>> = {
      'list-data': 'list datasets',
      'list-pairs': 'list symbols',
      'list-markets': 'list markets',
    };
    expect(line).toBe(`${operands[word] ?? verb} --market um --symbols BTCUSDT`);
  });
});

/** A flag of another tool with a value, and the flags with the same meaning; null if there is no suggestion. */
const FOREIGN: readonly (readonly [given: string, flags: string | null])[] = [
  ['--timerange 20261118-20261119', '--from 2026-11-18 --to 2026-11-19'],
  ['--timerange 20261118-', '--from 2026-11-18'],
  ['--timerange=-20261119', '--to 2026-11-19'],
  ['--timerange -', null],
  ['--timerange 20261332-', null],
  ['--timerange 20261118-20261119x', null],
  ['--timerange x20261118-20261119', null],
  ...['timeframe', 'timeframes'].flatMap((name) => [
    [`--${name} 1h`, '--interval 1h'] as const,
    [`--${name} tick`, '--dataset trades'] as const,
    [`--${name} 2h30`, null] as const,
  ]),
  ['-t 1h', '--interval 1h'],
  ['--since 1794960000000', '--from 2026-11-18'],
  ['--since 2026-11-18', '--from 2026-11-18'],
  ['--since yore', null],
  ['--since 17949600000000', null],
  ['--date 2026-11-18', '--from 2026-11-18 --to 2026-11-18'],
  ['--until 1794960000000', '--to 2026-11-18'],
  ['--trading-mode spot', '--market spot'],
  ['--trading-mode futures', '--market um'],
  ['--trading-mode margin', null],
  ['--data-types aggTrades', '--dataset aggTrades'],
  ['--data-types toString', null],
  ['--dl-trades', '--dataset trades'],
  ...['api-key', 'apikey', 'secret'].map((name) => [`--${name} x`, ''] as const),
  ...['-P', '-O', '-L', '--location', '--continue', '--resume'].map((name) => [name, ''] as const),
  ['--day 7', '--days 7'],
  ['--day 2026-11-18', '--from 2026-11-18 --to 2026-11-18'],
  ['--weeks 2', '--days 14'],
  ['--weeks two', null],
  ['--years 1', '--months 12'],
  ['--no-verify', '--verify none'],
  ['-k', null],
  ['--insecure', null],
  ['--exchange bybit', null],
  ['--exchange constructor', null],
  ['--exchange BinanceUSDM', '--market um'],
];

describe('a flag of another tool', () => {
  it.each(FOREIGN)('%s means %j', async (given, flags) => {
    const line = await suggested(['vision', '--symbols', 'BTCUSDT', ...given.split(' ')]);
    const shown = flags === '' ? VISION : `${VISION} ${flags ?? ''}`;
    expect(line).toBe(flags === null ? undefined : shown);
  });

  it('stands in the list above', () => {
    const names = FOREIGN.map(([given]) => given.split(/[ =]/)[0]?.replace(/^-+/, ''));
    expect(new Set(names)).toEqual(new Set(Object.keys(FOREIGN_FLAGS)));
  });

  it('keeps the words after a switch, and the value after =', async () => {
    expect(await suggested(['vision', '--resume', 'BTCUSDT'])).toBe(VISION);
    expect(await suggested(['vision', '--timeframe=1h', 'BTCUSDT'])).toBe(
      'vision --interval 1h --symbols BTCUSDT',
    );
  });

  it.each([
    ['--resume', 'a run continues where the last one ended'],
    ['-k', 'certificates are always checked'],
    ['--exchange bybit', 'only Binance'],
    ['--timeframe 1h', 'did you mean --interval?'],
  ])('%s is explained: %s', async (given, hint) => {
    expect((await refused(['vision', '--symbols', 'BTCUSDT', ...given.split(' ')]))?.hint).toContain(hint);
  });

  it('is no suggestion if the command lacks a flag with its meaning', async () => {
    expect(await suggested(['doctor', '--timeframe', '1h'])).toBeUndefined();
  });

  it.each(Object.entries(EXCHANGES))('--exchange %s names the market %j', async (name, { market }) => {
    const days = ['--from', '2023-10-17', '--to', '2023-10-18'];
    const of = market === 'option' ? ['--dataset', 'EOHSummary', ...days] : [];
    const words = ['vision', '--symbols', 'BTCUSDT', ...of];
    const line = await suggested([...words, '--exchange', name]);
    expect(line).toBe([...words, ...(market === undefined ? [] : ['--market', market])].join(' '));
  });

  it.each(Object.entries(DATA_TYPES))('--data-types %s means %j', async (name, { dataset = '' }) => {
    const days = ['--from', '2024-03-29', '--to', '2024-03-30'];
    const line = await suggested(['vision', '--symbols', 'BTCUSDT', '--data-types', name, ...days]);
    expect(line).toBe(`${VISION} --dataset ${dataset} ${days.join(' ')}`);
  });
});
