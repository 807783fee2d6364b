/** The parts of a debug dump: its times, its files, its lists, and the open files. */
import { mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { open, opendir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { openDebugDumps, openDescriptors } from '../../../src/run/monitor/debug-dumps.js';
import type { PartitionPlan } from '../../../src/model/task.js';
import { LiveRun } from '../../../src/run/report/live-run.js';
import { surroundingsOf } from '../../../src/files/environment.js';
import { SETTINGS } from '../../helpers/conversion.js';
import { lineOf, readDump } from '../../helpers/debug-dumps.js';
import { scratchFolder } from '../../helpers/folders.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const scratch = scratchFolder();
const SERIES = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };

it('open files are counted by kind', async () => {
  const before = openDescriptors();
  const server = createServer();
  await new Promise<void>((listening) => {
    server.listen(0, '127.0.0.1', listening);
  });
  const file = await open(import.meta.filename);
  const folder = await opendir(import.meta.dirname);
  const device = await open('/dev/null');
  const now = openDescriptors();
  await Promise.all([file.close(), folder.close(), device.close()]);
  server.close();
  const grown = ['sockets', 'files', 'folders', 'devices', 'others'].filter(
    (kind) => (now[kind] ?? 0) > (before[kind] ?? 0),
  );
  expect(grown).toEqual(['sockets', 'files', 'folders', 'devices']);
});

/** Resolves when the CPU profile has begun, and waits for its end. */
async function profiling(clock: VirtualClock): Promise<void> {
  while (clock.untilNext === undefined) await setImmediate();
}

describe('SIGUSR2', () => {
  /** A run that is followed, with a state folder of its own. The time is virtual. */
  async function followed() {
    const stateDir = mkdtempSync(join(scratch, 'state-'));
    const clock = new VirtualClock();
    const lines: string[] = [];
    let signal = (): void => undefined;
    const dumps = await openDebugDumps(
      { stateDir, debugDump: undefined },
      {
        clock,
        startedAtMs: clock.monotonic() - 250,
        stderr: new Writable(),
        surroundings: surroundingsOf({}),
        onDebugSignal: (listener) => {
          signal = listener;
          return () => undefined;
        },
      },
    );
    const run = new LiveRun(clock);
    dumps.follow({ verb: 'vision', job: undefined, options: {} }, run, {
      note: (line) => lines.push(line),
      warn: (line) => lines.push(line),
    });
    const said = (from = 0): string => lines.slice(from).join('\n');
    return {
      folder: join(stateDir, 'debug'),
      clock,
      dumps,
      run,
      said,
      signal: () => {
        signal();
      },
      /** Resolves with the path of the next dump. The signal is ignored as long as old files are removed. */
      dump: (): Promise<string> => {
        const from = lines.length;
        const signalled = (): string => (signal(), said(from));
        return lineOf(signalled, /^debug dump: (.*)$/m);
      },
    };
  }

  it('writes a dump and a CPU profile of ten seconds; further signals are ignored until it is written', async () => {
    const { clock, dumps, said, signal, dump } = await followed();
    await dump();
    signal();
    await profiling(clock);
    await clock.advance(9999);
    await new Promise((later) => setTimeout(later, 100));
    expect(said()).not.toContain('CPU profile: ');
    await clock.advance(1);
    await lineOf(said, /^CPU profile: .*\.cpuprofile$/m);
    expect(said().split('\n')).toHaveLength(2);
    const { heapGrowthBytes } = readDump(await dump());
    expect(Object.keys(heapGrowthBytes ?? {})).toContain('old_space');
    await dumps.close();
  });

  it('keeps twenty debug files; other files, folders and links stay', async () => {
    const { dumps, folder, dump } = await followed();
    mkdirSync(folder);
    for (let day = 10; day <= 31; day += 1)
      writeFileSync(join(folder, `debug-202001${day}T000000000Z-1.json`), '');
    const others = ['debug-20200101T000000000Z-1.txt', 'debug-notes.json', 'folder', 'link'];
    for (const name of others.slice(0, 2)) writeFileSync(join(folder, name), '');
    mkdirSync(join(folder, 'folder'));
    symlinkSync('debug-notes.json', join(folder, 'link'));
    const path = await dump();
    await dumps.close();
    const names = readdirSync(folder);
    expect(names.filter((name) => !others.includes(name))).toHaveLength(20);
    expect(names).toEqual(expect.arrayContaining([...others, path.split('/').at(-1)]));
  });

  it('tells what the run waits for, until its next phase, and lists five hundred pieces of work', async () => {
    const { clock, dumps, run, said, dump } = await followed();
    run.enter('opening-lake');
    run.observer.waiting('waiting for the lock');
    const waiting = readDump(await dump());
    expect(waiting).toMatchObject({ elapsedMs: 250, runs: [{ waitingFor: 'waiting for the lock' }] });
    await profiling(clock);
    await clock.advance(10_000);
    await lineOf(said, /^CPU profile: /m);
    run.enter('working');
    const plan: PartitionPlan = { series: SERIES, settings: SETTINGS, label: '2024-01', tasks: [] };
    for (let count = 0; count < 507; count += 1) run.begin('download', { plan });
    const [working] = readDump(await dump()).runs;
    expect(working).toMatchObject({ phase: 'working', inPhaseForMs: 0, moreWorkInProgress: 7 });
    expect(working).not.toHaveProperty('waitingFor');
    expect(working?.['workInProgress']).toHaveLength(500);
    await dumps.close();
  });
});
