/** What a new user types, and words of other tools: lines that work, and lines that are refused with a message and a hint. */
import { VERBS } from '../../src/main.js';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseCommandLine } from '../../src/cli/program.js';
import { cryptodl, cryptodlOk } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const NOW = '2026-11-21T12:00:00Z';
const scene = useScene({
  now: NOW,
  archive: ['1m', '1h'].map((interval) => ({
    from: '2026-11-14',
    to: '2026-11-20',
    interval,
    symbols: ['BTCUSDT', 'ETHUSDT', '1000SHIBUSDT'],
  })),
});

/** The address of the archive and the time. A user has neither in the command line. */
function environment(): Record<string, string> {
  return { CRYPTODL_ARCHIVE_URL: scene.archive.url, CRYPTODL_NOW: NOW, CRYPTODL_PROGRESS: 'none' };
}

/** Lines that mean the same as a line in the usual form. */
const WORKS: readonly (readonly [typed: string, line: string])[] = [
  ['download --symbols BTCUSDT', 'vision --symbols BTCUSDT'],
  ['vision BTCUSDT ETHUSDT', 'vision --symbols BTCUSDT,ETHUSDT'],
  [
    'vision --symbols BTCUSDT --start 2026-11-18 --end 2026-11-19',
    'vision --symbols BTCUSDT --from 2026-11-18 --to 2026-11-19',
  ],
  ['vision --symbols BTCUSDT --timeframe=1h', 'vision --symbols BTCUSDT --interval 1h'],
  ['vision --symbols BTCUSDT ETHUSDT --days 1', 'vision --symbols BTCUSDT,ETHUSDT --days 1'],
  ['vision --symbols BTCUSDT, ETHUSDT', 'vision --symbols BTCUSDT,ETHUSDT'],
  ['vision --symbols BTCUSDT --csv', 'vision --symbols BTCUSDT --format csv'],
  ['audit BTCUSDT -i 1h --days 2', 'audit --interval 1h --days 2 --symbols BTCUSDT'],
  ['vision --symbols BTCUSDT -t 1h', 'vision --symbols BTCUSDT --interval 1h'],
  ['vision --symbols BTCUSDT --datadir lake', 'vision --symbols BTCUSDT --out lake'],
  ['vision --symbols BTCUSDT --transfers 16', 'vision --symbols BTCUSDT --concurrency 16'],
  [
    'vision -s BTCUSDT --from-date 2026-11-18 --to-date 2026-11-19',
    'vision --symbols BTCUSDT --from 2026-11-18 --to 2026-11-19',
  ],
  [
    'vision -s BTCUSDT --since 2026-11-18 --until 2026-11-19',
    'vision --symbols BTCUSDT --from 2026-11-18 --to 2026-11-19',
  ],
  [
    'download-data --pairs BTC/USDT ETH/USDT --timeframes 1m,1h --days 7',
    'vision --symbols BTC/USDT,ETH/USDT --interval 1m,1h --days 7',
  ],
  [
    'vision --instrument BTCUSDT --date-from 2026-11-18 --date-to 2026-11-19',
    'vision --symbols BTCUSDT --from 2026-11-18 --to 2026-11-19',
  ],
  ['copy BTCUSDT ./lake', 'vision --symbols BTCUSDT --out ./lake'],
  ['vision BTCUSDT --max-transfer 10G', 'vision --symbols BTCUSDT --max-bytes 10G'],
  ['vision BTCUSDT --limit-rate 200k', 'vision --symbols BTCUSDT --bwlimit 200k'],
  [
    'export freqtrade ./user_data BTCUSDT -i 1h',
    'export freqtrade --target ./user_data --symbols BTCUSDT --interval 1h',
  ],
  ['plot BTCUSDT chart.html', 'plot BTCUSDT --html chart.html'],
  ['bars 15m BTCUSDT', 'bars 15m --symbols BTCUSDT'],
  ['verify --symbol BTCUSDT', 'verify --symbols BTCUSDT'],
  ['queue add vision BTCUSDT', 'enqueue vision --symbols BTCUSDT'],
  ['queue --redis redis://queue', 'status --redis redis://queue'],
  ['vision BTCUSDT --out a --outdir b -i 1h --timeframe 1m', 'vision BTCUSDT --out a --out b -i 1h -i 1m'],
];

function parsed(line: string): unknown {
  const { values = {}, ...rest } = parseCommandLine(line.split(' '), VERBS, { write: () => true }) ?? {};
  return {
    ...rest,
    values: Object.fromEntries(
      Object.entries(values).map(([name, all]) => [
        name,
        all.map((text) => text.replace(/,$/, '')).join(','),
      ]),
    ),
  };
}

describe('works', () => {
  it.each(WORKS)('cryptodl %s', (typed, line) => {
    expect(parsed(typed)).toEqual(parsed(line));
  });
});

/** Lines that cannot mean one thing only. */
const REFUSED: readonly (readonly [typed: string, message: string, hint: string])[] = [
  ['', 'no command given', 'for example: cryptodl vision -s BTCUSDT -d 1'],
  ['run --symbols BTCUSDT', 'run has no flag --symbols', 'see cryptodl run --help'],
  ['vision --days', '--days needs a value', 'see cryptodl vision --help'],
  [
    'retry',
    'data/_failures has no failure report',
    'a run with failures writes its report to _failures of the lake: cryptodl retry data/_failures/NAME.jsonl',
  ],
  ['vision --symbols BTCUSDT --dry', 'vision has no flag --dry', 'did you mean --dry-run?'],
  [
    'vision --symbols * --quote USD',
    '--symbols * with --quote USD matches none of the 3 symbols of um klines',
    'for example 1000SHIBUSDT, BTCUSDT, ETHUSDT',
  ],
  ['vision --symbols BTCUSDT --foo 1 --days 1', 'vision has no flag --foo', 'see cryptodl vision --help'],
  [
    'list datasets extra',
    'list takes one argument: "extra" is one too many',
    'for example: cryptodl list datasets -m um',
  ],
  ['sql', 'sql needs a query', 'give the query as text, @FILE for a file, or - for stdin'],
  ['schedule -- verify --at=09:30 --deep', 'verify has no flag --at', 'see cryptodl verify --help'],
  ['visoin -s BTCUSDT', '"visoin" is not a command', 'did you mean vision?'],
];

describe('is refused', () => {
  it.each(REFUSED)('cryptodl %s', async (typed, message, hint) => {
    const cwd = scene.newFolder();
    const words = typed === '' ? [] : typed.split(' ');
    const { code, stdout, stderr } = await cryptodl(words, { cwd, env: environment() });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr.startsWith(`cryptodl: ${message}\n`) ? message : stderr).toBe(message);
    expect(stderr).toContain(`\n  ${hint}\n`);
  });
});

it.each([
  ['vision BTCUSDT ETHUSDT --days 1 --timeframe 1h', 2],
  ['sync BTCUSDT --granularity 1h --start 2026-11-18', 1],
])('cryptodl %s writes the data', async (typed, files) => {
  const cwd = scene.newFolder();
  await cryptodlOk(typed.split(' '), { cwd, env: environment() });
  expect(filesBelow(join(cwd, 'data'), '.parquet')).toHaveLength(files);
});

it('a folder without a flag is the lake of verbs that read it', async () => {
  const cwd = scene.newFolder();
  const env = environment();
  await cryptodlOk(['vision', 'BTCUSDT', '-i', '1h', '-d', '1', './lake2'], { cwd, env });
  const lines = [
    'verify ./lake2',
    'repair ./lake2',
    'coverage ./lake2',
    'runs ./lake2',
    'verify ./lake2 BTCUSDT',
  ];
  const codes: unknown[] = [];
  for (const line of lines) codes.push((await cryptodl(line.split(' '), { cwd, env })).code);
  expect(codes).toEqual([0, 0, 0, 0, 0]);
});

it('an address with a secret is not printed', async () => {
  const { stderr } = await cryptodl(['verify', '--alert-webhook', 'https://hooks.test/secret', 'x']);
  expect(stderr).not.toContain('secret');
});

/** Mistakes in files and on stdin. The advice is a change there, because no other command line helps. */
const ELSEWHERE: readonly {
  readonly typed: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly says: string;
}[] = [
  {
    typed: 'vision --config c.yaml',
    files: { 'c.yaml': 'symbols: BTCUSDT\nformat: parket\n' },
    says:
      'c.yaml: format: "parket" is not one of parquet, csv, zip\n' +
      '  did you mean parquet?\n  write the line "format: parquet" in c.yaml\n',
  },
  {
    typed: 'sql q.sql',
    files: { 'q.sql': 'SELECT 1' },
    says: 'sql: q.sql is a file\n  @ reads the query from a file\n',
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
    typed: 'vision --symbols BTCUSDT',
    env: { CRYPTODL_CONFIG: 'none.yaml' },
    says: 'CRYPTODL_CONFIG: cannot read none.yaml (no such file or folder)\n  name a YAML or JSON file with lines like "market: spot"\n',
  },
  {
    typed: 'vision --config c.yaml',
    files: { 'c.yaml': 'symbols: BTCUSDT\ndays: 2\nfrom: 2026-11-18\n' },
    says: '--days, --months and --from with --to are different kinds of range\n  keep one of them\n',
  },
];

describe('a mistake in a file or on stdin', () => {
  it.each(ELSEWHERE)('cryptodl $typed: $says', async (mistake) => {
    const { typed, files, env, stdin, says } = mistake;
    const cwd = scene.newFolder();
    const jobs = 'jobs: { a: { verb: vision, symbols: BTCUSDT, days: 1 } }';
    for (const [name, text] of Object.entries({ 'jobs.yaml': jobs, ...files }))
      writeFileSync(join(cwd, name), text);
    const given = stdin === undefined ? {} : { stdin };
    const result = await cryptodl(typed.split(' '), { cwd, env: { ...environment(), ...env }, ...given });
    const [message = '', hint = ''] = says.split('\n');
    expect([result.code, result.stderr.split('\n')[0]]).toEqual([2, `cryptodl: ${message}`]);
    expect(result.stderr).toContain(hint);
  });
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
  const cwd = scene.newFolder();
  const result = await cryptodl(['schema', 'klines'], { cwd, env: { [name]: '2' } });
  expect([result.code, result.stderr]).toEqual([0, warning]);
});
