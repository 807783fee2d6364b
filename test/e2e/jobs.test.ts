/** `cryptodl run FILE`: several jobs, one closing block, one exit code. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliOptions, CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { IdleClock } from '../helpers/idle-clock.js';
import { filesBelow } from '../helpers/lake.js';
import { metricsScene } from '../helpers/metrics-scene.js';
import type { MetricsScene } from '../helpers/metrics-scene.js';

const EXAMPLE = fileURLToPath(new URL('../../config/jobs.example.yaml', import.meta.url));
const scratch = scratchFolder();
const archived = join(scratch, 'archive');
const KLINES = 'data/futures/um/daily/klines';
const BTC = `${KLINES}/BTCUSDT/1h/BTCUSDT-1h-2026-11-20.zip`;
const ETH = `${KLINES}/ETHUSDT/1h/ETHUSDT-1h-2026-11-20.zip`;
let archive: TestArchive;
let scene: MetricsScene;
/** A working directory for each test. */
let cwd: string;

beforeAll(async () => {
  const um = { market: 'um', symbols: ['BTCUSDT', 'ETHUSDT'], cadence: 'daily' } as const;
  const days = { from: '2026-11-14', to: '2026-11-20' };
  for (const interval of ['1m', '1h']) makeArchive(archived, { ...um, ...days, dataset: 'klines', interval });
  archive = await startArchive(archived);
  const symbols = ['BTCUSDT', 'ETHUSDT'].map((symbol) => ({ symbol, host: 'fapi' as const }));
  scene = await metricsScene(scratch, { symbols, archiveUrl: archive.url });
});
afterAll(() => Promise.all([archive.close(), scene.close()]));
/** Of the runs within this process, and of delayed answers. */
const clock = new IdleClock(Date.now());

beforeEach(() => {
  archive.fault = undefined;
  archive.requests.length = 0;
  cwd = mkdtempSync(join(scratch, 'in-'));
});

/** Everything that says where things are, so that only what a test is about stands in its file. */
function run(argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return cryptodl(argv, {
    cwd,
    // A process of its own has real time.
    clock: options.onSpawn === undefined ? clock : undefined,
    ...options,
    env: {
      CRYPTODL_ARCHIVE_URL: archive.url,
      CRYPTODL_NOW: '2026-11-21T12:00:00Z',
      ...options.env,
    },
  });
}

function jobs(text: string): string {
  writeFileSync(join(cwd, 'jobs.yaml'), text);
  return 'jobs.yaml';
}

const TWO = `
defaults: { dataset: klines, interval: 1h, days: 2, out: lake }
jobs:
  btc: { verb: vision, symbols: BTCUSDT }
  eth: { verb: vision, symbols: ETHUSDT, days: 1 }
`;

function failing(...keys: string[]): void {
  archive.fault = (path, _request, response) => {
    if (!keys.some((key) => path === `/${key}`)) return false;
    response.writeHead(503).end();
    return true;
  };
}

/** The last event: the whole run's. */
function summary(result: CliResult): Record<string, unknown> {
  return result.events.at(-1) ?? {};
}

function lines(report: string): Record<string, unknown>[] {
  return readFileSync(join(cwd, report), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function files(lake: string): string[] {
  return existsSync(join(cwd, lake, 'binance')) ? filesBelow(join(cwd, lake, 'binance'), '.parquet') : [];
}

const SERIES = 'um/klines/interval=1h';

describe('cryptodl run', () => {
  it('config/jobs.example.yaml works as it is', async () => {
    const result = await scene.run(['run', EXAMPLE, '--json']);
    expect([result.code, result.stderr]).toEqual([
      0,
      expect.stringContaining('\n3 jobs: all succeeded, in '),
    ]);
    expect(summary(result)).toMatchObject({
      event: 'summary',
      jobs: [
        { job: 'bars', verb: 'vision', outcomes: { ok: 28 }, exitCode: 0 },
        { job: 'funding', verb: 'metrics', exitCode: 0 },
        { job: 'positioning', verb: 'metrics', outcomes: { ok: 21 }, exitCode: 0 },
      ],
      failures: null,
      exitCode: 0,
    });
    const held = filesBelow(join(scene.lake, 'binance/um'), '.parquet').map((path) => path.split('/')[0]);
    expect(new Set(held)).toEqual(
      new Set([
        'fundingRate',
        'klines',
        'openInterestHist',
        'takerLongShortRatio',
        'topLongShortPositionRatio',
      ]),
    );
  });

  it('runs the jobs in their order, names each before its lines and in each of its events, and closes once', async () => {
    const result = await run(['run', jobs(TWO), '--json', ...FAST]);
    expect(result.code).toBe(0);
    expect(result.stderr).toMatch(
      /^\[btc\]\num klines 1h in [^[]*\n\[eth\]\num klines 1h in [^[]*\n2 jobs: all succeeded, in \S+\n/,
    );
    expect(result.stderr).toMatch(
      /\n {2}btc {8}2 ok\n {2}eth {8}1 ok\n {2}next {7}cryptodl sql '.*' --out \S+\n$/,
    );
    const named = result.events.map(({ event, job }) => `${String(event)} ${String(job)}`);
    expect(named.filter((text) => text.startsWith('object'))).toEqual([
      'object btc',
      'object btc',
      'object eth',
    ]);
    expect(named.filter((text) => text.startsWith('summary'))).toEqual([
      'summary btc',
      'summary eth',
      'summary undefined',
    ]);
    expect(summary(result)).toMatchObject({ outcomes: { ok: 3, failed: 0 }, failures: null, exitCode: 0 });
    expect(summary(result)['peakMemoryBytes']).toBeGreaterThan(20e6);
    expect(files('lake')).toEqual([
      `${SERIES}/symbol=BTCUSDT/2026-11.parquet`,
      `${SERIES}/symbol=ETHUSDT/2026-11.parquet`,
    ]);
  });

  it('flag beats environment beats job beats defaults beats default', async () => {
    const text = `
defaults: { dataset: klines, days: 2, out: lake, format: csv, retries: 5, max-wait: 7m }
jobs:
  one: { verb: vision, symbols: BTCUSDT, from: 2026-11-18, format: zip, retries: 4, max-wait: 6m }
  two: { verb: metrics, symbols: BTCUSDT, dataset: fundingRate }
`;
    const env = { CRYPTODL_RETRIES: '3', CRYPTODL_MAX_WAIT: '5m' };
    const { stdout } = await run(['run', jobs(text), '--retries', '1', '--print-options'], { env });
    const [one = '', two = ''] = stdout.split('[two]\n');
    const shown = (of: string, name: string): string | undefined =>
      new RegExp(`^${name} +(.*)$`, 'm').exec(of)?.[1];
    expect(one).toMatch(/^\[one\]\n/);
    expect(
      ['retries', 'max-wait', 'format', 'out', 'days', 'from', 'numbers'].map((name) => shown(one, name)),
    ).toEqual([
      '1  (flag)',
      '5m  (environment)',
      'zip  (job)',
      'lake  (defaults of the jobs)',
      // A range is one thing: that of the job takes the place of the whole default.
      '-  (default)',
      '2026-11-18  (job)',
      'double  (default)',
    ]);
    expect(['retry-preset', 'days', 'format'].map((name) => shown(two, name))).toEqual([
      'metrics  (default)',
      '2  (defaults of the jobs)',
      'csv  (defaults of the jobs)',
    ]);
  });

  it('--only leaves the other jobs out; --dry-run names the job of each object, and does nothing', async () => {
    const file = jobs(TWO);
    const dry = await run(['run', file, '--dry-run', '--quiet']);
    expect([dry.code, dry.stderr]).toEqual([0, '']);
    expect(
      dry.stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t').slice(2).join(' ')),
    ).toEqual([expect.stringMatching(/BTCUSDT-1h-2026-11-19\.zip btc$/), `${BTC} btc`, `${ETH} eth`]);
    expect(files('lake')).toEqual([]);
    const only = await run(['run', file, '--only', 'eth', '--quiet', ...FAST]);
    expect([only.code, only.stdout, only.stderr]).toEqual([0, '', '']);
    expect(files('lake')).toEqual([`${SERIES}/symbol=ETHUSDT/2026-11.parquet`]);
    const none = await run(['run', file, '--only', 'et']);
    expect([none.code, none.stderr]).toEqual([
      2,
      'cryptodl: --only: jobs.yaml has no job "et"; it has btc, eth\n  did you mean eth?\n',
    ]);
  });

  it('a job that ends early does not keep the next one from its turn; the most important code is the end', async () => {
    writeFileSync(join(cwd, 'no-folder'), '');
    failing(ETH);
    const text = `${TWO}  lost: { verb: vision, symbols: BTCUSDT, out: no-folder/lake }\n  typo: { verb: vision, symbols: BTCUSD }\n`;
    const result = await run(['run', jobs(text), '--json', '--only', 'eth,lost,btc', ...FAST]);
    expect(result.code).toBe(2);
    expect(summary(result)).toMatchObject({
      jobs: [
        { job: 'btc', outcomes: { ok: 2 }, exitCode: 0 },
        { job: 'eth', outcomes: { failed: 1 }, exitCode: 3 },
        { job: 'lost', outcomes: null, exitCode: 2 },
      ],
      exitCode: 2,
    });
    expect(result.stderr).toContain(
      'cryptodl: jobs.yaml: jobs.lost: --out: no-folder/lake is not a folder: a part of the path is a file',
    );
    expect(result.stderr).toContain('3 jobs: 1 succeeded, 2 failed, in ');
    expect(result.stderr).toContain('  lost       nothing done (exit code 2)\n');
    // What only the archive can tell is told when it is asked.
    const typo = await run(['run', jobs(text), '--json', '--only', 'typo,btc', ...FAST]);
    expect([typo.code, typo.stderr]).toEqual([
      2,
      expect.stringContaining('cryptodl: jobs.yaml: jobs.typo: the archive has no BTCUSD in um klines\n'),
    ]);
    expect(typo.stderr).toContain('\n  did you mean BTCUSDT?\n');
  });

  it('SIGTERM ends the job and all that follow, and the whole with 143', async () => {
    const result = await run(['run', jobs(TWO), '--json', ...FAST], {
      onSpawn: (child) => {
        archive.fault = (path) => {
          if (path !== `/${BTC}`) return false;
          child.kill('SIGTERM');
          return true;
        };
      },
    });
    expect(result.code).toBe(143);
    expect(summary(result)).toMatchObject({
      jobs: [
        { job: 'btc', exitCode: 143 },
        { job: 'eth', outcomes: null, exitCode: null },
      ],
      exitCode: 143,
    });
    expect(result.stderr).toMatch(/\n {2}eth {8}not started\n/);
    expect(files('lake').join()).not.toContain('ETHUSDT');
  });
});

describe('cryptodl run --jobs', () => {
  const APART = `
defaults: { dataset: klines, interval: 1h, days: 3, verify: none }
jobs:
  btc: { verb: vision, symbols: BTCUSDT, out: a }
  eth: { verb: vision, symbols: ETHUSDT, out: b }
`;
  /** Objects are answered after a while, or when both symbols have been asked for. */
  function answering(how: 'later' | 'together'): { at: number[]; most: () => number } {
    const at: number[] = [];
    const symbols = new Set<string>();
    const held: (() => void)[] = [];
    let [underWay, most] = [0, 0];
    archive.fault = (path, request, response) => {
      if (!path.endsWith('.zip')) return false;
      at.push(clock.monotonic());
      symbols.add(path.includes('BTCUSDT') ? 'BTCUSDT' : 'ETHUSDT');
      underWay += 1;
      most = Math.max(most, underWay);
      const answer = (): void => {
        underWay -= 1;
        archive.serve(request, response);
      };
      if (how === 'later') clock.timer(100, answer);
      else held.push(answer);
      if (symbols.size === 2) for (const each of held.splice(0)) each();
      return true;
    };
    return { at, most: () => most };
  }

  it('works side by side, and names the job in each line and in each event', async () => {
    // Neither job ends before the other has begun.
    answering('together');
    const result = await run(['run', jobs(APART), '--jobs', '2', '--json', ...FAST]);
    expect(result.code).toBe(0);
    const printed = result.stderr.trimEnd().split('\n');
    const whole = printed.findIndex((line) => line.startsWith('2 jobs: all succeeded'));
    expect(printed.slice(whole + 1).map((line) => line.trim())).toEqual([
      'btc        3 ok',
      'eth        3 ok',
      "next       cryptodl sql 'SELECT symbol, interval, count(*) AS rows FROM um_klines GROUP BY ALL' --out b",
    ]);
    for (const line of printed.slice(0, whole)) expect(line).toMatch(/^\[(btc|eth)\] /);
    // The lines of a block stay together.
    const changes = printed
      .slice(1, whole)
      .filter((line, index) => line.slice(0, 5) !== printed[index]?.slice(0, 5));
    expect(changes.length).toBeLessThanOrEqual(3);
    expect(result.events.slice(0, -1).every(({ job }) => job === 'btc' || job === 'eth')).toBe(true);
    expect(summary(result)).toMatchObject({
      jobs: [
        { job: 'btc', outcomes: { ok: 3 }, exitCode: 0 },
        { job: 'eth', outcomes: { ok: 3 }, exitCode: 0 },
      ],
      exitCode: 0,
    });
    expect(files('a').concat(files('b'))).toHaveLength(2);
  });

  it('jobs of one lake that does not exist yet run one after the other', async () => {
    const outs = ['real/new', 'real/../real/new', join(cwd, 'real/new')];
    const each = outs.map((out, index) => `  on${index}: { verb: vision, symbols: BTCUSDT, out: ${out} }`);
    const text = `defaults: { dataset: klines, interval: 1h, days: 1 }\njobs:\n${each.join('\n')}\n`;
    const result = await run(['run', jobs(text), '--jobs', '4', '--json', ...FAST]);
    expect([result.code, summary(result)]).toMatchObject([
      0,
      { jobs: [{ outcomes: { ok: 1 } }, ...Array.from({ length: 2 }, () => ({ outcomes: { skipped: 1 } }))] },
    ]);
    expect(files('real/new')).toHaveLength(1);
  });

  it.each([
    ['--request-interval', '200ms'],
    ['--limits', 'archive=5/s'],
  ])('%s %s is that of all jobs together', async (flag, value) => {
    const { at } = answering('later');
    const result = await run(['run', jobs(APART), '--jobs', '2', flag, value, ...FAST]);
    expect([result.code, at.length]).toEqual([0, 6]);
    // The first request also opens the connection.
    expect((at[5] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(700);
  });

  it('the one of higher priority comes first where both wait for a limit', async () => {
    const text = `
defaults: { dataset: klines, interval: 1h, days: 7, verify: none }
jobs:
  eth: { verb: vision, symbols: ETHUSDT, out: b, priority: low }
  btc: { verb: vision, symbols: BTCUSDT, out: a, priority: high }
`;
    const result = await run(['run', jobs(text), '--jobs', '2', '--request-interval', '200ms', ...FAST]);
    const asked = archive.objectRequests().map((path) => (path.includes('BTCUSDT') ? 'high' : 'low'));
    expect([result.code, asked.length]).toEqual([0, 14]);
    const meanwhile = asked.slice(0, asked.lastIndexOf('high'));
    expect(meanwhile.filter((name) => name === 'low').length).toBeLessThanOrEqual(4);
  });

  it('a signal ends all jobs, and the whole with 143', async () => {
    const result = await run(['run', jobs(APART), '--jobs', '2', '--json', ...FAST], {
      onSpawn: (child) => {
        const symbols = new Set<boolean>();
        archive.fault = (path) => {
          if (!path.endsWith('.zip')) return false;
          symbols.add(path.includes('BTCUSDT'));
          if (symbols.size === 2 && !child.killed) child.kill('SIGTERM');
          return true;
        };
      },
    });
    expect(result.code).toBe(143);
    expect(summary(result)).toMatchObject({
      jobs: [
        { job: 'btc', exitCode: 143 },
        { job: 'eth', exitCode: 143 },
      ],
      exitCode: 143,
    });
    // No object was answered.
    expect(result.stderr).toMatch(
      /\n {2}btc {8}3 not done \(exit code 143\)\n {2}eth {8}3 not done \(exit code 143\)\n {2}next {7}run the same command again to continue\n$/,
    );
  });
});

it('each job with failures has its own report, which retry runs with the options of the job', async () => {
  failing(BTC, ETH);
  const first = await run([
    'run',
    jobs(`
defaults: { dataset: klines, interval: 1h, days: 1 }
jobs:
  well: { verb: vision, symbols: BTCUSDT, interval: 1m, out: c }
  btc: { verb: vision, symbols: BTCUSDT, out: a, verify: etag }
  eth: { verb: vision, symbols: ETHUSDT, out: b, numbers: string }
`),
    '--failures',
    'failed.jsonl',
    '--json',
    ...FAST,
  ]);
  expect([first.code, summary(first)['failures']]).toEqual([3, ['failed-btc.jsonl', 'failed-eth.jsonl']]);
  expect(first.stderr).toContain('  next       cryptodl retry failed-btc.jsonl\n');
  expect(lines('failed-btc.jsonl')).toMatchObject([
    { kind: 'header', verb: 'vision', options: { out: [join(cwd, 'a')], verify: ['etag'] } },
    { kind: 'failed', key: BTC },
  ]);
  expect(lines('failed-eth.jsonl')).toMatchObject([
    { kind: 'header', verb: 'vision', options: { out: [join(cwd, 'b')] } },
    { kind: 'failed', key: ETH, settings: { numbers: 'string' } },
  ]);
  archive.fault = undefined;
  archive.requests.length = 0;
  expect((await run(['retry', 'failed-btc.jsonl', ...FAST])).code).toBe(0);
  // --verify etag asks for no sidecar.
  expect(archive.requests.filter((path) => path === `/${BTC}.CHECKSUM`)).toEqual([]);
  expect(files('a')).toEqual([`${SERIES}/symbol=BTCUSDT/2026-11.parquet`]);
  expect(existsSync(join(cwd, 'failed-btc.jsonl'))).toBe(false);
});

/** Each found before any job begins, and before anything is asked of anybody. */
const MISTAKES: readonly (readonly [string, string, string])[] = [
  ['a list', '- verb: vision', 'jobs.yaml is not a map with jobs'],
  [
    'an unknown part',
    'job: {}',
    'jobs.yaml is not a map with jobs, and with nothing else but defaults\n  for example: jobs: { bars:',
  ],
  ['a name of digits', 'jobs: { 1: { verb: vision } }', 'jobs.yaml: jobs: "1" is not a valid name of a job'],
  [
    'the same name twice',
    'jobs:\n  a: { verb: vision }\n  a: { verb: vision }',
    'run: jobs.yaml line 3 is not YAML or JSON: a: { verb: vision } (Map keys must be unique)\n',
  ],
  [
    'no verb',
    'jobs: { a: { symbols: BTCUSDT } }',
    'jobs.yaml: jobs.a: verb: "" is not one of vision, metrics\n  for example vision or metrics\n',
  ],
  [
    'an unknown key',
    'jobs: { a: { verb: vision, symbol: X } }',
    'jobs.yaml: jobs.a: unknown key "symbol"\n  did you mean symbols?',
  ],
  [
    'an unknown default',
    'defaults: { outt: x }\njobs: { a: { verb: vision } }',
    'jobs.yaml: defaults: unknown key "outt"\n  did you mean out?',
  ],
  [
    'a key of the other verb',
    'jobs: { a: { verb: vision, include-today: true } }',
    'jobs.yaml: jobs.a: unknown key "include-today"\n  keys are names of flags: cryptodl vision --help',
  ],
  [
    'a flag of the command line',
    'jobs: { a: { verb: vision, config: x } }',
    'jobs.yaml: jobs.a: unknown key "config"\n  keys are names of flags: cryptodl vision --help',
  ],
  [
    'two kinds of range',
    'jobs: { a: { verb: vision, days: 1, months: 2 } }',
    'jobs.yaml: jobs.a: --days, --months and --from with --to are different kinds of range\n',
  ],
  [
    'no list',
    "jobs: { a: { verb: vision, symbols: '@none.txt' } }",
    'jobs.yaml: jobs.a: --symbols: cannot read none.txt (no such file or folder)\n',
  ],
];

describe('a mistake in the file', () => {
  it.each(MISTAKES)('%s', async (_, text, says) => {
    const good = text.startsWith('jobs: {')
      ? text.replace('jobs: {', 'jobs: { good: { verb: vision, symbols: BTCUSDT, days: 1 },')
      : text;
    const result = await run(['run', jobs(good), ...FAST]);
    expect(result.stderr).toContain(`cryptodl: ${says}`);
    expect([result.code, result.stdout, archive.requests, filesBelow(cwd)]).toEqual([
      2,
      '',
      [],
      ['jobs.yaml'],
    ]);
  });

  it('a file that is not there', async () => {
    const { code, stderr } = await run(['run', 'none.yaml']);
    expect(code).toBe(2);
    // The path is relative or absolute: it depends on the folder in which the module was loaded.
    expect(stderr).toMatch(
      /^cryptodl: run: cannot read none\.yaml \(no such file or folder\)\n {2}\S*config\/jobs\.example\.yaml is an example of a file of jobs\n$/,
    );
  });
});
