import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import {
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { acquireLock } from '../../../src/lake/lock.js';
import { bindSocket } from '../../../src/lake/lock.js';
import type { LockRequest } from '../../../src/lake/lock.js';
import { systemClock } from '../../../src/model/clock.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { built } from '../../helpers/built.js';
import { sized } from '../../helpers/tier-size.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const NOW = Date.UTC(2024, 0, 15, 12);
const ME = {
  command: 'cryptodl vision',
  clock: { ...systemClock, now: () => NOW },
  onLost: (error: Error) => {
    throw error;
  },
};
/** Time passes only by the waits of the lock itself, and these take no real time. */
function withoutWaits(): LockRequest {
  let waitedMs = 0;
  const pass = async (ms: number): Promise<void> => {
    waitedMs += ms;
    await setImmediate();
  };
  return { ...ME, clock: { ...ME.clock, monotonic: () => waitedMs, sleep: pass } };
}
const onLinux = process.platform === 'linux';
/** Processes that want a lock at the same time. */
const RACERS = sized(20, 8);
/** `acquireLock` and `me(command)` for its second argument. */
const IMPORTS = `
  const { acquireLock } = await import(${JSON.stringify(built('lake/lock.js'))});
  const { systemClock } = await import(${JSON.stringify(built('model/clock.js'))});
  const me = (command) => ({ command, clock: { ...systemClock, now: () => ${NOW} }, onLost: () => process.exit(1) });`;

let root: string;
let directory: string;
let lockFile: string;
let children: ChildProcess[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cryptodl-lock-'));
  directory = join(root, 'data', '.cryptodl');
  lockFile = join(directory, 'lock.json');
  children = [];
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

/** A process that runs `body` with `acquireLock`, `me` and `directory` in scope. `withoutSockets` plays another platform. */
function startChild(body: string, withoutSockets = false): ChildProcess {
  const script = `
    ${withoutSockets ? "Object.defineProperty(process, 'platform', { value: 'elsewhere' });" : ''}
    ${IMPORTS}
    const directory = ${JSON.stringify(directory)};
    ${body}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
}

async function outputOf(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const chunk of child.stdout ?? []) text += String(chunk);
  return text;
}

async function firstLine(child: ChildProcess): Promise<string> {
  for await (const chunk of child.stdout?.iterator({ destroyOnReturn: false }) ?? [])
    return String(chunk).trim();
  return '';
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

const HOLD = `await acquireLock(directory, me('cryptodl held'));
  console.log('held');
  setInterval(() => undefined, 1000);`;

async function startHolder(withoutSockets = false): Promise<ChildProcess> {
  const child = startChild(HOLD, withoutSockets);
  expect(await firstLine(child)).toBe('held');
  return child;
}

function readLock(): Record<string, unknown> {
  const holder: Record<string, unknown> = JSON.parse(readFileSync(lockFile, 'utf8'));
  return holder;
}

/** The message of a refusal. */
async function refusal(request: LockRequest = ME): Promise<string> {
  const error: unknown = await acquireLock(directory, request).catch((caught: unknown) => caught);
  return error instanceof CryptodlError && error.code === 'locked'
    ? error.message
    : `not refused: ${String(error)}`;
}

/** Takes the lock and gives it back; resolves with what is left in the folder. */
async function takeAndRelease(): Promise<string[]> {
  const lock = await acquireLock(directory, ME);
  expect(readLock()['pid']).toBe(process.pid);
  await lock.release();
  return readdirSync(directory);
}

/** The file of a run that ended without a word, with what a test wants to be different about it. */
async function leaveFile(changes: Record<string, unknown>): Promise<void> {
  const lock = await acquireLock(directory, ME);
  const text = JSON.stringify({ ...readLock(), nonce: 'left-behind', ...changes });
  await lock.release();
  writeFileSync(lockFile, text);
}

describe('within one process', () => {
  it('creates the folder, names the holder of the lake, and leaves nothing behind', async () => {
    const lock = await acquireLock(directory, ME);
    expect(readLock()).toMatchObject({
      pid: process.pid,
      host: hostname(),
      command: 'cryptodl vision',
      startedAt: '2024-01-15T12:00:00.000Z',
    });
    expect(readdirSync(directory)).toEqual(['lock.json']);
    await lock.release();
    expect(readdirSync(directory)).toEqual([]);
    expect(await takeAndRelease()).toEqual([]);
  });

  it('locks two lakes independently', async () => {
    const one = await acquireLock(directory, ME);
    const other = await acquireLock(join(root, 'other'), ME);
    await one.release();
    expect(readdirSync(join(root, 'other'))).toEqual(['lock.json']);
    await other.release();
  });

  it('can be released twice, and does not remove the lock of another run', async () => {
    const lock = await acquireLock(directory, ME);
    const theirs = JSON.stringify({ ...readLock(), nonce: 'somebody else' });
    writeFileSync(lockFile, theirs);
    await lock.release();
    await lock.release();
    expect(readFileSync(lockFile, 'utf8')).toBe(theirs);
  });
});

describe('a file that was left behind', () => {
  it.each([
    ['of a process that is gone', { pid: 2 ** 22 + 1 }],
    ['of an earlier boot', { bootId: 'an earlier one' }],
    ['of an earlier process with a pid in use', { processStart: '1' }],
  ])('is taken over: %s', async (_what, changes) => {
    await leaveFile(changes);
    expect(await takeAndRelease()).toEqual([]);
  });

  it.each(['', '{"pid": 12', '[]', '{"pid":1}', '\0\0\0\0'])('is taken over when torn: %j', async (text) => {
    mkdirSync(directory, { recursive: true });
    writeFileSync(lockFile, text);
    expect(await takeAndRelease()).toEqual([]);
  });

  it('is respected while its process runs, with and without the socket', async () => {
    await leaveFile({});
    expect(await refusal()).toMatch(/another run is writing to this lake: pid/);
  });

  it('cleans up the claim of a process that was killed while it took the lock', async () => {
    await leaveFile({ pid: 2 ** 22 + 1 });
    for (const kind of ['claim', 'tmp']) {
      writeFileSync(
        join(directory, `lock-00000000-0000-4000-8000-000000000000.${kind}`),
        readFileSync(lockFile),
      );
    }
    expect(await takeAndRelease()).toEqual([]);
  });
});

describe('a lock of another host or container', () => {
  const FOREIGN = { host: 'elsewhere' };

  /** As its file system stamped its last renewal. */
  async function leaveRenewed(secondsAgo: number, changes: Record<string, unknown> = FOREIGN): Promise<void> {
    await leaveFile(changes);
    const at = Date.now() / 1000 - secondsAgo;
    utimesSync(lockFile, at, at);
  }

  it.each([
    ['another host', 61, FOREIGN],
    ['another container', 61, { pidNamespace: 'pid:[1]' }],
    ['another host that stamped it two hours ahead', -7200, FOREIGN],
  ])(
    'of %s is taken over without a heartbeat for a minute, and its holder is named',
    async (_what, secondsAgo, changes) => {
      await leaveRenewed(secondsAgo, changes);
      const lock = await acquireLock(directory, ME);
      expect(lock.takenFrom).toMatchObject({ ...changes, command: 'cryptodl vision' });
      expect(readLock()['pid']).toBe(process.pid);
      await lock.release();
      expect(readdirSync(directory)).toEqual([]);
    },
  );

  it.each([
    ['that was renewed within a minute', 45, FOREIGN],
    ['whose file system is ahead', -600, FOREIGN],
    ['of a process that runs here', 86_400, {}],
  ])('%s is respected', async (_what, secondsAgo, changes) => {
    await leaveRenewed(secondsAgo, changes);
    expect(await refusal()).toMatch(/holds the lock of this lake: pid|is writing to this lake: pid/);
    expect(readdirSync(directory)).toEqual(['lock.json']);
  });

  it.each([-600_000, 600_000])('is judged without the clock of this host (%d ms off)', async (offset) => {
    const clock = { ...systemClock, now: () => Date.now() + offset };
    await leaveRenewed(45);
    await expect(acquireLock(directory, { ...ME, clock })).rejects.toMatchObject({ code: 'locked' });
    const now = Date.now() / 1000;
    utimesSync(lockFile, now - 61, now - 61);
    await (await acquireLock(directory, { ...ME, clock })).release();
  });

  it('is taken over by exactly one of many hosts', async () => {
    await leaveRenewed(61);
    const go = join(root, 'go');
    const racers = Array.from({ length: RACERS }, (_, number) =>
      startChild(
        `import os from 'node:os';
        import { syncBuiltinESMExports } from 'node:module';
        import { existsSync } from 'node:fs';
        os.hostname = () => 'host-${number}';
        syncBuiltinESMExports();
        console.log('ready');
        while (!existsSync(${JSON.stringify(go)})) await new Promise((resolve) => setTimeout(resolve, 5));
        console.log(await acquireLock(directory, me('race')).then(() => 'won', (error) => error.code));
        setInterval(() => undefined, 1000);`,
        true,
      ),
    );
    await Promise.all(racers.map(firstLine));
    writeFileSync(go, '');
    const results = await Promise.all(racers.map(firstLine));
    expect(results.filter((result) => result === 'won')).toHaveLength(1);
    expect(results.filter((result) => result === 'locked')).toHaveLength(RACERS - 1);
  });
});

describe('a heartbeat', () => {
  const age = (): number => Date.now() - statSync(lockFile).mtimeMs;
  const old = (): void => {
    utimesSync(lockFile, 1000, 1000);
  };
  /** Real files under virtual time: a renewal takes some turns of the disk. */
  async function until(check: () => boolean): Promise<void> {
    for (let turn = 0; turn < 400 && !check(); turn += 1) await sleep(5);
    expect(check()).toBe(true);
  }

  /** The lock is renewed every 15 seconds. */
  async function renewedThrice(clock: VirtualClock): Promise<void> {
    for (let beat = 0; beat < 3; beat += 1) {
      old();
      await clock.advance(15_000);
      await until(() => age() < 60_000);
      await until(() => clock.waiting === 1);
    }
  }

  it('renews the lock every 15 seconds, until it is released', async () => {
    const clock = new VirtualClock();
    const lock = await acquireLock(directory, { ...ME, clock });
    const text = readFileSync(lockFile, 'utf8');
    await renewedThrice(clock);
    expect(readFileSync(lockFile, 'utf8')).toBe(text);
    await lock.release();
    expect(clock.waiting).toBe(0);
  });

  it('finds out that another run has the lock, tells it once, and leaves its file alone', async () => {
    const clock = new VirtualClock();
    const lost: Error[] = [];
    const lock = await acquireLock(directory, { ...ME, clock, onLost: (error) => lost.push(error) });
    const theirs = JSON.stringify({ ...readLock(), nonce: 'theirs', pid: 7, host: 'elsewhere' });
    writeFileSync(lockFile, theirs);
    old();
    await clock.advance(15_000);
    await until(() => lost.length > 0);
    await clock.advance(60_000);
    await expect(lock.confirm()).rejects.toMatchObject({
      code: 'locked',
      message: expect.stringContaining('pid 7 on elsewhere has taken it over') as unknown,
    });
    expect([lost.length, statSync(lockFile).mtimeMs]).toEqual([1, 1_000_000]);
    await lock.release();
    expect(readFileSync(lockFile, 'utf8')).toBe(theirs);
  });

  it.each<[string, () => void]>([
    [
      'is gone',
      () => {
        rmSync(lockFile);
      },
    ],
    [
      'is torn',
      () => {
        writeFileSync(lockFile, '{');
      },
    ],
  ])('finds out that the lock file %s', async (_what, harm) => {
    const clock = new VirtualClock();
    const lost: Error[] = [];
    const lock = await acquireLock(directory, { ...ME, clock, onLost: (error) => lost.push(error) });
    harm();
    await clock.advance(15_000);
    await until(() => lost.length > 0);
    await expect(lock.confirm()).rejects.toMatchObject({
      code: 'locked',
      message: expect.stringContaining('lock.json is gone or damaged') as unknown,
    });
    await lock.release();
  });

  it('writes to no file that a symbolic link in place of the lock leads to', async () => {
    const clock = new VirtualClock();
    const lock = await acquireLock(directory, { ...ME, clock });
    const elsewhere = join(root, 'elsewhere');
    renameSync(lockFile, elsewhere);
    utimesSync(elsewhere, 1000, 1000);
    symlinkSync(elsewhere, lockFile);
    await clock.advance(45_000);
    await expect(lock.confirm()).rejects.toMatchObject({ code: 'ELOOP' });
    expect(statSync(elsewhere).mtimeMs).toBe(1_000_000);
    await lock.release();
  });

  it('that came in time spares a commit the look at the lock file', async () => {
    const clock = new VirtualClock();
    const lock = await acquireLock(directory, { ...ME, clock, onLost: () => undefined });
    await renewedThrice(clock);
    // Renewed a moment ago: nothing is read.
    writeFileSync(lockFile, JSON.stringify({ ...readLock(), nonce: 'theirs' }));
    await expect(lock.confirm()).resolves.toBeUndefined();
    await lock.release();
  });

  it.each([
    ['by the wall clock', { now: 31_000, monotonic: 0 }],
    ['by a wall clock that was set back', { now: -1, monotonic: 0 }],
    ['by the monotonic clock', { now: 0, monotonic: 31_000 }],
  ])('that is late %s is looked at before a commit', async (_what, late) => {
    const clock = new VirtualClock();
    let isLate = false;
    const lock = await acquireLock(directory, {
      ...ME,
      onLost: () => undefined,
      clock: {
        sleep: (delayMs) => clock.sleep(delayMs),
        timer: (delayMs, callback) => clock.timer(delayMs, callback),
        now: () => clock.now() + (isLate ? late.now : 0),
        monotonic: () => clock.monotonic() + (isLate ? late.monotonic : 0),
      },
    });
    writeFileSync(lockFile, JSON.stringify({ ...readLock(), nonce: 'theirs' }));
    // Renewed a moment ago: nothing is read.
    await lock.confirm();
    isLate = true;
    await expect(lock.confirm()).rejects.toMatchObject({ code: 'locked' });
    await lock.release();
  });

  it('that the disk refuses is tried again, and a commit is told of it', async () => {
    const clock = new VirtualClock();
    const lock = await acquireLock(directory, { ...ME, clock });
    const text = readFileSync(lockFile);
    rmSync(lockFile);
    mkdirSync(lockFile);
    await clock.advance(45_000);
    await expect(lock.confirm()).rejects.toMatchObject({ code: 'EISDIR' });
    rmSync(lockFile, { recursive: true });
    writeFileSync(lockFile, text);
    await lock.confirm();
    await lock.release();
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe('files and sockets of other users', () => {
  it.skipIf(!onLinux)(
    'a socket of the name of the lake is named, with the way to find its process',
    async () => {
      await (await acquireLock(directory, ME)).release();
      const squatter = await bindSocket(directory);
      await expect(acquireLock(directory, ME)).rejects.toMatchObject({
        code: 'locked',
        message: expect.stringContaining('holds the lock socket of this lake') as unknown,
        hint: expect.stringMatching(/ss .*grep cryptodl-[0-9a-f]{15}$/) as unknown,
      });
      if (typeof squatter === 'object') await squatter.release();
    },
  );

  const forged = (): string => join(directory, 'lock-00000000-0000-4000-8000-000000000000.claim');

  it('a claim is named', async () => {
    await leaveFile({});
    renameSync(lockFile, forged());
    const request = withoutWaits();
    await expect(acquireLock(directory, request)).rejects.toMatchObject({
      code: 'locked',
      message: expect.stringContaining(forged()) as unknown,
      hint: expect.stringContaining('can be removed') as unknown,
    });
    expect(request.clock.monotonic()).toBeGreaterThan(3000);
  });

  it('a claim that is still being written is respected, and is removed ten seconds later', async () => {
    mkdirSync(directory, { recursive: true });
    writeFileSync(forged(), '');
    expect(await refusal(withoutWaits())).toContain(forged());
    const at = Date.now() / 1000 - 11;
    utimesSync(forged(), at, at);
    expect(await takeAndRelease()).toEqual([]);
  });

  it('the claim of this run that is removed is told as a lake that others take', async () => {
    mkdirSync(directory, { recursive: true });
    // Holds the run up while its own claim is removed.
    writeFileSync(forged(), '');
    const acquired = refusal();
    const own = (): string[] => readdirSync(directory).filter((name) => name.endsWith('.tmp'));
    while (own().length === 0) await sleep(5);
    rmSync(join(directory, own()[0] ?? ''));
    rmSync(forged());
    expect(await acquired).toMatch(/^other runs are acquiring the lock of this lake/);
    expect(await takeAndRelease()).toEqual([]);
  });

  it.each([
    ['of a living process', {}],
    ['of another host', { host: 'elsewhere' }],
  ])('a claim %s that is older than any of a run is removed', async (_what, changes) => {
    await leaveFile(changes);
    renameSync(lockFile, forged());
    utimesSync(forged(), 1000, 1000);
    expect(await takeAndRelease()).toEqual([]);
  });

  it('a link in the place of the lock or of a claim is replaced or removed, and not followed', async () => {
    mkdirSync(directory, { recursive: true });
    const outside = join(directory, '..', 'outside');
    writeFileSync(outside, 'kept');
    for (const path of [lockFile, forged()]) {
      symlinkSync(outside, path);
      lutimesSync(path, 1000, 1000);
    }
    expect(await takeAndRelease()).toEqual([]);
    expect(readFileSync(outside, 'utf8')).toBe('kept');
  });

  it.skipIf(!onLinux)('a pipe in the place of the lock or of a claim does not hold a run up', async () => {
    mkdirSync(directory, { recursive: true });
    execFileSync('mkfifo', [lockFile, forged()]);
    utimesSync(forged(), 1000, 1000);
    expect(await takeAndRelease()).toEqual([]);
  });
});

const WAYS: readonly (readonly [string, boolean])[] = [
  ['with the kernel deciding', false],
  ['with files only', true],
];

describe.each(WAYS)('between processes, %s', (_way, withoutSockets) => {
  it('lets exactly one of many win at a time, from a killed holder on', async () => {
    const killed = await startHolder(withoutSockets);
    killed.kill('SIGKILL');
    await ended(killed);
    // Whoever holds the lock creates the witness; a second holder would find it there.
    const witness = join(root, 'witness');
    const racers = Array.from({ length: RACERS }, () =>
      startChild(
        `import { existsSync, rmSync, writeFileSync } from 'node:fs';
        import { setTimeout as sleep } from 'node:timers/promises';
        console.log('ready');
        while (!existsSync(${JSON.stringify(join(root, 'go'))})) await sleep(5);
        let won = 0, refused = 0;
        for (let round = 0; round < 3; round += 1) {
          try {
            const lock = await acquireLock(directory, me('race'));
            writeFileSync(${JSON.stringify(witness)}, '', { flag: 'wx' });
            await sleep(10);
            rmSync(${JSON.stringify(witness)});
            await lock.release();
            won += 1;
          } catch (error) {
            if (error.code !== 'locked') throw error;
            refused += 1;
            await sleep(7);
          }
        }
        console.log(JSON.stringify({ won, refused }));`,
        withoutSockets,
      ),
    );
    await Promise.all(racers.map(firstLine));
    const outputs = racers.map(outputOf);
    writeFileSync(join(root, 'go'), '');
    const results = (await Promise.all(outputs)).map((text): { won: number; refused: number } =>
      JSON.parse(text),
    );
    const total = (key: 'won' | 'refused'): number => results.reduce((sum, result) => sum + result[key], 0);
    expect(total('won')).toBeGreaterThan(0);
    expect(total('refused')).toBeGreaterThan(0);
    expect(total('won') + total('refused')).toBe(3 * RACERS);
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe('the kernel lock', () => {
  it.skipIf(!onLinux)('holds without the file, and under every path of the lake', async () => {
    const holder = await startHolder();
    rmSync(lockFile);
    symlinkSync(join(root, 'data'), join(root, 'alias'));
    for (const path of [directory, join(root, 'alias', '.cryptodl')]) {
      await expect(acquireLock(path, ME)).rejects.toMatchObject({ code: 'locked' });
    }
    holder.kill('SIGKILL');
    await ended(holder);
    expect(await takeAndRelease()).toEqual([]);
  });

  it('is needed to call a torn file left behind; without it a person must decide', async () => {
    mkdirSync(directory, { recursive: true });
    writeFileSync(lockFile, '{');
    const body = `await acquireLock(directory, me('x')).catch((error) => console.log(error.code, error.hint));`;
    const text = await outputOf(startChild(body, true));
    expect(text.trim()).toBe(`locked if no other run writes to this lake, remove ${lockFile}`);
  });

  it.skipIf(!onLinux)('is freed by SIGKILL even when the killed process is still a zombie', async () => {
    const script = `${IMPORTS}
      await acquireLock(process.argv[1], me('x'));
      console.log(process.pid);
      setInterval(() => undefined, 1000);`;
    const node = [process.execPath, '--input-type=module', '-e', script, directory];
    // The shell turns into a sleep, a parent that never collects its child.
    const parent = spawn('/bin/sh', ['-c', '"$@" & exec sleep 60', 'sh', ...node], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(parent);
    const pid = Number(await firstLine(parent));
    process.kill(pid, 'SIGKILL');
    await sleep(200);
    expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) Z /);
    expect(await takeAndRelease()).toEqual([]);
  });

  it('does not keep a process alive', async () => {
    const child = startChild(`await acquireLock(directory, me('x'));`);
    await ended(child);
    expect(child.exitCode).toBe(0);
    expect(await takeAndRelease()).toEqual([]);
  });
});
