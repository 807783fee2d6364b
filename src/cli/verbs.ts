/** The table of verbs: operand, description, examples. Help, completion and hints are made from it. */
import type { Verb } from '../options/flag-spec.js';

/** A row of the table. */
export interface VerbText {
  /** The operand as help shows it; in brackets if optional. */
  readonly operand?: string;
  /** The words after `--`, as help shows them. */
  readonly behind?: string;
  /** The accepted values of the operand, if they are a list. */
  readonly choices?: readonly string[];
  readonly doc: string;
  readonly examples: readonly string[];
  /** Other names of the verb, only for hints. */
  readonly aka: readonly string[];
}

export const LISTS = ['markets', 'datasets', 'symbols', 'periods'] as const;
export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export const VERB_TEXTS: Readonly<Record<Verb, VerbText>> = {
  vision: {
    doc: 'download from the Binance Vision archive into the lake',
    examples: [
      'cryptodl vision --symbols BTCUSDT,ETHUSDT --days 7',
      "cryptodl vision --market spot --interval 1m,1h --symbols '*USDT,!USDCUSDT' --from 2024-01-01 --to 2024-03-31",
      'cryptodl vision --dataset metrics,fundingRate --symbols @universe.txt --months 6 --format csv',
    ],
    aka: ['download', 'fetch', 'get', 'pull', 'sync', 'klines', 'binance', 'update'],
  },
  metrics: {
    doc: 'download funding rates, open interest, long/short ratios, taker volume and basis over REST into the lake',
    examples: [
      'cryptodl metrics --symbols BTCUSDT,ETHUSDT --days 29',
      'cryptodl metrics --market cm --symbols BTCUSD_PERP --dataset fundingRate,openInterestHist --interval 1h --days 7',
      "cryptodl metrics --symbols '*USDT' --dataset fundingRate --days 365 --priority high",
    ],
    aka: ['funding', 'rest', 'api', 'openinterest', 'oi', 'ratios', 'fapi'],
  },
  run: {
    operand: '<file>',
    doc: 'run the jobs of a file, one after the other or side by side (--jobs): one report, one exit code',
    examples: [
      'cryptodl run config/jobs.example.yaml',
      'cryptodl run config/jobs.example.yaml --only bars,funding --dry-run',
      'cryptodl run config/jobs.example.yaml --jobs 3',
    ],
    aka: ['jobs', 'job', 'batch', 'all'],
  },
  retry: {
    operand: '<report>',
    doc: 'download the objects of a failure report again; those that succeed are removed from the report',
    examples: ['cryptodl retry data/failures/vision-20261121T070000Z.jsonl'],
    aka: ['resume', 'repeat'],
  },
  schedule: {
    behind: 'COMMAND [flags]',
    doc: 'print a crontab line and a systemd timer that run a command every day or every few hours',
    examples: [
      'cryptodl schedule -- vision --symbols BTCUSDT,ETHUSDT --days 7',
      'cryptodl schedule --at 09:30 --kind cron -- run jobs.yaml',
      'cryptodl schedule --every 6h --kind systemd -- metrics --symbols @universe.txt --days 7 --out /srv/lake',
    ],
    aka: ['cron', 'crontab', 'timer', 'systemd', 'daemon'],
  },
  verify: {
    doc: 'compare the files of the lake with its manifests, and find foreign files and leftovers of killed runs; exit code 4 with a finding',
    examples: [
      'cryptodl verify',
      'cryptodl verify --deep --market um --dataset klines --json',
      'cryptodl verify --fix',
    ],
    aka: ['check', 'fsck', 'validate', 'test', 'integrity'],
  },
  repair: {
    doc: 'fetch damaged and missing data again, from the first to the last day of each series in the lake',
    examples: [
      'cryptodl repair',
      'cryptodl repair --dry-run',
      'cryptodl repair --dataset klines --symbols BTCUSDT',
    ],
    aka: ['fix', 'heal', 'fill', 'backfill'],
  },
  list: {
    operand: '[what]',
    choices: LISTS,
    doc: 'list markets, datasets, symbols or periods, one per line',
    examples: [
      'cryptodl list datasets --market um',
      'cryptodl list symbols --market um --dataset klines --quote USDT',
      'cryptodl list periods --market um --dataset bookTicker --symbols BTCUSDT',
    ],
    aka: ['ls', 'show', 'symbols', 'datasets', 'search'],
  },
  schema: {
    operand: '[dataset]',
    doc: 'print the columns of a dataset with types, units and meaning, and the quirks of its files',
    examples: ['cryptodl schema metrics --market um', 'cryptodl schema klines --market cm --json'],
    aka: ['columns', 'describe', 'fields', 'docs'],
  },
  audit: {
    doc: 'compare monthly objects with the daily objects of the same days, and check both; exit code 4 with a finding',
    examples: [
      'cryptodl audit --symbols BTCUSDT --interval 1h --from 2024-01-01 --to 2024-03-31',
      "cryptodl audit --market spot --dataset aggTrades --symbols '*BTC' --months 1 --json",
      'cryptodl audit --prefer daily',
    ],
    aka: ['compare', 'check-archive', 'diff'],
  },
  sql: {
    operand: '[query]',
    doc: 'query the lake in SQL: one SELECT over views like um_klines, given as text, as @FILE, or as - for stdin',
    examples: [
      "cryptodl sql 'SHOW TABLES'",
      "cryptodl sql 'SELECT symbol, max(high) AS high FROM um_klines GROUP BY symbol'",
      'cryptodl sql --views > views.sql',
    ],
    aka: ['query', 'select', 'duckdb', 'ask'],
  },
  coverage: {
    doc: 'compare the row counts in the manifests of the lake with the expected ones: a heat-map, a table, and each gap with its reason',
    examples: [
      'cryptodl coverage',
      "cryptodl coverage --market um --dataset klines --symbols '*USDT' --months 6",
      'cryptodl coverage --days 30 --min 99.9 --json',
    ],
    aka: ['gaps', 'missing', 'holes', 'heatmap', 'status', 'stats', 'completeness'],
  },
  serve: {
    operand: '<directory>',
    doc: 'serve a folder of downloaded zips (--format zip) over HTTP, as the archive does',
    examples: [
      'cryptodl serve ./raw --port 8090',
      'cryptodl vision --archive-url http://127.0.0.1:8090 --symbols BTCUSDT --days 7',
    ],
    aka: ['server', 'mirror'],
  },
  doctor: {
    doc: 'check versions, memory, open files, request settings, host names, proxy, TLS, hosts, clock, disks, bans and lock, one line each; exit code 1 if a check fails',
    examples: [
      'cryptodl doctor',
      'cryptodl doctor --out /srv/lake --quiet',
      'cryptodl doctor --concurrency 200 --pool-limit 50',
      'cryptodl doctor --proxy http://127.0.0.1:3128 --json',
      'cryptodl doctor --clear-bans fapi.binance.com',
    ],
    aka: ['diagnose', 'diagnostics', 'health', 'healthcheck', 'selftest', 'ping'],
  },
  completion: {
    operand: '[shell]',
    choices: SHELLS,
    doc: 'print a completion script for bash, zsh or fish',
    examples: [
      'cryptodl completion bash > ~/.local/share/bash-completion/completions/cryptodl',
      'cryptodl completion zsh > "${fpath[1]}/_cryptodl"',
      'cryptodl completion fish > ~/.config/fish/completions/cryptodl.fish',
    ],
    aka: ['completions', 'complete', 'autocomplete'],
  },
};
