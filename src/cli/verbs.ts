/** The table of verbs: operand, description, examples, exit codes. Help, completion and hints are made from it. */
import type { Verb } from '../plan/options/flag-spec.js';
import { LISTS } from '../plan/options/periods.js';

/** A row of the table. */
interface VerbText {
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
  /** Other names that work, of one word or two. Help does not show them. */
  readonly aka: readonly string[];
}

export type ExitTexts = Readonly<Partial<Record<0 | 1 | 2 | 3 | 4 | 5 | 6 | 7, string>>>;

const BASE_EXITS = {
  0: 'done',
  1: 'fatal; for example a full disk',
  2: 'usage; a wrong flag, value or file',
} as const satisfies ExitTexts;
const LIMIT_EXIT = 'limit; a ban or a rate limit lasts longer than --max-wait';
const LOCK_EXIT = 'locked; another run holds the lock of the lake';
export const RUN_EXITS = {
  ...BASE_EXITS,
  3: 'try later; cryptodl retry requests the objects of the failure report again',
  4: 'failed; a retry does not help; with --strict also for series that lack data',
  5: 'nothing new; with --error-on-nothing',
  6: LOCK_EXIT,
  7: LIMIT_EXIT,
} as const satisfies ExitTexts;

/** With `--wait`, `enqueue` ends with the code of the download. */
const QUEUE_EXITS = {
  ...BASE_EXITS,
  3: 'try later; no connection to the Redis server, or with --wait: a job failed for now',
  4: 'failed; with --wait: a retry does not help; with --strict also for series that lack data',
  7: LIMIT_EXIT,
} as const satisfies ExitTexts;

/** The programs of export. */
const EXPORTS = ['freqtrade', 'tardis', 'lean', 'csv', 'nautilus-loader'] as const;

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export const VERB_TEXTS: Readonly<Record<Verb, VerbText>> = {
  vision: {
    doc: 'download from the Binance Vision archive into the lake',
    exits: RUN_EXITS,
    examples: [
      'cryptodl vision -s BTCUSDT,ETHUSDT -d 7',
      "cryptodl vision -m spot -i 1m,1h -s '*USDT' --from 2024-01-01 --to 2024-03-31",
      'cryptodl vision --dataset metrics -s @universe.txt --months 6 -f csv',
    ],
    aka: ['download', 'fetch', 'get', 'sync', 'klines', 'ohlcv', 'copy', 'download-data', 'fetch-ohlcv'],
  },
  metrics: {
    doc: 'download funding rates, open interest, ratios and basis over REST into the lake; REST has them for USD-margined and coin-margined futures',
    exits: RUN_EXITS,
    examples: [
      'cryptodl metrics -s BTCUSDT,ETHUSDT -d 29',
      'cryptodl metrics -m cm -s BTCUSD_PERP --dataset openInterestHist -i 1h -d 7',
      "cryptodl metrics -s '*USDT' --dataset fundingRate -d 365 --priority high",
    ],
    aka: ['rest'],
  },
  run: {
    operand: '<file>',
    doc: 'run the jobs of a file; jobs run one after the other or at the same time (--jobs), with one report and one exit code',
    exits: { ...RUN_EXITS, 5: 'nothing new; with error-on-nothing in a job' },
    examples: [
      'cryptodl run jobs.yaml',
      'cryptodl run jobs.yaml --only bars,funding -n',
      'cryptodl run jobs.yaml --jobs 3',
    ],
    aka: ['jobs', 'job', 'batch'],
  },
  retry: {
    operand: '[report]',
    doc: 'download the failed objects of a failure report, by default the newest of the lake; the report keeps the objects that failed again, and is removed without one; with --redis: put the failed jobs of a queue back',
    exits: RUN_EXITS,
    examples: [
      'cryptodl retry data/_failures/vision-20261121T070000000Z-1f0c22aa.jsonl',
      'cryptodl retry -o /srv/lake -n',
      'cryptodl retry report.jsonl --concurrency 4 --retries 10',
      'cryptodl retry --redis redis://queue --codes http-server-error',
    ],
    aka: ['repeat', 'queue retry'],
  },
  schedule: {
    behind: 'COMMAND [flags]',
    doc: 'print a crontab line and a systemd timer for a command; they run it every day or every few hours',
    exits: { 0: 'done', 2: BASE_EXITS[2] },
    examples: [
      'cryptodl schedule -- vision -s BTCUSDT,ETHUSDT -d 7',
      'cryptodl schedule --at 09:30 --kind cron -- run jobs.yaml',
      'cryptodl schedule --every 6h -- metrics -s @universe.txt -d 7 -o /srv/lake',
    ],
    aka: ['cron', 'crontab', 'timer'],
  },
  list: {
    operand: '[what]',
    choices: LISTS,
    doc: 'list markets, datasets, symbols or periods, one per line',
    exits: { ...BASE_EXITS, 7: LIMIT_EXIT },
    examples: [
      'cryptodl list datasets -m um',
      'cryptodl list symbols -m um --dataset klines --quote USDT',
      'cryptodl list periods -m um --dataset bookTicker -s BTCUSDT',
    ],
    aka: ['ls', 'show'],
  },
  schema: {
    operand: '[dataset]',
    doc: 'print the columns of a dataset; with types, units and meaning, and the quirks of its files',
    exits: { 0: 'done', 2: BASE_EXITS[2] },
    examples: [
      'cryptodl schema klines',
      'cryptodl schema metrics -m um',
      'cryptodl schema klines -m cm --json',
    ],
    aka: ['columns', 'describe', 'fields'],
  },
  serve: {
    operand: '<directory>',
    doc: 'serve a folder of downloaded zips inside your organisation; uses HTTP and the protocol of the archive',
    exits: BASE_EXITS,
    examples: [
      'cryptodl serve ./raw --port 8090',
      'cryptodl vision -s BTCUSDT -d 7 -f zip -o ./raw',
      'cryptodl vision -s BTCUSDT -d 7 --archive-url http://127.0.0.1:8090',
    ],
    aka: ['server'],
  },
  doctor: {
    doc: 'check this machine, the network and the lake; prints one line each for versions, memory, open files, hosts, clock, disks, lock and bans',
    exits: { 0: 'no problem', 1: 'a check failed', 2: BASE_EXITS[2] },
    examples: [
      'cryptodl doctor',
      'cryptodl doctor -o /srv/lake -q',
      'cryptodl doctor --clear-bans fapi.binance.com',
      'cryptodl doctor --proxy http://127.0.0.1:3128 --json',
    ],
    aka: ['diagnose', 'diagnostics', 'health', 'healthcheck', 'selftest'],
  },
  enqueue: {
    operand: '<verb>',
    choices: ['vision', 'metrics'],
    doc: 'put a download into a queue on a Redis server; cryptodl worker does its jobs; enqueuing the same again adds no job twice',
    exits: QUEUE_EXITS,
    examples: [
      'cryptodl enqueue vision -s all --months 60 --redis redis://queue -o s3://lake',
      'cryptodl enqueue vision -s BTCUSDT -d 7 --redis redis://queue --wait',
      'cryptodl schedule -- enqueue vision -s all -d 3 --redis redis://queue',
    ],
    aka: ['submit', 'queue add'],
  },
  worker: {
    doc: 'do the jobs of a queue, on as many machines as you like; a job of a worker that was killed goes to another worker',
    exits: { ...BASE_EXITS, 3: 'try later; no connection to the Redis server', 6: LOCK_EXIT },
    examples: [
      'cryptodl worker --redis redis://queue',
      'cryptodl worker --redis redis://queue --drain --jobs 16',
      'cryptodl worker --redis redis://queue -o /srv/lake',
    ],
    aka: ['workers', 'queue work'],
  },
  status: {
    doc: 'print the state of a queue; with waiting, active and failed jobs, jobs per minute, workers, failures by code',
    exits: { ...BASE_EXITS, 3: 'try later; no connection to the Redis server' },
    examples: [
      'cryptodl status --redis redis://queue',
      'cryptodl status --queue history',
      'cryptodl status --json',
    ],
    aka: ['backlog', 'queue', 'queue status'],
  },
  completion: {
    operand: '[shell]',
    choices: SHELLS,
    doc: 'print a completion script for bash, zsh or fish',
    exits: { 0: 'done', 2: BASE_EXITS[2] },
    examples: [
      'cryptodl completion bash > ~/.local/share/bash-completion/completions/cryptodl',
      'cryptodl completion zsh > "${fpath[1]}/_cryptodl"',
      'cryptodl completion fish > ~/.config/fish/completions/cryptodl.fish',
    ],
    aka: ['completions'],
  },
  man: {
    doc: 'print the man page cryptodl(1); it has all commands and flags',
    exits: { 0: 'done', 2: BASE_EXITS[2] },
    examples: [
      'cryptodl man | man -l -',
      'cryptodl man > ~/.local/share/man/man1/cryptodl.1',
      'cryptodl man | groff -man -Tpdf > cryptodl.pdf',
    ],
    aka: ['manual', 'manpage'],
  },
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
    doc: 'list the newest runs of the lake; with outcomes, retry rate, latency and exit code',
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
    exits: { ...BASE_EXITS, 2: 'usage; for example a lake without klines' },
    examples: [
      'cryptodl universe --quote USDT --top 50 --from 2023-01 > universe.csv',
      'cryptodl universe -m spot --quote USDT --every week --window 7d --as list',
      'cryptodl universe --top 9 --from 2023-01 --as freqtrade --target lists',
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
};
