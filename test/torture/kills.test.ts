/** A run of 300 objects is ended again and again at random moments of its progress, and started again on the same lake. */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlProcess, cryptodlProcessOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { brokenPromises, differences, readLake, rowDifferences } from './lake-state.js';
import type { LakeState } from './lake-state.js';
import { randoms } from '../helpers/randoms.js';
import { SIZE } from './size.js';

const SYMBOLS = Array.from({ length: 10 }, (_, index) => `COIN${index}USDT`);
const OBJECTS = 300;
const SEED = Number(process.env['CRYPTODL_TORTURE_SEED'] ?? Math.trunc(Math.random() * 2 ** 31));

type Signal = 'SIGKILL' | 'SIGTERM' | 'SIGINT';
const CODES: Readonly<Record<Signal, number | null>> = { SIGKILL: null, SIGTERM: 143, SIGINT: 130 };

const PARTITIONS = [
  // Requests of zips and sidecars that may reach the archive before a run is ended.
  { partition: 'day', mostRequests: 160 },
  { partition: 'month', mostRequests: 300 },
] as const;

describe(`a run that is ended at random moments (CRYPTODL_TORTURE_SEED=${SEED})`, () => {
  const scratch = scratchFolder();
  let archive: TestArchive;
  beforeAll(async () => {
    const days = { from: '2026-10-01', to: '2026-10-30', cadence: 'daily' } as const;
    makeArchive(join(scratch, 'archive'), { market: 'um', dataset: 'metrics', symbols: SYMBOLS, ...days });
    archive = await startArchive(join(scratch, 'archive'));
    process.stderr.write(`kills: CRYPTODL_TORTURE_SEED=${SEED}\n`);
  });
  afterAll(() => archive.close());
  afterEach(() => {
    archive.fault = undefined;
  });

  const command = (out: string, partition: string): string[] => {
    const what = ['--dataset', 'metrics', '--symbols', SYMBOLS.join(','), '--partition', partition];
    const when = ['--from', '2026-10-01', '--to', '2026-10-30', '--now', '2026-11-21T08:00:00Z'];
    const where = ['--archive-url', archive.url, '--out', out, '--concurrency', '8'];
    return ['vision', ...what, ...when, ...where, ...FAST];
  };

  interface Blow {
    readonly signal: Signal;
    /** After this many requests of objects, and these milliseconds. */
    readonly requests: number;
    readonly delayMs: number;
  }

  /** Starts a run and ends it; whether the blow came in time, its end tells. */
  async function strike(args: readonly string[], blow: Blow): Promise<CliResult> {
    let child: ChildProcess | undefined;
    let requests = 0;
    archive.fault = (path) => {
      requests += path.includes('prefix=') ? 0 : 1;
      if (requests === blow.requests) void sleep(blow.delayMs).then(() => child?.kill(blow.signal));
      return false;
    };
    const result = await cryptodlProcess(args, { onSpawn: (spawned) => (child = spawned) });
    archive.fault = undefined;
    return result;
  }

  it.each(PARTITIONS)(
    `is whole after each of ${SIZE.kills / 2} SIGKILLs, SIGTERMs and SIGINTs, asks for nothing twice that was committed, and ends as if nothing had been: --partition $partition`,
    async ({ partition, mostRequests }) => {
      const random = randoms(SEED + mostRequests);
      const reference = join(scratch, `undisturbed-${partition}`);
      await cryptodlProcessOk(command(reference, partition));
      const undisturbed = await readLake(reference);
      expect(undisturbed.held.size).toBe(OBJECTS);
      const tale: string[] = [];
      let lake = join(scratch, `${partition}-0`);
      let state = await readLake(lake);
      let lakes = 0;
      const wrong: string[] = [];
      for (let ends = 0; ends < SIZE.kills / 2;) {
        const blow = anyBlow(random, mostRequests);
        const from = archive.requests.length;
        const result = await strike(command(lake, partition), blow);
        const before = state;
        state = await readLake(lake);
        const found = [
          ...brokenPromises(state, before),
          ...fetchedTwice(archive.requests.slice(from), before),
          ...wrongEnd(result, blow),
          ...(result.code === 0 ? differences(state, undisturbed) : []),
        ];
        const what = `lake ${lakes}, ${JSON.stringify(blow)} after ${tale.at(-1) ?? 'nothing'}`;
        wrong.push(...found.map((text) => `${what}: ${text}`));
        tale.push(`${result.code === 0 ? 'end' : blow.signal} with ${state.held.size} of ${OBJECTS} held`);
        if (result.code !== 0) {
          ends += 1;
          continue;
        }
        lakes += 1;
        lake = join(scratch, `${partition}-${lakes}`);
        state = await readLake(lake);
      }
      const from = archive.requests.length;
      await cryptodlProcessOk(command(lake, partition));
      const healed = await readLake(lake);
      const counts = Object.keys(CODES).map(
        (name) => `${tale.filter((end) => end.startsWith(name)).length} ${name}`,
      );
      process.stderr.write(`--partition ${partition}: ${counts.join(', ')} on ${lakes + 1} lakes\n`);
      wrong.push(...fetchedTwice(archive.requests.slice(from), state), ...differences(healed, undisturbed));
      expect(wrong).toEqual([]);
    },
  );

  it('is whole after a SIGKILL when all was asked for, and the next one ends as if nothing had been', async () => {
    const random = randoms(SEED);
    const undisturbed = await readLake(join(scratch, 'undisturbed-month'));
    const nothing = await readLake(join(scratch, 'nowhere'));
    const wrong: string[] = [];
    for (let turn = 0; turn < SIZE.kills / 10; turn += 1) {
      const blow = { signal: 'SIGKILL', requests: 2 * OBJECTS, delayMs: Math.trunc(random() * 400) } as const;
      const lake = join(scratch, `late-${turn}`);
      const result = await strike(command(lake, 'month'), blow);
      const state = await readLake(lake);
      wrong.push(...brokenPromises(state, nothing));
      if (result.code === 0) wrong.push(...rowDifferences(state, undisturbed));
      await cryptodlProcessOk(command(lake, 'month'));
      wrong.push(...differences(await readLake(lake), undisturbed));
    }
    expect(wrong).toEqual([]);
  });

  const KILLS_OF_A_LAKE = Math.min(20, SIZE.killsOfDaily);

  it.each(Array.from({ length: SIZE.killsOfDaily / KILLS_OF_A_LAKE }, (_, index) => index + 1))(
    `shows a reader that reads all the time each committed row once, while ${KILLS_OF_A_LAKE} daily runs are killed (lake %i)`,
    async (number) => {
      const random = randoms(SEED + number);
      const lake = join(scratch, `daily-${number}`);
      const daily = (day: number): string[] => {
        const words = command(lake, 'month');
        return words.with(words.indexOf('--to') + 1, `2026-10-${day}`);
      };
      const rowsOfDay = 288 * SYMBOLS.length;
      const query = 'SELECT count(*) AS c, count(DISTINCT (symbol, create_time)) AS d FROM um_metrics';
      const wrong: string[] = [];
      const lookUntil = async (isOver: () => boolean, committed: () => number): Promise<void> => {
        while (!isOver()) {
          const least = committed() * rowsOfDay;
          const { stdout, stderr } = await cryptodlProcess(['sql', query, '--csv', '--out', lake]);
          const [rows = 0, distinct = 0] = stdout.split('\n')[1]?.split(',').map(Number) ?? [];
          if (rows < least || rows !== distinct) wrong.push(`${rows} rows of ${least}: ${stderr}`);
        }
      };
      let day = 10;
      await cryptodlProcessOk(daily(day));
      const reader = lookUntil(
        () => day === 10 + KILLS_OF_A_LAKE,
        () => day,
      );
      for (let kill = 0; kill < KILLS_OF_A_LAKE; kill += 1) {
        const requests = 1 + Math.trunc(random() * 2 * SYMBOLS.length);
        await strike(daily(day + 1), { signal: 'SIGKILL', requests, delayMs: Math.trunc(random() * 80) });
        await cryptodlProcessOk(daily(day + 1));
        day += 1;
      }
      await reader;
      expect(wrong).toEqual([]);
    },
  );
});

function anyBlow(
  random: () => number,
  mostRequests: number,
): { signal: Signal; requests: number; delayMs: number } {
  const kind = random();
  const signal = kind < 0.6 ? 'SIGKILL' : kind < 0.8 ? 'SIGTERM' : 'SIGINT';
  return {
    signal,
    requests: 1 + Math.trunc(random() * mostRequests),
    delayMs: Math.trunc(random() * 40),
  };
}

/** The code of the signal, or of a run that had just finished. */
function wrongEnd({ code, signal, stderr }: CliResult, blow: { signal: Signal }): string[] {
  // A run that is over has no handler any more, and yet is a process.
  const isRight = code === 0 || code === CODES[blow.signal] || signal === blow.signal;
  return isRight && !/unexpected:|^\s+at /m.test(stderr) ? [] : [`ends with ${code ?? signal}: ${stderr}`];
}

/** A file that was published, but not yet named in the manifest, is made anew from all its objects: those may be fetched again. */
function fetchedTwice(requests: readonly string[], { held, digests }: LakeState): string[] {
  const last = new Map([...held.values()].map(({ file, fileSha256 }) => [file, fileSha256]));
  const keys = requests.filter((path) => path.endsWith('.zip')).map((path) => path.slice(1));
  return keys
    .filter((key) => {
      const file = held.get(key)?.file;
      return file !== undefined && digests.get(file) === last.get(file);
    })
    .map((key) => `${key} was committed and is fetched again`);
}
