import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { expectIntact, fault, faultScene, keyOf, OBJECTS, VICTIM } from '../helpers/faults.js';
import type { FaultRun, FaultScene } from '../helpers/faults.js';
import {
  filesBelow,
  journalOf,
  leftInternally,
  manifestLines,
  manifestOf,
  readParquet,
} from '../helpers/lake.js';
import { fakeClock, MISSING, mounted, readOnly, strace, watched } from '../helpers/local-faults.js';

const SYMBOLS = ['BTCUSDT', 'ETHUSDT'];
const seriesOf = (symbol: string): string => `binance/um/metrics/symbol=${symbol}`;
const SERIES = seriesOf('BTCUSDT');
const FILE = `${SERIES}/2026-10.parquet`;
const MANIFEST = `_manifests/${SERIES}.jsonl`;
const NOTICE = '_NOTICE.md';
const ROWS = 288;

/**
 * Whatever happened: what can be seen is whole, and what the manifest says is held is in its file. (After a crash a file
 * may hold more than its manifest says.)
 */
async function expectSound(out: string): Promise<void> {
  for (const symbol of SYMBOLS) {
    const folder = join(out, seriesOf(symbol));
    if (!existsSync(folder)) continue;
    const files = filesBelow(folder);
    expect(files.filter((name) => !/^2026-10\.parquet$/.test(name))).toEqual([]);
    const rows = files.includes('2026-10.parquet') ? await readParquet(join(folder, '2026-10.parquet')) : [];
    const lines = existsSync(manifestOf(folder)) ? wholeLines(manifestOf(folder)) : [];
    for (const line of lines) {
      const ofDay = rows.filter((row) => isoDay(row['create_time']) === line['period']);
      expect(ofDay).toHaveLength(ROWS);
    }
  }
}

/** A last line that was torn is no line. */
function wholeLines(file: string): Record<string, unknown>[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

function isoDay(time: unknown): string {
  return (time as Date).toISOString().slice(0, 10);
}

/** Every object is accounted for, in the summary as in the exit code. */
function expectFatal(run: FaultRun, exit: number, says: string): void {
  expect(run.stderr).toContain(says);
  expect(run.stderr).not.toMatch(/unexpected|\n\s+at /);
  expect(run.code).toBe(exit);
  const outcomes = run.summary['outcomes'] as Record<string, number>;
  const settled = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  expect(settled + Number(run.summary['undone'])).toBe(OBJECTS);
  expect(run.summary).toMatchObject({ event: 'summary', exitCode: exit });
}

/** The same command once more, undisturbed. */
async function expectNextRunCompletes(scene: FaultScene, out: string): Promise<FaultRun> {
  scene.archive().fault = undefined;
  const next = await scene.runTo(0, [], { out });
  expect(next.stderr).not.toContain('failed');
  await expectIntact(scene, next);
  expect(leftInternally(out)).toEqual([]);
  return next;
}

/** A lake that holds all ten objects: one run makes the first, the others are its copies. */
async function heldLake(scene: FaultScene): Promise<{ out: string }> {
  const first = firsts.get(scene) ?? scene.run();
  firsts.set(scene, first);
  const { out: made, code } = await first;
  expect(code).toBe(0);
  const out = newLake(scene);
  cpSync(made, out, { recursive: true });
  return { out };
}

/** A scene takes its lakes away at its end. */
const firsts = new Map<FaultScene, Promise<FaultRun>>();
let lakes = 0;
/** A path of our own choice, for faults that must know it before the run. */
function newLake(scene: FaultScene): string {
  lakes += 1;
  return join(scene.folder, '..', `local-${lakes}`);
}

/** A new lake with the notice of the terms, so that the first file that a run writes has rows. For counted calls. */
function newLakeWithNotice(scene: FaultScene): string {
  const out = newLake(scene);
  mkdirSync(out);
  writeFileSync(join(out, NOTICE), '');
  return out;
}

describe('L: disks', () => {
  const scene = faultScene();
  const asOther = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];

  fault(
    {
      id: 'L1',
      fault: 'no room for the plan',
      outcome: 'refused with both numbers before the first request for an object',
      exit: 1,
      missing: MISSING.mount,
    },
    async (exit) => {
      const out = join(mounted('size=64k'), 'lake');
      const temp = mounted('size=10m');
      const run = await scene.run(['--temp-dir', temp], { out });
      expectFatal(run, exit, 'free, the plan needs about');
      expect(readdirSync(temp)).toEqual([]);
      expect(run.stderr).toContain('free some space, or choose another --');
      expect(run.requestsOf(VICTIM)).toBe(0);
    },
  );

  fault(
    {
      id: 'L1 D13',
      fault: 'the disk fills up while files are written',
      outcome:
        'the message says that the disk is full, no half-written file is visible; with free space the same command completes it',
      exit: 1,
      missing: MISSING.mount,
    },
    async (exit) => {
      const disk = mounted('size=2m');
      const out = join(disk, 'lake');
      const filler = join(disk, 'filler');
      scene.onPath(VICTIM, (_request, response) => {
        fill(filler);
        response.end(scene.bytesOf(VICTIM));
        return true;
      });
      const run = await scene.run([], { out });
      expectFatal(run, exit, 'the disk is full');
      expect(run.stderr).toContain('free some space and try again');
      await expectSound(out);
      rmSync(filler);
      await expectNextRunCompletes(scene, out);
    },
  );

  const full = 'the disk is full: ENOSPC';
  const failures: [id: string, fault: string, inject: string, says: string, path?: string][] = [
    // After the order, its folder, and the folder above, which is new too.
    ['L1', 'ENOSPC when a file is synced', 'fsync:error=ENOSPC:when=4', full],
    // After the writes of listing copies, which the run does not need, of the lock and of the order.
    ['L1', 'ENOSPC when a file is renamed', 'rename:error=ENOSPC:when=7', full],
    ['L1', 'ENOSPC when the manifest is written', 'write:error=ENOSPC:when=1', full, MANIFEST],
    ['L2', 'EDQUOT when the manifest is written', 'write:error=EDQUOT:when=1', `/${MANIFEST}'`, MANIFEST],
    ['L2', 'EIO when the manifest is written', 'write:error=EIO:when=1', 'EIO', MANIFEST],
    ['L2', 'EMFILE when the manifest is opened', 'openat:error=EMFILE:when=1', 'EMFILE', MANIFEST],
    ['L3', 'EIO when a file is synced', 'fsync:error=EIO:when=4', 'EIO'],
    ['L3', 'EIO when a folder is synced', 'fsync:error=EIO:when=1', 'EIO', SERIES],
    ['L3', 'EIO when the manifest is synced', 'fdatasync:error=EIO:when=1', 'EIO', MANIFEST],
  ];
  for (const [id, what, inject, says, path] of failures) {
    fault(
      {
        id,
        fault: what,
        outcome: 'the run ends, no half-written file is visible; the same command completes it',
        exit: 1,
        missing: MISSING.strace,
      },
      async (exit) => {
        const out = newLakeWithNotice(scene);
        const paths = path === undefined ? [] : [join(out, path)];
        const run = await scene.run([], { out, ...strace(inject, ...paths) });
        expectFatal(run, exit, says);
        // What and where: the error names the file.
        expect(run.stderr).toContain(path === undefined ? `${out}/.cryptodl/tmp/` : path);
        await expectSound(out);
        await expectNextRunCompletes(scene, out);
      },
    );
  }

  fault(
    {
      id: 'L2',
      fault: 'a lake folder of another user, with folders of this user below it',
      outcome: 'a warning that the notice of the terms cannot be written, ok',
      exit: 0,
      missing: MISSING.user,
    },
    async (exit) => {
      const out = newLake(scene);
      mkdirSync(out);
      for (const name of ['.cryptodl', '_manifests', 'binance']) {
        mkdirSync(join(out, name));
        chownSync(join(out, name), 65534, 65534);
      }
      chmodSync(join(scene.folder, '..'), 0o755);
      const run = await scene.runTo(exit, [], { out, wrap: asOther });
      expect(run.stderr).toContain(
        `warning: the terms of the data cannot be written to ${join(out, NOTICE)} (EACCES)`,
      );
      await expectSound(out);
      expect(leftInternally(out)).toEqual([]);
    },
  );

  fault(
    {
      id: 'L3',
      fault: 'EIO when the commit journal of a killed run is read',
      outcome: 'the run ends, journal and staged files stay for the next run',
      exit: 1,
      missing: MISSING.strace,
    },
    async (exit) => {
      const { out } = await heldLake(scene);
      const journal = join(out, '.cryptodl/commit-x.json');
      const staged = join(out, '.cryptodl/tmp/x.partial');
      mkdirSync(join(out, '.cryptodl/tmp'), { recursive: true });
      writeFileSync(staged, '');
      const content = journalOf(out, { series: SERIES, publications: [], dead: [], lines: [] });
      writeFileSync(journal, JSON.stringify(content));
      const { code, stderr } = await scene.run([], { out, ...strace('openat:error=EIO', journal) });
      expect([code, stderr]).toEqual([exit, expect.stringContaining('EIO')]);
      expect([existsSync(journal), existsSync(staged)]).toEqual([true, true]);
      await expectNextRunCompletes(scene, out);
    },
  );

  fault(
    {
      id: 'L3',
      fault: 'EIO when a file is synced, --format zip',
      outcome: 'the run ends, no unsynced zip has its final name; the same command completes it',
      exit: 1,
      missing: MISSING.strace,
    },
    async (exit) => {
      const out = newLakeWithNotice(scene);
      const zips = ['--format', 'zip'];
      const run = await scene.run(zips, { out, ...strace('fsync:error=EIO:when=4') });
      expectFatal(run, exit, 'EIO');
      expect(run.stderr).toContain(`${out}/.cryptodl/tmp/`);
      const there = filesBelow(out).filter((path) => path.startsWith('data/'));
      // Renamed only after all files of the write are synced. Each zip has a sidecar.
      expect(there.length).toBeLessThan(OBJECTS * 2);
      expect(run.summary).toMatchObject({ outcomes: { ok: there.length / 2 } });
      expect((await scene.run(zips, { out })).code).toBe(0);
      expect((await cryptodl(['verify', '--deep', '--out', out])).code).toBe(0);
    },
  );

  fault(
    {
      id: 'L2',
      fault: 'a folder of another user',
      outcome: 'refused before the first request, with the flag that changes it',
      exit: 1,
      missing: MISSING.user,
    },
    async (exit) => {
      const out = newLake(scene);
      mkdirSync(out, { mode: 0o755 });
      chmodSync(join(scene.folder, '..'), 0o755);
      const run = await scene.runTo(exit, [], { out, wrap: asOther });
      expect(run.stderr).toContain(`--out ${out} cannot be used (no permission)`);
      expect(run.requestsOf(VICTIM)).toBe(0);
      expect(filesBelow(out)).toEqual([]);
    },
  );

  fault(
    {
      id: 'L2',
      fault: 'a leftover of another user in the spool',
      outcome: 'a warning that names it, ok',
      exit: 0,
      missing: MISSING.user,
    },
    async (exit) => {
      const out = newLake(scene);
      chmodSync(join(scene.folder, '..'), 0o755);
      const left = join(out, '.cryptodl/tmp/cryptodl-run');
      mkdirSync(left, { recursive: true });
      for (const folder of [out, join(out, '.cryptodl'), join(out, '.cryptodl/tmp')])
        chownSync(folder, 65534, 65534);
      writeFileSync(join(left, 'a.zip'), 'left');
      const run = await scene.runTo(exit, [], { out, wrap: asOther });
      expect(run.stderr).toContain(
        `warning: temporary files of an earlier run cannot be removed (EACCES): ${left}`,
      );
      expect(readFileSync(join(left, 'a.zip'), 'utf8')).toBe('left');
      rmSync(left, { recursive: true });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'L2',
      fault: 'the folder of the lock belongs to another user',
      outcome: 'refused before the first request, with place and next step',
      exit: 1,
      missing: MISSING.user,
    },
    async (exit) => {
      const out = newLake(scene);
      chmodSync(join(scene.folder, '..'), 0o755);
      mkdirSync(join(out, '.cryptodl'), { recursive: true });
      const run = await scene.runTo(exit, [], { out, wrap: asOther });
      expect(run.stderr).toContain(`--out ${out}/.cryptodl cannot be used (no permission)`);
      expect(run.stderr).toContain('choose another --out');
      expect(run.requestsOf(VICTIM)).toBe(0);
    },
  );

  fault(
    {
      id: 'L1',
      fault: 'a limit of file sizes (ulimit -f)',
      outcome: 'the run ends and names the limit; without the limit the same command completes the lake',
      exit: 1,
    },
    async (exit) => {
      const out = newLake(scene);
      const run = await scene.run([], { out, wrap: ['sh', '-c', 'ulimit -f 8; exec "$@"', 'sh'] });
      expectFatal(run, exit, 'ulimit -f');
      await expectNextRunCompletes(scene, out);
    },
  );

  fault(
    {
      id: 'L2',
      fault: 'a lake on a disk that is mounted read-only',
      outcome: 'refused before the first request; once it is writable the same command continues',
      exit: 1,
      missing: MISSING.mount,
    },
    async (exit) => {
      const { out } = await scene.run(['--to', '2026-10-03']);
      const release = readOnly(out);
      const run = await scene.runTo(exit, [], { out });
      expect(run.stderr).toContain(`--out ${out}/.cryptodl cannot be used (the file system is read-only)`);
      expect(run.stderr).toContain('choose another --out');
      expect(run.stderr).not.toContain('unexpected');
      expect(run.requestsOf(VICTIM)).toBe(0);
      release();
      await expectNextRunCompletes(scene, out);
    },
  );

  fault(
    {
      id: 'L2',
      fault: '64 descriptors for everything (ulimit -n)',
      outcome: 'ok',
      exit: 0,
    },
    async (exit) => {
      const run = await scene.run([], { wrap: ['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh'] });
      expect(run.code).toBe(exit);
      expect(run.stderr).toContain('instead of 128: this process may open only 64 files (ulimit -n)');
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'L2',
      fault: 'no descriptor for a socket, for a moment (EMFILE)',
      outcome: 'attempted again, ok',
      exit: 0,
      missing: MISSING.strace,
    },
    async (exit) => {
      const run = await scene.runTo(exit, [], strace('socket:error=EMFILE:when=4..5'));
      expect(Number(run.summary['retries'])).toBeGreaterThan(0);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'L2',
      fault: 'a path too long for the file system (ENAMETOOLONG)',
      outcome: 'refused before the first request, with the flag that changes it',
      exit: 1,
    },
    async (exit) => {
      const run = await scene.runTo(exit, [], { out: join(newLake(scene), 'x'.repeat(300)) });
      expect(run.stderr).toContain('cannot be used (the name is too long)');
      expect(run.stderr).toContain('choose another --out');
      expect(run.requestsOf(VICTIM)).toBe(0);
    },
  );

  fault(
    {
      id: 'L13',
      fault: 'a full inode table',
      outcome:
        'the message says that the disk is full, no half-written file is visible; with free space the same command completes it',
      exit: 1,
      missing: MISSING.mount,
    },
    async (exit) => {
      const disk = mounted('size=16m,nr_inodes=40');
      const out = join(disk, 'lake');
      mkdirSync(join(disk, 'many'));
      scene.onPath(VICTIM, (_request, response) => {
        fillInodes(join(disk, 'many'));
        response.end(scene.bytesOf(VICTIM));
        return true;
      });
      const run = await scene.run([], { out });
      expectFatal(run, exit, 'the disk is full');
      await expectSound(out);
      rmSync(join(disk, 'many'), { recursive: true });
      await expectNextRunCompletes(scene, out);
    },
  );

  for (const error of ['EINVAL', 'EOPNOTSUPP']) {
    fault(
      {
        id: 'L13',
        fault: `a network file system that cannot sync folders (${error})`,
        outcome: 'ignored, ok',
        exit: 0,
        missing: MISSING.strace,
      },
      async (exit) => {
        const out = newLake(scene);
        const folders = SYMBOLS.map((symbol) => join(out, seriesOf(symbol)));
        const run = await scene.runTo(exit, [], { out, ...strace(`fsync:error=${error}`, ...folders, out) });
        await expectIntact(scene, run);
      },
    );
  }
});

function fill(path: string): void {
  const block = Buffer.alloc(16 * 1024, 1);
  for (;;) {
    try {
      appendFileSync(path, block);
    } catch {
      return;
    }
  }
}

function fillInodes(folder: string): void {
  for (let index = 0; ; index += 1) {
    try {
      writeFileSync(join(folder, String(index)), '');
    } catch {
      return;
    }
  }
}

describe('L: signals and crashes', () => {
  const scene = faultScene();

  /** A run that stands still with the victim unanswered. */
  async function stalledRun(
    out: string,
    flags: readonly string[] = [],
  ): Promise<{ child: ChildProcess; ended: Promise<FaultRun>; answer: () => void }> {
    const held: ServerResponse[] = [];
    let child: ChildProcess | undefined;
    const stalled = new Promise<void>((resolve) => {
      scene.onPath(VICTIM, (_request, response) => {
        held.push(response);
        resolve();
        return true;
      });
    });
    const ended = scene.run(flags, { out, onSpawn: (spawned) => (child = spawned) });
    await stalled;
    if (child === undefined) throw new Error('nothing was spawned');
    return {
      child,
      ended,
      answer: () => {
        scene.archive().fault = undefined;
        for (const response of held) if (!response.destroyed) response.end(scene.bytesOf(VICTIM));
      },
    };
  }

  const signals = [
    { id: 'L4', signal: 'SIGINT', exit: 130 },
    { id: 'L5', signal: 'SIGTERM', exit: 143 },
  ] as const;
  for (const { id, signal, exit: code } of signals) {
    fault(
      {
        id,
        fault: `${signal} while a download is in progress`,
        outcome:
          'ended in order, and the summary counts the tasks that are not done; the same command completes it',
        exit: code,
      },
      async (exit) => {
        const out = newLake(scene);
        const { child, ended } = await stalledRun(out);
        child.kill(signal);
        const run = await ended;
        expectFatal(run, exit, `ended by ${signal}`);
        expect(Number(run.summary['undone'])).toBeGreaterThan(0);
        expect(run.summary).toMatchObject({ outcomes: { failed: 0 }, failures: null });
        expect(leftInternally(out)).toEqual([]);
        await expectSound(out);
        await expectNextRunCompletes(scene, out);
      },
    );
  }

  fault(
    { id: 'L4', fault: 'SIGINT twice', outcome: 'ended at once; the same command completes it', exit: 130 },
    async (exit) => {
      const out = newLake(scene);
      const { child, ended } = await stalledRun(out);
      child.kill('SIGINT');
      child.kill('SIGINT');
      expect((await ended).code).toBe(exit);
      await expectSound(out);
      await expectNextRunCompletes(scene, out);
    },
  );

  const kills: { at: string; inject: string; path?: string }[] = [
    { at: 'while the staged file is synced', inject: 'fsync:signal=KILL:when=4' },
    { at: 'at the rename of the first file', inject: 'rename:signal=KILL:when=3' },
    { at: 'while the folder is synced', inject: 'fsync:signal=KILL:when=1', path: SERIES },
    { at: 'at the first write of the manifest', inject: 'write:signal=KILL:when=1', path: MANIFEST },
    { at: 'while the manifest is synced', inject: 'fdatasync:signal=KILL:when=1', path: MANIFEST },
    { at: 'when the lock is given back', inject: 'unlink:signal=KILL:when=1' },
  ];
  for (const { at, inject, path } of kills) {
    fault(
      {
        id: 'L6',
        fault: `SIGKILL ${at}`,
        outcome: 'no half-written file is visible, no lock is left; the same command completes it',
        exit: 0,
        missing: MISSING.strace,
      },
      async (exit) => {
        const out = newLakeWithNotice(scene);
        const paths = path === undefined ? [] : [join(out, path)];
        const run = await scene.run([], { out, ...strace(inject, ...paths) });
        expect(run.signal).toBe('SIGKILL');
        await expectSound(out);
        expect((await expectNextRunCompletes(scene, out)).code).toBe(exit);
      },
    );
  }

  fault(
    {
      id: 'L7',
      fault: 'power loss, by the order of the system calls',
      outcome:
        'every file is synced before it is renamed, every folder above it and the manifest before the run ends',
      exit: 0,
      missing: MISSING.strace,
    },
    async (exit) => {
      const out = newLake(scene);
      const log = `${out}.log`;
      await scene.runTo(exit, [], { out, ...watched('fsync,fdatasync,rename', log) });
      const calls = readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line.includes(out) && !line.includes('lock'));
      const indexOf = (text: string, from = 0): number =>
        calls.findIndex((line, at) => at >= from && line.includes(text));
      for (const symbol of SYMBOLS) {
        const rename = calls.findIndex(
          (line) => line.includes('rename(') && line.includes(`${symbol}/2026-10.parquet`),
        );
        const staged = /tmp\/([\w-]+\.partial)/.exec(calls[rename] ?? '')?.[1] ?? 'none';
        expect(indexOf(staged)).toBeGreaterThanOrEqual(0);
        expect(indexOf(staged)).toBeLessThan(rename);
        const venue = ['/binance', '/binance/um', '/binance/um/metrics'];
        for (const folder of ['', ...venue, '/_manifests', ...venue.map((path) => `/_manifests${path}`)])
          expect(calls.filter((line) => line.includes(`${out}${folder}>)`))).not.toEqual([]);
        const folder = indexOf(`symbol=${symbol}>)`, rename);
        const manifest = indexOf(`symbol=${symbol}.jsonl>)`, rename);
        expect(folder).toBeGreaterThan(rename);
        expect(manifest).toBeGreaterThan(folder);
        expect(indexOf('/_manifests/binance/um/metrics>)', manifest)).toBeGreaterThan(manifest);
      }
    },
  );

  fault(
    {
      id: 'L7',
      fault: 'power loss while a file replaces others, by the order of the system calls',
      outcome:
        'staged files and their folder are synced before the journal appears, and the journal before an old file is removed',
      exit: 0,
      missing: MISSING.strace,
    },
    async (exit) => {
      const out = newLake(scene);
      expect((await scene.run(['--partition', 'day'], { out })).code).toBe(0);
      const log = `${out}.log`;
      const flags = ['--partition', 'month', '--force'];
      await scene.runTo(exit, flags, { out, ...watched('fsync,rename,unlink', log) });
      const calls = readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line.includes(out) && !line.includes('lock'));
      const at = (pattern: RegExp): number => calls.findIndex((line) => pattern.test(line));
      const order = [
        /fsync\(.*\.cryptodl\/tmp\/[\w-]+\.partial>/,
        /fsync\(.*\.cryptodl\/tmp>/,
        /fsync\(.*commit-[\w-]+\.json\.partial>/,
        /rename\(.*commit-[\w-]+\.json\.partial/,
        /unlink\(.*2026-10-01\.parquet/,
      ].map(at);
      expect(order).not.toContain(-1);
      expect(order).toEqual([...order].sort((a, b) => a - b));
      const journal = order[3] ?? 0;
      const synced = calls.findIndex((line, index) => index > journal && /fsync\(.*\.cryptodl>/.test(line));
      expect(synced).toBeGreaterThan(journal);
      expect(synced).toBeLessThan(order[4] ?? 0);
    },
  );

  fault(
    {
      id: 'L8',
      fault: 'no heap left, so that V8 ends the process',
      outcome: 'no half-written file is visible, no lock is left; the same command completes it',
      exit: 0,
    },
    async (exit) => {
      const out = newLake(scene);
      const run = await scene.run([], { out, env: { NODE_OPTIONS: '--max-old-space-size=8' } });
      expect(run.signal ?? run.code).not.toBe(0);
      await expectSound(out);
      expect((await expectNextRunCompletes(scene, out)).code).toBe(exit);
    },
  );

  fault(
    {
      id: 'L9',
      fault: 'SIGSTOP with a download in progress for longer than every timeout, then SIGCONT',
      outcome: 'each request in progress is sent at most once more, ok',
      exit: 0,
    },
    async (exit) => {
      const out = newLake(scene);
      const { child, ended, answer } = await stalledRun(
        out,
        '--headers-timeout 1s --idle-timeout 1s'.split(' '),
      );
      child.kill('SIGSTOP');
      answer();
      await sleep(1500);
      child.kill('SIGCONT');
      const run = await ended;
      expect(run.code).toBe(exit);
      for (const symbol of SYMBOLS)
        for (const day of [1, 2, 3, 4, 5])
          expect(run.requestsOf(keyOf(symbol, `2026-10-0${day}`))).toBeLessThanOrEqual(2);
      await expectIntact(scene, run);
    },
  );

  const jumps = [
    { what: 'a day ahead', to: '+1d' },
    { what: 'a day back', to: '-1d' },
  ];
  for (const { what, to } of jumps) {
    fault(
      {
        id: 'L10',
        fault: `the wall clock jumps ${what} during the run`,
        outcome: 'durations stay correct, ok; the next run skips all objects',
        exit: 0,
        missing: MISSING.faketime,
      },
      async (exit) => {
        const out = newLake(scene);
        const file = `${out}.clock`;
        writeFileSync(file, '+0');
        scene.onPath(VICTIM, () => {
          writeFileSync(file, to);
          return false;
        });
        const run = await scene.runTo(exit, [], { out, env: fakeClock(file) });
        // The jump was seen: what was committed after it has its time.
        const aheadMs = Date.parse(String(wholeLines(join(out, MANIFEST))[0]?.['at'])) - Date.now();
        expect(Math.round(aheadMs / 86_400_000)).toBe(Number.parseInt(to, 10));
        expect(Number(run.summary['elapsedMs'])).toBeGreaterThan(0);
        expect(Number(run.summary['elapsedMs'])).toBeLessThan(3600_000);
        await expectIntact(scene, run);
        expect((await expectNextRunCompletes(scene, out)).summary).toMatchObject({
          outcomes: { skipped: 10 },
        });
      },
    );
  }

  fault(
    {
      id: 'L10',
      fault: 'time zones at both ends of the world, and one with summer time',
      outcome: 'the same files, byte for byte',
      exit: 0,
    },
    async (exit) => {
      const digests = new Set<string>();
      for (const TZ of ['Pacific/Kiritimati', 'Pacific/Pago_Pago', 'America/New_York']) {
        const run = await scene.runTo(exit, [], { env: { TZ } });
        digests.add(sha256(join(run.out, FILE)));
      }
      const usual = await scene.run();
      expect([...digests]).toEqual([sha256(join(usual.out, FILE))]);
    },
  );
});

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

describe('L: what is done to the lake behind our back', () => {
  const scene = faultScene();

  fault(
    {
      id: 'L11',
      fault: 'the last line of a manifest is incomplete',
      outcome: 'the line is removed, its object is fetched again with its partition; ok',
      exit: 0,
    },
    async (exit) => {
      const { out } = await heldLake(scene);
      truncateSync(join(out, MANIFEST), statSync(join(out, MANIFEST)).size - 100);
      const run = await scene.runTo(exit, [], { out });
      expect(run.requestsOf(keyOf('BTCUSDT', '2026-10-05'))).toBe(1);
      expect(run.requestsOf(keyOf('ETHUSDT', '2026-10-05'))).toBe(0);
      expect(new Set(manifestLines(join(out, SERIES)).map((line) => line['period'])).size).toBe(5);
      await expectIntact(scene, run);
    },
  );

  const damages: { what: string; damage: (text: string) => string; says: string }[] = [
    {
      what: 'garbage in the middle of a manifest',
      damage: (text) => text.replace('\n', '\n\u0000\u0000oops\n'),
      says: 'symbol=BTCUSDT.jsonl line 2 is damaged',
    },
    {
      what: 'a line in the middle that is cut short',
      damage: (text) => text.replace(/.{200}\n/, '\n'),
      says: 'symbol=BTCUSDT.jsonl line 1 is damaged',
    },
    {
      what: 'a line of a newer version',
      damage: (text) => text.replace('"v":1', '"v":2'),
      says: 'symbol=BTCUSDT.jsonl line 1 has version 2; this cryptodl reads version 1',
    },
  ];
  for (const { what, damage, says } of damages) {
    fault(
      {
        id: 'L11',
        fault: what,
        outcome:
          'the run ends before the first object, with file and line; nothing is changed; after its repair the run skips all objects',
        exit: 1,
      },
      async (exit) => {
        const { out } = await heldLake(scene);
        const sound = readFileSync(join(out, MANIFEST), 'utf8');
        writeFileSync(join(out, MANIFEST), damage(sound));
        const before = sha256(join(out, FILE));
        const run = await scene.runTo(exit, [], { out });
        expect(run.stderr).toContain(says);
        expect(run.requestsOf(VICTIM)).toBe(0);
        expect(readFileSync(join(out, MANIFEST), 'utf8')).toBe(damage(sound));
        expect(sha256(join(out, FILE))).toBe(before);
        writeFileSync(join(out, MANIFEST), sound);
        expect((await scene.run([], { out })).summary).toMatchObject({ outcomes: { skipped: 10 } });
      },
    );
  }

  fault(
    {
      id: 'L11',
      fault: 'a damaged line that is deleted, as the message says',
      outcome: 'its object is fetched again, no row is in the lake twice; ok',
      exit: 0,
    },
    async (exit) => {
      const { out } = await heldLake(scene);
      const lines = readFileSync(join(out, MANIFEST), 'utf8').split('\n');
      writeFileSync(join(out, MANIFEST), lines.filter((_, index) => index !== 2).join('\n'));
      const run = await scene.runTo(exit, [], { out });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'L11',
      fault: 'a manifest that cannot be written',
      outcome: 'the run ends and says so; when it is writable again, the same command completes it',
      exit: 1,
      missing: MISSING.mount,
    },
    async (exit) => {
      const { out } = await scene.run(['--to', '2026-10-03']);
      const release = readOnly(join(out, MANIFEST));
      const run = await scene.run([], { out });
      expectFatal(run, exit, 'EROFS');
      expect(run.stderr).toContain(MANIFEST);
      await expectSound(out);
      release();
      await expectNextRunCompletes(scene, out);
    },
  );

  const noticed = 'noticed, rebuilt from all its objects, the other is skipped; ok';
  const twice = 'the objects are fetched again and the files replaced, no row is in the lake twice; ok';
  const edits: [id: string, fault: string, outcome: string, edit: (out: string) => void][] = [
    ['L11', 'a missing manifest', twice, (out) => rmSync(join(out, MANIFEST))],
    ['L12', 'a file is deleted', noticed, (out) => rmSync(join(out, FILE))],
    ['L12', 'a file is cut short', noticed, (out) => truncateSync(join(out, FILE), 1000)],
    ['L12', 'a file is emptied', noticed, (out) => truncateSync(join(out, FILE), 0)],
    ['L12', 'a file has grown', noticed, (out) => appendFileSync(join(out, FILE), 'more')],
  ];
  for (const [id, what, outcome, edit] of edits) {
    fault({ id, fault: what, outcome, exit: 0 }, async (exit) => {
      const { out } = await heldLake(scene);
      edit(out);
      const run = await scene.runTo(exit, [], { out });
      expect(run.summary).toMatchObject({ outcomes: { ok: 5, skipped: 5 } });
      await expectIntact(scene, run);
    });
  }

  fault(
    {
      id: 'L12',
      fault: 'a folder lies in place of a file',
      outcome: 'the run ends and names the folder; without the folder the same command completes the lake',
      exit: 1,
    },
    async (exit) => {
      const { out } = await heldLake(scene);
      rmSync(join(out, FILE));
      mkdirSync(join(out, FILE));
      const run = await scene.run([], { out });
      expectFatal(run, exit, FILE);
      rmSync(join(out, FILE), { recursive: true });
      await expectNextRunCompletes(scene, out);
    },
  );

  fault(
    {
      id: 'L12',
      fault: 'bytes of a file are edited, its size unchanged',
      outcome: 'not noticed by a run that has nothing to add; rebuilt by --force; ok',
      exit: 0,
    },
    async (exit) => {
      const { out } = await heldLake(scene);
      const bytes = readFileSync(join(out, FILE));
      writeFileSync(join(out, FILE), bytes.fill(0, 1000, 2000));
      expect((await scene.run([], { out })).summary).toMatchObject({ outcomes: { skipped: 10 } });
      const run = await scene.runTo(exit, ['--force'], { out });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'L14',
      fault: 'a lake behind a symlink',
      outcome: 'the same lake under both names: the second run skips all objects; ok',
      exit: 0,
    },
    async (exit) => {
      const real = newLake(scene);
      mkdirSync(real);
      symlinkSync(real, `${real}-link`);
      const run = await scene.runTo(exit, [], { out: `${real}-link` });
      await expectIntact(scene, run);
      expect((await scene.run([], { out: real })).summary).toMatchObject({ outcomes: { skipped: 10 } });
    },
  );

  fault(
    {
      id: 'L14',
      fault: 'a symlink out of the lake in place of a file',
      outcome: 'the link is replaced, its target is not touched; ok',
      exit: 0,
    },
    async (exit) => {
      const out = newLake(scene);
      const elsewhere = `${out}-elsewhere`;
      writeFileSync(elsewhere, 'not yours');
      mkdirSync(join(out, SERIES), { recursive: true });
      symlinkSync(elsewhere, join(out, FILE));
      const run = await scene.runTo(exit, [], { out });
      expect(readFileSync(elsewhere, 'utf8')).toBe('not yours');
      await expectIntact(scene, run);
    },
  );

  const readers: { what: string; wrap: string }[] = [
    { what: 'a reader that ends early (| head -n 1)', wrap: '{ "$@"; echo $? >&3; } | head -n 1' },
    { what: 'no stdout at all (>&-)', wrap: '"$@" >&-; echo $? >&3' },
    { what: 'no stderr at all (2>&-)', wrap: '"$@" 2>&-; echo $? >&3' },
    { what: 'stderr on a full disk (/dev/full)', wrap: '"$@" 2>/dev/full; echo $? >&3' },
  ];
  for (const { what, wrap } of readers) {
    fault({ id: 'L15', fault: what, outcome: 'the lake is complete', exit: 0 }, async (exit) => {
      const out = newLake(scene);
      const said = `${out}.code`;
      const run = await scene.run([], { out, wrap: ['sh', '-c', `exec 3>${said}; ${wrap}`, 'sh'] });
      expect(run.stderr).not.toContain('EPIPE');
      expect(readFileSync(said, 'utf8').trim()).toBe(String(exit));
      await expectIntact(scene, { out });
    });
  }

  fault(
    {
      id: 'L15',
      fault: 'stdout on a full disk (/dev/full)',
      outcome:
        'the run ends with one line that names the cause; with free space the same command completes it',
      exit: 1,
    },
    async (exit) => {
      const out = newLake(scene);
      const run = await scene.runTo(exit, [], { out, wrap: ['sh', '-c', 'exec "$@" >/dev/full', 'sh'] });
      expect(run.stderr).toContain('cryptodl: stdout cannot be written (ENOSPC)\n');
      expect(run.stderr).not.toMatch(/\n\s+at /);
      await expectSound(out);
      await expectNextRunCompletes(scene, out);
    },
  );

  fault(
    {
      id: 'L15',
      fault: 'no terminal, NO_COLOR, a terminal of 1 column',
      outcome: 'plain text without a control character; ok',
      exit: 0,
    },
    async (exit) => {
      const env = { NO_COLOR: '1', COLUMNS: '1', TERM: 'dumb' };
      const run = await scene.runTo(exit, ['--progress', 'auto'], { env });
      // eslint-disable-next-line no-control-regex -- control characters are what is looked for
      expect(run.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
      await expectIntact(scene, run);
    },
  );
});
