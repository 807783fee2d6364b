import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BIN, FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { IdleClock } from '../helpers/idle-clock.js';
import { filesBelow } from '../helpers/lake.js';
import { publish, publishedRows } from '../helpers/published.js';
import { useScene } from '../helpers/scene.js';

describe('a signal while symbols are read', () => {
  const scratch = scratchFolder();
  const start = (symbols: string): { child: ChildProcess; ended: Promise<unknown> } => {
    const words = argv`vision --symbols ${symbols} --interval 1h --days 1 --out ${join(scratch, 'lake')}`;
    const child = spawn(process.execPath, [BIN, ...words], { stdio: ['pipe', 'ignore', 'ignore'] });
    return { child, ended: once(child, 'exit') };
  };

  it('SIGTERM ends a run that waits for a FIFO', async () => {
    const fifo = join(scratch, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const { child, ended } = start(`@${fifo}`);
    let writer: number | undefined;
    try {
      // It can be opened once there is a reader, which then waits for content.
      while (writer === undefined) {
        try {
          writer = openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
        } catch {
          await setTimeout(20);
        }
      }
      child.kill('SIGTERM');
      expect(await ended).toEqual([null, 'SIGTERM']);
    } finally {
      child.kill('SIGKILL');
      if (writer !== undefined) closeSync(writer);
    }
  });

  it('SIGINT ends a run that waits for its standard input', async () => {
    const { child, ended } = start('-');
    try {
      // More than a pipe holds: it is written once the program reads.
      await new Promise((resolve) => child.stdin?.write('BTCUSDT\n'.repeat(50_000), resolve));
      child.kill('SIGINT');
      expect(await ended).toEqual([null, 'SIGINT']);
    } finally {
      child.kill('SIGKILL');
    }
  });
});

describe('a signal while nobody reads the output', () => {
  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('%s ends a query with %i', async (signal, code) => {
    const query = 'SELECT repeat(range::VARCHAR, 1000) AS text FROM range(10000)';
    const child = spawn(process.execPath, [BIN, 'sql', query, '--json'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ended = once(child, 'exit');
    try {
      // The rows do not fit into the pipe, so the program waits for a reader.
      await once(child.stdout, 'readable');
      child.kill(signal);
      expect(await ended).toEqual([code, null]);
    } finally {
      child.kill('SIGKILL');
    }
  });
});

describe('one lake, several runs', () => {
  const scene = useScene({
    archive: [{ dataset: 'metrics', symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-10-01', to: '2026-10-10' }],
  });
  const { scratch, folder } = scene;

  const command = (
    out: string,
    symbol = 'BTCUSDT',
  ): string[] => argv`vision --dataset metrics --symbols ${symbol} --from 2026-10-01 --to 2026-10-10 --archive-url
    ${scene.archive.url} --out ${out} --json ${FAST}`;

  interface Stalled {
    readonly child: ChildProcess;
    readonly ended: Promise<CliResult>;
    readonly release: () => void;
  }

  /** Starts a run that stands still with one zip unanswered. */
  async function stalledRun(
    out: string,
    flags: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
    args = command(out),
  ): Promise<Stalled> {
    const held: ServerResponse[] = [];
    let child: ChildProcess | undefined;
    const stalled = new Promise<void>((resolve) => {
      scene.archive.fault = (path, _request, response) => {
        if (!path.endsWith('2026-10-05.zip')) return false;
        held.push(response);
        resolve();
        return true;
      };
    });
    const ended = cryptodl([...args, ...flags], { env, onSpawn: (spawned) => (child = spawned) });
    await stalled;
    if (child === undefined) throw new Error('nothing was spawned');
    return {
      child,
      ended,
      release: () => {
        scene.archive.fault = undefined;
        for (const response of held) response.destroy();
      },
    };
  }

  it('a run clears no temporary files of a living run, whose lake had the same path', async () => {
    const [out, temp] = [join(scratch, 'same-path'), join(scratch, 'shared-temp')];
    const flags = ['--temp-dir', temp];
    const first = await stalledRun(out, flags);
    const [runFolder = ''] = readdirSync(temp);
    scene.archive.fault = undefined;
    renameSync(out, `${out}-1`);
    await cryptodlOk([...command(out), ...flags]);
    expect(readdirSync(temp)).toEqual([runFolder]);
    renameSync(out, `${out}-2`);
    renameSync(`${out}-1`, out);
    first.release();
    expect((await first.ended).code).toBe(0);
    expect(readdirSync(temp)).toEqual([]);
  });

  it('the second run on a lake exits 6 and names the holder; the first goes on undisturbed', async () => {
    const out = join(scratch, 'two');
    const first = await stalledRun(out);
    const second = await cryptodl(command(out, 'ETHUSDT'));
    expect(second.code).toBe(6);
    expect(second.stderr).toContain(`pid ${first.child.pid}`);
    expect(second.stderr).toContain('cryptodl vision');
    first.release();
    expect((await first.ended).code).toBe(0);
  });

  const HOLDER = JSON.stringify({
    pid: 1,
    host: 'container-7',
    command: 'cryptodl vision',
    startedAt: 'then',
    nonce: 'n',
    bootId: '',
    processStart: '',
    pidNamespace: '',
  });

  /** The lock of a run in another container, renewed so long ago. */
  function foreignLock(out: string, secondsAgo: number): void {
    const file = join(out, '.cryptodl/lock.json');
    mkdirSync(join(out, '.cryptodl'), { recursive: true });
    writeFileSync(file, HOLDER);
    const at = Date.now() / 1000 - secondsAgo;
    utimesSync(file, at, at);
  }

  it('takes over the lock of a container that was killed, with a warning; verify reads its lake', async () => {
    const out = join(scratch, 'container');
    await cryptodlOk(command(out));
    foreignLock(out, 45);
    const early = await cryptodl(command(out));
    expect([early.code, early.stderr]).toEqual([6, expect.stringContaining('--wait-lock') as unknown]);
    expect((await cryptodl(['verify', '--out', out])).code).toBe(6);
    foreignLock(out, 61);
    await cryptodlOk(['verify', '--out', out]);
    const later = await cryptodlOk(command(out));
    expect(later.stderr).toMatch(/^warning: took over the lock of .*: pid 1 on container-7 /m);
    expect(existsSync(join(out, '.cryptodl/lock.json'))).toBe(false);
  });

  const sleptMs = join(scratch, 'slept');

  /** The environment of a process whose wall clock is off by what the file says. */
  function withClockOff(ms: number): Readonly<Record<string, string>> {
    writeFileSync(sleptMs, String(ms));
    const preload = join(scratch, 'wall-clock.cjs');
    writeFileSync(
      preload,
      `const { readFileSync } = require('node:fs');
      const { now } = Date;
      Date.now = () => now() + Number(readFileSync(${JSON.stringify(sleptMs)}, 'utf8'));`,
    );
    return { NODE_OPTIONS: `--require=${preload}` };
  }

  /** Another run takes the lake over while this one is suspended. */
  function loseLock(out: string, run: Stalled): void {
    run.child.kill('SIGSTOP');
    foreignLock(out, 0);
    writeFileSync(sleptMs, '300000');
    run.child.kill('SIGCONT');
    run.release();
  }

  const dataOf = (out: string): Record<string, string> =>
    Object.fromEntries(
      filesBelow(out)
        .filter((path) => !/^(\.cryptodl|failures)\//.test(path))
        .map((path) => [path, readFileSync(join(out, path), 'base64')]),
    );

  it('a run that waits for the archive finds out with a heartbeat that it lost its lock, and ends', async () => {
    const out = join(scratch, 'waiting');
    scene.archive.requests.length = 0;
    scene.archive.fault = (path) => {
      if (!path.endsWith('2026-10-05.zip')) return false;
      foreignLock(out, 0);
      return true;
    };
    const { code, stderr } = await cryptodl(command(out), { clock: new IdleClock(Date.now()) });
    expect([code, stderr]).toEqual([6, expect.stringContaining('pid 1 on container-7 has taken it over')]);
    expect(
      scene.archive.requests.filter((path) => path.endsWith('BTCUSDT-metrics-2026-10-05.zip')),
    ).toHaveLength(1);
  });

  it('a run that lost its lock does not remember a revision with fewer rows', async () => {
    const out = join(scratch, 'shorter');
    const key = 'data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-2026-10-05.zip';
    await cryptodlOk(command(out));
    const before = dataOf(out);
    const published = ['', '.CHECKSUM'].map((ending) => readFileSync(join(folder, key + ending)));
    const rows = publishedRows(join(folder, key)).slice(0, 100);
    publish(folder, key, rows.map((row) => `${row.join(',')}\n`).join(''));
    const run = await stalledRun(out, [], withClockOff(0));
    loseLock(out, run);
    const { code, stderr } = await run.ended;
    for (const [index, ending] of ['', '.CHECKSUM'].entries())
      writeFileSync(join(folder, key + ending), published[index] ?? '');
    expect([code, stderr]).toEqual([6, expect.stringContaining('has lost the lock of its lake')]);
    expect(dataOf(out)).toEqual(before);
  });

  it('a run that lost its lock does not record absences', async () => {
    const out = join(scratch, 'absent');
    const until = (to: string): string[] => command(out).map((arg) => (arg === '2026-10-10' ? to : arg));
    await cryptodlOk(until('2026-10-04'));
    const before = dataOf(out);
    const run = await stalledRun(out, [], withClockOff(0), until('2026-10-05'));
    loseLock(out, run);
    scene.archive.fault = (path, _request, response) => {
      if (!path.includes('2026-10-05.zip')) return false;
      response.writeHead(404).end();
      return true;
    };
    const { code, stderr } = await run.ended;
    expect([code, stderr]).toEqual([6, expect.stringContaining('has lost the lock of its lake')]);
    expect(dataOf(out)).toEqual(before);
  });

  it('verify --fix that lost its lock takes no file away', async () => {
    const out = join(scratch, 'fix');
    await cryptodlOk(command(out));
    truncateSync(join(out, 'binance/um/metrics/symbol=BTCUSDT/2026-10.parquet'), 500);
    const before = dataOf(out);
    // The lock is lost with the first digest after it was taken.
    const preload = join(scratch, 'lose-lock.cjs');
    writeFileSync(
      preload,
      `const crypto = require('node:crypto');
      const { existsSync, writeFileSync } = require('node:fs');
      const { createHash } = crypto;
      const lock = ${JSON.stringify(join(out, '.cryptodl/lock.json'))};
      crypto.createHash = (...kind) => {
        if (existsSync(lock)) writeFileSync(lock, ${JSON.stringify(HOLDER)});
        if (existsSync(lock)) writeFileSync(${JSON.stringify(sleptMs)}, '300000');
        return createHash(...kind);
      };
      require('node:module').syncBuiltinESMExports();`,
    );
    const env = { NODE_OPTIONS: `${withClockOff(0)['NODE_OPTIONS'] ?? ''} --require=${preload}` };
    const { code, stderr } = await cryptodl(['verify', '--fix', '--out', out], {
      env,
      onSpawn: () => undefined,
    });
    expect([code, stderr]).toEqual([6, expect.stringContaining('has lost the lock of its lake')]);
    expect(dataOf(out)).toEqual(before);
  });

  const FORMATS: readonly (readonly [string, readonly string[]])[] = [
    ['a conversion', []],
    ['--format zip', ['--format', 'zip']],
  ];
  it.each(FORMATS)(
    'a run that was suspended and lost its lock commits nothing more: %s',
    async (name, flags) => {
      const out = join(scratch, `suspended ${name}`);
      const run = await stalledRun(out, flags, withClockOff(0));
      run.child.kill('SIGSTOP');
      const before = filesBelow(out).filter((path) => !path.startsWith('.cryptodl/'));
      foreignLock(out, 0);
      const spool = join(out, '.cryptodl/tmp/of the new holder');
      writeFileSync(spool, '');
      writeFileSync(sleptMs, '300000');
      run.child.kill('SIGCONT');
      run.release();
      const result = await run.ended;
      expect(result.code).toBe(6);
      expect(result.stderr).toContain(
        'has lost the lock of its lake: pid 1 on container-7 has taken it over',
      );
      expect(filesBelow(out).filter((path) => !/^(\.cryptodl|failures)\//.test(path))).toEqual(before);
      expect(readFileSync(join(out, '.cryptodl/lock.json'), 'utf8')).toContain('container-7');
      expect(existsSync(spool)).toBe(true);
    },
  );

  const choice = ['--dataset', 'metrics', '--symbols', 'BTCUSDT'];

  it.each([
    ['SIGINT', 'vision', 130, ['vision', ...choice, '--days', '1'], 'before the work began'],
    ['SIGTERM', 'doctor', 143, ['doctor'], ''],
  ] as const)(
    '%s ends %s with %i while the listing gives no answer',
    async (signal, verb, code, args, text) => {
      const out = join(scratch, `no answer ${verb}`);
      let child: ChildProcess | undefined;
      scene.archive.fault = () => child?.kill(signal) === true;
      const onSpawn = (spawned: ChildProcess): void => void (child = spawned);
      const ended = await cryptodl([...args, '--out', out, '--archive-url', scene.archive.url], { onSpawn });
      scene.archive.fault = undefined;
      expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(text)]);
    },
  );
});
