/** The shape of a row of the table of verbs, texts about exit codes, and the verbs that work on a lake and download nothing by themselves, and repair. */
import type { Verb } from '../options/flag-spec.js';

/** A row of the table. */
export interface VerbText {
  /** The operand as help shows it; in brackets if optional. */
  readonly operand?: string;
  /** The words after `--`, as help shows them. */
  readonly behind?: string;
  /** The accepted values of the operand, if they are a list. */
  readonly choices?: readonly string[];
  /** `--help` shows the part before the first semicolon. */
  readonly doc: string;
  /** The exit codes except for those of signals. `--help` shows the part before the first semicolon. */
  readonly exits: ExitTexts;
  readonly examples: readonly string[];
  /** Other names that work. Help does not show them. */
  readonly aka: readonly string[];
}

export type ExitTexts = Readonly<Partial<Record<0 | 1 | 2 | 3 | 4 | 5 | 6 | 7, string>>>;

export const BASE_EXITS = {
  0: 'done',
  1: 'fatal; for example a full disk',
  2: 'usage; a wrong flag, value or file',
} as const satisfies ExitTexts;
export const LIMIT_EXIT = 'limit; a ban or a rate limit lasts longer than --max-wait';
export const LOCK_EXIT = 'locked; another run holds the lock of the lake';
export const RUN_EXITS = {
  ...BASE_EXITS,
  3: 'try later; cryptodl retry requests the objects of the failure report again',
  4: 'failed; a retry does not help; with --strict also for series that lack data',
  5: 'nothing new; with --error-on-nothing',
  6: LOCK_EXIT,
  7: LIMIT_EXIT,
} as const satisfies ExitTexts;

/** With `--wait`, `enqueue` ends with the code of the download. */
export const QUEUE_EXITS = {
  ...BASE_EXITS,
  3: 'try later; no connection to the Redis server, or with --wait: a job failed for now',
  4: 'failed; with --wait: a retry does not help; with --strict also for series that lack data',
  7: LIMIT_EXIT,
} as const satisfies ExitTexts;

/** The programs of export. */
const EXPORTS = ['freqtrade', 'tardis', 'lean', 'csv', 'nautilus-loader'] as const;

export const LAKE_VERB_TEXTS = {
  verify: {
    doc: 'compare the files of the lake with its manifests; also finds foreign files and leftovers of killed runs',
    exits: { ...BASE_EXITS, 0: 'no finding', 4: 'findings', 6: LOCK_EXIT, 7: LIMIT_EXIT },
    examples: [
      'cryptodl verify',
      'cryptodl verify --deep -m um --dataset klines --json',
      'cryptodl verify --fix',
    ],
    aka: ['fsck', 'validate'],
  },
  repair: {
    doc: 'fetch damaged and missing data again; covers the first to the last day of each series in the lake',
    exits: RUN_EXITS,
    examples: ['cryptodl repair', 'cryptodl repair -n', 'cryptodl repair --dataset klines -s BTCUSDT --deep'],
    aka: ['fix', 'heal'],
  },
  remove: {
    doc: 'drop series with their data, or orders; series leave their orders too; without --yes, print what would go',
    exits: { ...BASE_EXITS, 6: LOCK_EXIT },
    examples: [
      'cryptodl remove -s LUNAUSDT',
      'cryptodl remove -m um --dataset klines -i 1m -s BTCUSDT --yes',
      'cryptodl remove --order 0123456789abcdef --yes',
    ],
    aka: ['rm', 'delete', 'drop', 'forget', 'purge'],
  },
  audit: {
    doc: 'compare monthly and daily objects of the same days; also checks the ids and columns of both; with --against rest, compare the bars of the lake with REST',
    exits: {
      ...BASE_EXITS,
      0: 'no finding',
      3: 'try later; the network or the archive failed',
      4: 'findings',
      6: LOCK_EXIT,
      7: LIMIT_EXIT,
    },
    examples: [
      'cryptodl audit -s BTCUSDT -i 1h --from 2024-01-01 --to 2024-03-31',
      "cryptodl audit -m spot --dataset aggTrades -s '*BTC' --months 1 --json",
      'cryptodl audit --prefer daily',
      'cryptodl audit --against rest --sample 5',
    ],
    aka: ['check-archive'],
  },
  sql: {
    operand: '[query]',
    doc: 'query the lake in SQL; a query is one SELECT over views like um_klines, given as text, as @FILE, or as - for stdin',
    exits: { ...BASE_EXITS, 1: 'fatal; for example a damaged file of the lake' },
    examples: [
      "cryptodl sql 'SHOW TABLES'",
      "cryptodl sql 'SELECT symbol, max(high) FROM um_klines GROUP BY symbol'",
      'cryptodl sql --views > views.sql',
    ],
    aka: ['query'],
  },
  check: {
    doc: 'say whether the lake has what was ordered; compares the orders of all runs with the lake, up to the last day that must be published by now, without the network',
    exits: {
      ...BASE_EXITS,
      0: 'complete',
      2: 'usage; for example a lake without an order',
      3: 'behind or incomplete; a run may mend it',
      4: 'incomplete; what is missing was asked for and cannot be had',
    },
    examples: ['cryptodl check', 'cryptodl check --out /srv/lake --quiet', 'cryptodl check --json'],
    aka: ['verdict', 'complete'],
  },
  coverage: {
    doc: 'compare the rows of the lake with the expected rows; prints a heat-map, a table, and each gap with its reason',
    exits: { ...BASE_EXITS, 4: 'below --min; at least one series has less' },
    examples: [
      'cryptodl coverage',
      "cryptodl coverage -m um --dataset klines -s '*USDT' --months 6",
      'cryptodl coverage -d 30 --min 99.9 --json',
    ],
    aka: ['gaps', 'missing', 'holes', 'completeness'],
  },
  runs: {
    doc: 'list the newest runs of the lake; with outcomes, retry rate, latency and exit code, and trends of the newest run',
    exits: { ...BASE_EXITS, 2: 'usage; for example a lake without a record of a run' },
    examples: ['cryptodl runs', 'cryptodl runs --out /srv/lake --last 5', 'cryptodl runs --json'],
    aka: ['history', 'log', 'logs'],
  },
  report: {
    doc: 'write one HTML file about the lake and its last run; it has charts, failures, gaps and a heat-map, and needs no network',
    exits: BASE_EXITS,
    examples: [
      'cryptodl report',
      'cryptodl report -o /srv/lake --html /srv/www/lake.html',
      "cryptodl report -m um --dataset klines -s '*USDT' --months 6",
    ],
    aka: ['page', 'dashboard'],
  },
  plot: {
    operand: '[symbol]',
    doc: 'draw candles and volume of a symbol, or a column of a dataset, from the lake; on the terminal, or as an HTML file',
    exits: { ...BASE_EXITS, 2: 'usage; for example a symbol that the lake does not have' },
    examples: [
      'cryptodl plot BTCUSDT',
      'cryptodl plot BTCUSDT -i 1h -d 30',
      'cryptodl plot BTCUSDT --column last_funding_rate --html funding.html',
    ],
    aka: ['chart', 'graph', 'draw'],
  },
  export: {
    operand: '[program]',
    choices: EXPORTS,
    doc: 'write the lake for freqtrade, tardis, lean, csv or nautilus-loader; for nautilus-loader, print a Python script; files that are up to date stay',
    exits: {
      ...BASE_EXITS,
      3: 'try later; files of the lake changed during the export',
      4: 'not exported; a file that export did not write, a file of the lake that cannot be read, or with --require-complete: data that the lake lacks',
      6: 'locked; another export writes to the folder',
    },
    examples: [
      'cryptodl export freqtrade --target user_data/data/binance -s BTCUSDT,ETHUSDT',
      'cryptodl export tardis --target tardis -s BTCUSDT -d 7',
      'cryptodl export csv --target csv -i 1h --columns date=open_time,close',
      'cryptodl export nautilus-loader -m um -i 1m -s BTCUSDT > load_nautilus.py',
    ],
    aka: ['convert'],
  },
  universe: {
    doc: 'print the most traded symbols of each period; it ranks them by the klines of the lake, and a period has only what was known before it began',
    exits: {
      ...BASE_EXITS,
      2: 'usage; for example a lake without klines',
      3: 'try later; with --fetch: some objects failed for now',
      4: 'data of a selected symbol cannot be read; with --fetch: some objects failed, and a retry does not help',
      6: LOCK_EXIT,
      7: LIMIT_EXIT,
    },
    examples: [
      'cryptodl universe --quote USDT --top 50 --from 2023-01 > universe.csv',
      'cryptodl universe -m spot --quote USDT --every week --window 7d --as list',
      'cryptodl universe --top 9 --from 2023-01 --fetch --as freqtrade --target lists',
    ],
    aka: ['constituents', 'members', 'pairlist', 'pairlists'],
  },
  bars: {
    operand: '<bar>',
    doc: 'make bars of any length from rows of the lake; of klines, aggTrades or trades, into the lake; 15m, 7m, 2h, 3d or 1w, or bars by trades: tick:500, volume:1000, dollar:1000000',
    exits: {
      ...BASE_EXITS,
      4: 'not made; a symbol has no source, a file of its source is missing or damaged',
      6: LOCK_EXIT,
    },
    examples: [
      "cryptodl bars 15m -s '*USDT'",
      'cryptodl bars 4h -s BTCUSDT,ETHUSDT --dry-run',
      'cryptodl bars volume:1000 --dataset aggTrades -s BTCUSDT',
    ],
    aka: ['resample', 'aggregate'],
  },
} as const satisfies Partial<Record<Verb, VerbText>>;
