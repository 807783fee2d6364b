/** The parts of a debug dump: its short lists, its files, and the heap. */
import { mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { open, opendir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { array, assert, integer, nat, property } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openDebugDumps } from '../../src/debug/debug-dumps.js';
import { debugName, pathBeside, pruneDebugFiles, writeWhole } from '../../src/debug/debug-files.js';
import { heapGrowth, openFiles } from '../../src/debug/process-state.js';
import { RequestNotes } from '../../src/debug/request-notes.js';
import { TopList } from '../../src/debug/top-list.js';
import { CryptodlError } from '../../src/model/errors.js';
import { systemClock } from '../../src/model/clock.js';
import { lineOf, readDump } from '../helpers/debug-dumps.js';
import { scratchFolder } from '../helpers/folders.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

describe('a top list', () => {
  it('has the largest entries in their order, the earlier of equal ones, and makes no others', () => {
    assert(
      property(array(nat(30)), integer({ min: 1, max: 8 }), (values, most) => {
        const list = new TopList<string>(most);
        let made = 0;
        for (const [at, value] of values.entries()) {
          list.add(value, () => {
            made += 1;
            return `${value} ${at}`;
          });
        }
        const sorted = [...values.entries()].sort(([at, one], [later, other]) => other - one || at - later);
        expect(list.entries).toEqual(sorted.slice(0, most).map(([at, value]) => `${value} ${at}`));
        expect(made).toBeLessThanOrEqual(values.length);
        const least = Math.min(...values.slice(0, most));
        const isNoCandidate = values.slice(most).every((value) => value <= least);
        if (isNoCandidate) expect(made).toBe(Math.min(most, values.length));
      }),
    );
  });
});

describe('the notes of requests', () => {
  const attempt = (number: number, error?: unknown) => ({
    request: { url: `https://host:81/a/${number}.zip?x=1`, bucket: 'archive' },
    attemptId: `trace/${number}`,
    begunAt: 0,
    sentAt: 5,
    endedAt: 10 + number,
    firstByteMs: 3.6,
    status: error === undefined ? 200 : 503,
    error,
  });

  it('keep the twenty slowest attempts and the twenty last errors', () => {
    const notes = new RequestNotes(systemClock);
    for (let number = 1; number <= 1000; number += 1)
      notes.attempt(
        attempt(
          number,
          number % 2 === 0 ? new CryptodlError('http-server-error', `no ${number}`) : undefined,
        ),
      );
    expect(notes.slowest.map(({ totalMs }) => totalMs)).toEqual(
      Array.from({ length: 20 }, (_, at) => 1010 - at),
    );
    expect(notes.slowest[1]).toEqual({
      at: expect.any(String) as string,
      host: 'host:81',
      path: '/a/999.zip?x=1',
      status: 200,
      attempt: 'trace/999',
      beforeSentMs: 5,
      firstByteMs: 4,
      totalMs: 1009,
      error: null,
    });
    expect(notes.errors).toHaveLength(20);
    expect(notes.errors[0]).toMatchObject({
      code: 'http-server-error',
      message: 'no 1000',
      attempt: { path: '/a/1000.zip?x=1', status: 503 },
    });
  });
});

describe('the files of dumps', () => {
  const scratch = scratchFolder();

  it('are at most ten in a lake; foreign files, folders and links stay', async () => {
    const lake = join(scratch, 'lake');
    mkdirSync(lake);
    const own = Array.from({ length: 15 }, (_, at) => debugName(Date.UTC(2026, 10, 1 + at)));
    for (const [at, name] of own.entries())
      writeFileSync(join(lake, `${name}.${['json', 'cpuprofile', 'heapsnapshot'][at % 3]}`), '');
    const others = ['debug-notes.json', 'debug-20200101T000000000Z-1.txt', 'lock.json'];
    for (const name of others) writeFileSync(join(lake, name), '');
    mkdirSync(join(lake, 'debug-20200101T000000000Z-1.json'));
    symlinkSync('lock.json', join(lake, 'debug-20200102T000000000Z-1.json'));
    await pruneDebugFiles(lake);
    const left = readdirSync(lake).sort();
    const isOwn = (name: string): boolean => own.some((stem) => name.startsWith(stem));
    expect(left.filter(isOwn).map((name) => name.split('.')[0])).toEqual(own.slice(-10));
    expect(left.filter((name) => !isOwn(name))).toEqual(
      [...others, 'debug-20200101T000000000Z-1.json', 'debug-20200102T000000000Z-1.json'].sort(),
    );
  });

  it('appear whole or not at all', async () => {
    const folder = join(scratch, 'whole');
    mkdirSync(folder);
    const path = join(folder, 'dump.json');
    await expect(
      writeWhole(path, async (file) => {
        await file.writeFile('half');
        expect(readdirSync(folder)).not.toContain('dump.json');
        throw new Error('halted');
      }),
    ).rejects.toThrow('halted');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('of a signal lie beside the file of --debug-dump', () => {
    expect(pathBeside('/var/a.json', Date.UTC(2026, 10, 21, 7))).toBe(
      `/var/a-20261121T070000000Z-${process.pid}`,
    );
  });
});

describe('the growth of the heap', () => {
  it('is given for the ten spaces that changed most', () => {
    const spaces = (factor: number) =>
      Object.fromEntries(
        Array.from({ length: 12 }, (_, at) => [`space-${at}`, { usedBytes: at * factor, committedBytes: 0 }]),
      );
    const growth = heapGrowth(spaces(2), spaces(1));
    expect(Object.entries(growth)[0]).toEqual(['space-11', -11]);
    expect(Object.keys(growth)).toHaveLength(10);
  });
});

describe('the open files', () => {
  it('are counted by kind', async () => {
    const before = openFiles();
    const server = createServer();
    await new Promise<void>((listening) => {
      server.listen(0, '127.0.0.1', listening);
    });
    const file = await open(import.meta.filename);
    const folder = await opendir(import.meta.dirname);
    const device = await open('/dev/null');
    const now = openFiles();
    await Promise.all([file.close(), folder.close(), device.close()]);
    server.close();
    const grown = ['sockets', 'files', 'folders', 'devices', 'others'].filter(
      (kind) => (now[kind] ?? 0) > (before[kind] ?? 0),
    );
    expect(grown).toEqual(['sockets', 'files', 'folders', 'devices']);
  });
});

describe('SIGUSR2', () => {
  const scratch = scratchFolder();

  /** A run that is followed in a new lake. The time is virtual. */
  async function followed(debugDump?: string) {
    const out = mkdtempSync(join(scratch, 'lake-'));
    const clock = new VirtualClock();
    const lines: string[] = [];
    let act = (): void => undefined;
    const dumps = await openDebugDumps(
      { out, dryRun: false, debugDump, heapSnapshotOnSignal: false },
      {
        clock,
        startedAt: clock.monotonic() - 250,
        stderr: new Writable(),
        home: undefined,
        onDebugSignal: (listener) => {
          act = listener;
          return () => undefined;
        },
      },
    );
    const run = dumps.follow(
      { verb: 'vision', job: undefined, options: {} },
      { note: (line) => lines.push(line), warn: (line) => lines.push(line) },
    );
    return {
      folder: join(out, '.cryptodl'),
      clock,
      dumps,
      run,
      said: () => lines.join('\n'),
      /** Resolves with the first group of the next line that matches. */
      signal: (line: RegExp): Promise<string> => {
        const from = lines.length;
        act();
        return lineOf(() => lines.slice(from).join('\n'), line);
      },
    };
  }
  const DUMP = /^debug dump: (.*)$/m;
  const RECORDING = /^recording a CPU profile for 10s$/m;

  it('begins a profile of ten seconds if it comes within ten seconds of a dump, else a further dump', async () => {
    const { clock, dumps, said, signal } = await followed();
    await signal(DUMP);
    await clock.advance(10_001);
    await signal(DUMP);
    await clock.advance(10_000);
    await signal(RECORDING);
    await clock.advance(9999);
    await new Promise((later) => setTimeout(later, 100));
    expect(said()).not.toContain('CPU profile:');
    await clock.advance(1);
    await lineOf(said, /^CPU profile: .*$/m);
    await signal(DUMP);
    await dumps.close();
  });

  it('keeps ten debug files in the lake', async () => {
    const { clock, dumps, folder, signal } = await followed();
    mkdirSync(folder);
    for (let day = 1; day <= 12; day += 1)
      writeFileSync(join(folder, `${debugName(Date.UTC(2020, 0, day))}.json`), '');
    await signal(DUMP);
    await dumps.close();
    const names = readdirSync(folder).sort();
    expect(names).toHaveLength(10);
    expect(names.at(-1)).toBe(`${debugName(clock.now())}.json`);
  });

  it('writes into the lake if --debug-dump is a device', async () => {
    const { dumps, folder, signal } = await followed('/dev/null');
    expect(await signal(DUMP)).toMatch(new RegExp(`^${folder}/debug-`));
    await dumps.close();
  });

  it('tells what the run waits for, until its next phase, and lists five hundred pieces of work', async () => {
    const { clock, dumps, run, signal } = await followed();
    run.phase('opening-lake');
    run.observer.waiting('waiting for the lock');
    const waiting = readDump(await signal(DUMP));
    expect(waiting).toMatchObject({ elapsedMs: 250, runs: [{ waitingFor: 'waiting for the lock' }] });
    await clock.advance(10_001);
    run.phase('working');
    for (let id = 0; id < 507; id += 1) run.work({ stage: 'download', name: 'a.zip' });
    const [working] = readDump(await signal(DUMP)).runs;
    expect(working).toMatchObject({ phase: 'working', inPhaseForMs: 0, moreWorkInProgress: 7 });
    expect(working).not.toHaveProperty('waitingFor');
    expect(working?.['workInProgress']).toHaveLength(500);
    await dumps.close();
  });
});
