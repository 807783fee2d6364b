/** The table of verbs: operand, description, examples, exit codes. Help, completion and hints are made from it. */
import type { Verb } from '../options/flag-spec.js';
import { LISTS } from '../options/periods.js';
import { LAKE_VERB_TEXTS, BASE_EXITS, LIMIT_EXIT, LOCK_EXIT, QUEUE_EXITS, RUN_EXITS } from './lake-verbs.js';
import type { VerbText } from './lake-verbs.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export const VERB_TEXTS: Readonly<Record<Verb, VerbText>> = {
  ...LAKE_VERB_TEXTS,
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
    aka: ['repeat'],
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
    aka: ['submit'],
  },
  worker: {
    doc: 'do the jobs of a queue, on as many machines as you like; a job of a worker that was killed goes to another worker',
    exits: { ...BASE_EXITS, 3: 'try later; no connection to the Redis server', 6: LOCK_EXIT },
    examples: [
      'cryptodl worker --redis redis://queue',
      'cryptodl worker --redis redis://queue --drain --jobs 16',
      'cryptodl worker --redis redis://queue -o /srv/lake',
    ],
    aka: ['workers'],
  },
  status: {
    doc: 'print the state of a queue; with waiting, active and failed jobs, jobs per minute, workers, failures by code',
    exits: { ...BASE_EXITS, 3: 'try later; no connection to the Redis server' },
    examples: [
      'cryptodl status --redis redis://queue',
      'cryptodl status --queue history',
      'cryptodl status --json',
    ],
    aka: ['backlog'],
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
};
