/** The package as users get it: packed, installed in an empty folder from the registry, and used from there, as the README says. */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess, SpawnSyncReturns } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive, makeCsv } from '../../scripts/synthetic-archive.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';
import { publish } from '../helpers/published.js';
import { serveVenue } from '../helpers/rest-venue-server.js';
import type { ServedVenue } from '../helpers/rest-venue-server.js';
import { RestVenue } from '../helpers/rest-venue.js';

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));
const NOW = '2026-11-21T12:00:00Z';

const read = (path: string): string => readFileSync(join(REPOSITORY, path), 'utf8');

/** What the commands of the README find in the archive. */
const ARCHIVE: readonly Omit<Parameters<typeof makeArchive>[1], 'seed'>[] = [
  { market: 'um', dataset: 'klines', interval: '1m', symbols: ['BTCUSDT', 'ETHUSDT'], ...lastWeek('daily') },
  {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: ['BTCUSDT', 'ETHUSDT', 'SOLUSDT'],
    ...autumn('daily'),
  },
  { market: 'spot', dataset: 'trades', symbols: ['BTCUSDT'], rowsPerDay: 1000, ...lastWeek('daily') },
  { market: 'um', dataset: 'metrics', symbols: ['BTCUSDT'], ...autumn('daily') },
  { market: 'um', dataset: 'fundingRate', symbols: ['BTCUSDT'], ...october('monthly') },
];
type Days = Pick<Parameters<typeof makeArchive>[1], 'from' | 'to' | 'cadence'>;
function lastWeek(cadence: Days['cadence']): Days {
  return { from: '2026-11-14', to: '2026-11-20', cadence };
}
function october(cadence: Days['cadence']): Days {
  return { from: '2026-10-01', to: '2026-10-31', cadence };
}
function autumn(cadence: Days['cadence']): Days {
  return { from: '2026-10-01', to: '2026-11-20', cadence };
}

/** The monthly object of the rows of its daily objects: an audit finds no difference. */
function publishOctober(archive: string): void {
  const days = Array.from({ length: 31 }, (_, day) => {
    const period = `2026-10-${String(day + 1).padStart(2, '0')}`;
    const spec = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT', period } as const;
    const [header = '', ...rows] = makeCsv(spec).csv.trimEnd().split('\n');
    return { header, rows };
  });
  const csv = [days[0]?.header, ...days.flatMap(({ rows }) => rows)].join('\n');
  publish(archive, 'data/futures/um/monthly/klines/BTCUSDT/1h/BTCUSDT-1h-2026-10.zip', `${csv}\n`);
}

/** Commands of the README that this test does not run, and the reason. Other tests or lines check them. */
const NOT_RUN: readonly (readonly [RegExp, string])[] = [
  [/^npm ci && npm run demo\b/, 'the first step of .ci/run'],
  [/^npm ci && npm test\b/, 'this suite is a tier beside it'],
  [/^cryptodl universe\b/, 'needs years of 1d klines; test/long/universe.test.ts runs it'],
  [
    /^docker /,
    'test/long/container.test.ts replays the steps of the Dockerfile, which has the same command in its comment',
  ],
];

/** The commands of the blocks of sh, without comments. */
const COMMANDS = [...read('README.md').matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) =>
  block
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/\s+#\s.*$/, '')),
);

describe('the tarball of npm pack', () => {
  const scratch = scratchFolder();
  const home = join(scratch, 'home');
  let tarball = '';
  let url = '';
  let server: ChildProcess | undefined;
  let venue: ServedVenue;
  beforeAll(async () => {
    for (const spec of ARCHIVE) makeArchive(join(scratch, 'archive'), spec);
    publishOctober(join(scratch, 'archive'));
    const symbols = ['BTCUSDT', 'ETHUSDT'].map((symbol) => ({ symbol, host: 'fapi' as const }));
    venue = await serveVenue(new RestVenue({ symbols, now: () => Date.parse(NOW) }));
    mkdirSync(home);
    // The tier has built the program.
    const packed = run(
      'npm',
      ['pack', '--ignore-scripts', '--silent', '--pack-destination', scratch],
      REPOSITORY,
    );
    writeFileSync(join(home, 'package.json'), '{ "private": true, "type": "module" }\n');
    tarball = join(scratch, packed.stdout.trim());
    const installed = run('npm', ['install', '--silent', tarball], home);
    if (installed.status !== 0) throw new Error(installed.stderr);
    const binary = join(home, 'node_modules/.bin/cryptodl');
    server = spawn(binary, ['serve', join(scratch, 'archive'), '--port', '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    url = await firstLine(server);
  }, 300_000);
  afterAll(async () => {
    server?.kill();
    await venue.close();
  });

  const place = (): string[] => ['--archive-url', url, '--now', NOW];
  const cryptodl = (...args: readonly string[]): SpawnSyncReturns<string> =>
    run('npx', ['--no', '--', 'cryptodl', ...args], home);

  it('has a help text for each command that the help of the program names', () => {
    const { status, stdout } = cryptodl('--help');
    expect(status).toBe(0);
    const commands = [...(/^Commands:\n((?:.+\n)+)/m.exec(stdout)?.[1] ?? '').matchAll(/^ {2}([a-z]+)/gm)];
    expect(commands.length).toBeGreaterThan(10);
    for (const [, command = ''] of commands) {
      const help = cryptodl(command, '--help');
      expect({ command, status: help.status }).toEqual({ command, status: 0 });
      expect(help.stdout).toContain(`Usage: cryptodl ${command}`);
    }
  });

  it('has the bundle with its code caches and source maps', () => {
    const bundle = filesBelow(join(home, 'node_modules/cryptodl/dist/bundle'));
    const { version, platform, arch, execPath } = process;
    const cache = `${version}-${platform}-${arch}-${statSync(execPath).size}.cache`;
    for (const name of ['command.cjs', 'rest.cjs'])
      expect(bundle).toEqual(expect.arrayContaining([name, `${name}.map`, `${name}.${cache}`]));
  });

  it('downloads, continues, queries and verifies', () => {
    const week = ['vision', '--symbols', 'BTCUSDT', '--interval', '1h', '--days', '7', ...place()];
    expect(cryptodl(...week)).toMatchObject({ status: 0, stderr: expect.stringContaining('7 ok') });
    expect(cryptodl(...week)).toMatchObject({ status: 0, stderr: expect.stringContaining('7 skipped') });
    expect(cryptodl('sql', 'SELECT count(*) AS rows FROM um_klines', '--json').stdout).toBe('{"rows":168}\n');
    expect(cryptodl('verify').status).toBe(0);
  });

  it('is a library with types', () => {
    const options = {
      symbols: 'BTCUSDT',
      interval: '1h',
      days: 7,
      archiveUrl: url,
      now: NOW,
      out: './library',
    };
    writeFileSync(
      join(home, 'program.js'),
      `import { vision } from 'cryptodl';
      const { outcomes } = await vision(${JSON.stringify(options)}).summary();
      console.log(outcomes.ok, outcomes.failed);`,
    );
    expect(run('node', ['program.js'], home).stdout).toBe('7 0\n');
    expect(filesBelow(join(home, 'library'), '.parquet')).toHaveLength(1);
    expect(filesBelow(join(home, 'node_modules/cryptodl/dist'), 'library.d.ts')).toHaveLength(1);
  });

  describe('with the README, from its first to its last command', () => {
    // npx takes the program of a package that contains the folder.
    const work = join(home, 'work');
    beforeAll(() => {
      mkdirSync(work);
      // The lakes of other machines.
      const selection = [...'vision --interval 1h --symbols ETHUSDT,SOLUSDT --days 2'.split(' '), ...place()];
      for (const shard of [0, 1]) {
        const out = join(work, `data-${shard}`);
        const { status, stderr } = cryptodl(...selection, '--shard', `${shard}/2`, '--out', out);
        if (status !== 0) throw new Error(stderr);
        mkdirSync(out, { recursive: true });
      }
    });

    /** The environment says where the exchange is, and the time. Otherwise it is that of a new user. */
    const environment = (): Record<string, string> => ({
      PATH: [join(home, 'node_modules/.bin'), dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter),
      HOME: scratch,
      CRYPTODL_ARCHIVE_URL: url,
      CRYPTODL_FAPI_URL: venue.urlOf('fapi'),
      CRYPTODL_DAPI_URL: venue.urlOf('dapi'),
      CRYPTODL_SPOT_URL: venue.urlOf('spot'),
      CRYPTODL_NOW: NOW,
      CRYPTODL_STATE_DIR: join(scratch, 'state'),
    });

    /** The settings of npm on this machine, and a folder for global packages. */
    const forNpm = (): NodeJS.ProcessEnv => ({ ...process.env, npm_config_prefix: join(scratch, 'prefix') });

    it('is the README of the repository', () => {
      expect(readFileSync(join(home, 'node_modules/cryptodl/README.md'), 'utf8')).toBe(read('README.md'));
      expect(COMMANDS.length).toBeGreaterThan(20);
    });

    const isRun = (command: string): boolean => !NOT_RUN.some(([pattern]) => pattern.test(command));

    it.each(COMMANDS.filter(isRun))(
      '%s',
      async (command) => {
        // The registry does not have the package yet: the tarball stands for it.
        const line = command.replace(/^npm install -g cryptodl$/, `npm install -g --silent '${tarball}'`);
        expect(line).toMatch(/^(?:npx )?cryptodl |^npm install -g --silent /);
        // The venue answers from this process, which must not wait for the child.
        const child = spawn('sh', ['-c', line], {
          cwd: work,
          env: line.startsWith('npm ') ? forNpm() : environment(),
          stdio: ['ignore', 'pipe', 'pipe'],
        });
        const code = new Promise((resolve) => child.once('close', resolve));
        const [, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
        expect([await code, stderr]).toEqual([0, stderr]);
      },
      120_000,
    );

    it('has installed the program for the user', () => {
      const { stdout } = run(join(scratch, 'prefix/bin/cryptodl'), ['--version'], work);
      expect(stdout).toContain(JSON.parse(read('package.json')).version);
    });

    it.each(NOT_RUN)('%s is in the README, and is not run here: %s', (pattern) => {
      expect(COMMANDS.some((command) => pattern.test(command))).toBe(true);
    });

    it('has the commands of the Dockerfile', () => {
      const docker = COMMANDS.filter((command) => command.startsWith('docker '));
      const shown = read('Dockerfile')
        .split('\n')
        .filter((line) => line.startsWith('#   docker '));
      expect(docker).toEqual(shown.map((line) => line.slice(4)));
    });

    it('has left the lake that the README describes', () => {
      const [block = ''] = /^```text\n(.*?)^```/ms.exec(read('README.md'))?.slice(1) ?? [];
      const parquet = /^data\/\S+\.parquet/m.exec(block)?.[0] ?? '';
      expect(filesBelow(work, '.parquet')).toContain(parquet);
    });

    it('has an example of the library', () => {
      const [, example = ''] = /^```js\n(.*?)^```/ms.exec(read('README.md')) ?? [];
      const local = example.replace(
        'days: 2',
        `days: 2, archiveUrl: '${url}', now: '${NOW}', out: './example'`,
      );
      expect(local).not.toBe(example);
      writeFileSync(join(home, 'example.js'), local);
      expect(run('node', ['example.js'], home)).toMatchObject({
        status: 0,
        stdout: '4 objects, 96 rows, exit code 0\n',
      });
    });
  });
});

/** The first line of standard output. */
function firstLine({ stdout }: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    stdout?.on('data', (chunk: Buffer) => {
      said += String(chunk);
      if (said.includes('\n')) resolve(said.split('\n')[0] ?? '');
    });
    stdout?.on('close', () => {
      reject(new Error('no line'));
    });
  });
}

function run(program: string, args: readonly string[], cwd: string): SpawnSyncReturns<string> {
  return spawnSync(program, args, { cwd, encoding: 'utf8' });
}
