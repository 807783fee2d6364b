/** Runs of different priority that share one budget in a state folder, on a virtual clock. */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import {
  chmodSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Priority } from '../../src/http/fetch.js';
import { Demand } from '../../src/http/throttle/priority-queue.js';
import { WindowMeter } from '../../src/http/throttle/meter.js';
import { QuotaBucket } from '../../src/http/throttle/quota-bucket.js';
import { SharedCount } from '../../src/http/throttle/shared-count.js';
import { scratchFolder } from '../helpers/folders.js';
import { sized } from '../helpers/tier-size.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const scratch = scratchFolder();
const WINDOW_MS = 10_000;
/** How long a run needs to see that another one has begun. */
const SEEN_MS = 300;
/** How long a run that was killed counts. */
const STALE_MS = 5000;

interface Grant {
  readonly run: string;
  readonly at: number;
}

interface RunOptions {
  readonly priority: Priority;
  readonly requests: number;
  readonly weight?: number;
  /** Under way at once. */
  readonly atOnce?: number;
  readonly answerMs?: number;
}

/** A machine with one state folder and one budget, in the middle of a window. */
function machine(permits: number, folder = join(scratch, randomUUID())) {
  const clock = new VirtualClock();
  const granted: Grant[] = [];
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  const begin = (run: string, options: RunOptions) => {
    const { priority, requests, weight = 1, atOnce = 10, answerMs = 20 } = options;
    const time = (nowMs: number) => ({ from: nowMs, to: nowMs });
    const count = new SharedCount({ folder, name: 'funding', warn });
    const meter = new WindowMeter({ permits, windowMs: WINDOW_MS }, time, count);
    const demand = new Demand({ folder, name: 'funding', clock, warn });
    const bucket = new QuotaBucket({ clock, name: 'funding', meter, demand, maxWaitMs: 1e9 });
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    let left = requests;
    let endedAt: number | undefined;
    const work = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        await bucket.take({ weight, priority }, stop.signal);
        granted.push({ run, at: clock.monotonic() });
        endedAt = clock.monotonic();
        await clock.sleep(answerMs, stop.signal);
      }
    };
    const ended = Promise.all(Array.from({ length: atOnce }, work)).then(
      () => {
        bucket.leave(priority);
      },
      () => undefined,
    );
    return {
      begunAt: clock.monotonic(),
      ended,
      endedAt: () => endedAt ?? Number.NaN,
      isDone: () => left === 0,
      /** Like SIGKILL: its file stays. */
      kill: () => {
        stop.abort(new Error('killed'));
      },
    };
  };
  const countOf = (run: string, from: number, to: number): number =>
    granted.filter((grant) => grant.run === run && grant.at >= from && grant.at < to).length;
  const allIn = (from: number, to: number): number =>
    granted.filter(({ at }) => at >= from && at < to).length;
  return {
    clock,
    folder,
    files: join(folder, 'budgets', 'funding'),
    granted,
    warnings,
    begin,
    countOf,
    allIn,
  };
}

const windowOf = (at: number): number => Math.floor(at / WINDOW_MS);

describe('runs of different priority on one budget', () => {
  it('give the highest that has work at least 70 %, and each lower one something early in each window', async () => {
    const run = fc.record({
      priority: fc.constantFrom<Priority>('normal', 'low'),
      startMs: fc.nat(25_000),
      atOnce: fc.integer({ min: 1, max: 20 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(run, { minLength: 1, maxLength: 3 }),
        fc.nat(25_000),
        fc.integer({ min: 100, max: 250 }),
        fc.integer({ min: 1, max: 4 }),
        async (lower, highStartMs, permits, windows) => {
          const { clock, granted, warnings, begin, countOf, allIn } = machine(permits);
          const starts = lower.map((options, index) => ({ ...options, name: `${index}`, requests: 1e6 }));
          const high = {
            priority: 'high' as const,
            startMs: highStartMs,
            name: 'high',
            requests: permits * windows,
            atOnce: 10,
          };
          let at = 0;
          const begun = new Map<string, ReturnType<typeof begin>>();
          for (const { name, startMs, ...options } of [...starts, high].toSorted(
            (a, b) => a.startMs - b.startMs,
          )) {
            await clock.advance(startMs - at);
            at = startMs;
            begun.set(name, begin(name, options));
          }
          await clock.advance((windows * 2 + 3) * WINDOW_MS);
          const first = begun.get('high');
          if (first === undefined) throw new Error('no high run');
          expect(first.isDone()).toBe(true);
          // From when the last one began: shares are those of runs that are there.
          const from = Math.max(...[...begun.values()].map(({ begunAt }) => begunAt)) + SEEN_MS;
          const to = first.endedAt();
          const taken = allIn(from, to);
          if (taken > 0) expect(countOf('high', from, to)).toBeGreaterThanOrEqual(0.7 * taken - lower.length);
          for (let window = windowOf(from) + 1; window < windowOf(to); window += 1) {
            const [begins, ends] = [window * WINDOW_MS, (window + 1) * WINDOW_MS];
            expect(allIn(begins, ends)).toBeLessThanOrEqual(permits);
            expect(allIn(begins, ends)).toBeGreaterThanOrEqual(0.9 * permits);
            for (const { name } of starts)
              expect(countOf(name, begins, begins + WINDOW_MS / 2)).toBeGreaterThan(0);
          }
          for (const each of begun.values()) each.kill();
          await Promise.all([...begun.values()].map(({ ended }) => ended));
          expect(granted.length).toBeGreaterThan(0);
          expect(warnings).toEqual([]);
        },
      ),
      { numRuns: sized(12, 4) },
    );
  });
});

/** A whole window of permits for each of the windows that begin after now. */
async function sharesOf(
  { clock, countOf }: ReturnType<typeof machine>,
  runs: readonly string[],
  windows: number,
): Promise<number[]> {
  const from = (windowOf(clock.monotonic()) + 1) * WINDOW_MS;
  const to = from + windows * WINDOW_MS;
  await clock.advance(to - clock.monotonic());
  return runs.map((run) => countOf(run, from, to));
}

describe('a lower priority', () => {
  it('uses the budget that a high one with few requests leaves', async () => {
    const scene = machine(200);
    scene.begin('high', { priority: 'high', requests: 1e6, atOnce: 1, answerMs: 500 });
    scene.begin('low', { priority: 'low', requests: 1e6 });
    const [high = 0, low = 0] = await sharesOf(scene, ['high', 'low'], 3);
    expect(high).toBeGreaterThanOrEqual(50);
    expect(high + low).toBeGreaterThanOrEqual(3 * 195);
  });

  it('normal comes before low while high has work, and takes its place after', async () => {
    const scene = machine(400);
    const high = scene.begin('high', { priority: 'high', requests: 1e6 });
    scene.begin('normal', { priority: 'normal', requests: 1e6 });
    scene.begin('low', { priority: 'low', requests: 1e6 });
    const [first = 0, normal = 0, low = 0] = await sharesOf(scene, ['high', 'normal', 'low'], 3);
    expect(first).toBeGreaterThanOrEqual(0.7 * (first + normal + low));
    expect(normal).toBeGreaterThan(2 * low);
    expect(low).toBeGreaterThanOrEqual(3 * 8);
    high.kill();
    await scene.clock.advance(STALE_MS);
    const [second = 0, third = 0] = await sharesOf(scene, ['normal', 'low'], 3);
    expect(second).toBeGreaterThanOrEqual(0.7 * (second + third));
    expect(second + third).toBeGreaterThanOrEqual(0.95 * 3 * 400);
  });

  it('saves up no more than a little while it asks for nothing', async () => {
    const scene = machine(400);
    scene.begin('high', { priority: 'high', requests: 1e6 });
    const low = scene.begin('low', { priority: 'low', requests: 1e6, atOnce: 1, answerMs: 1500 });
    await scene.clock.advance(5 * WINDOW_MS);
    low.kill();
    scene.begin('hungry', { priority: 'low', requests: 1e6 });
    const [first = 0, second = 0] = await sharesOf(scene, ['high', 'hungry'], 1);
    expect(first).toBeGreaterThanOrEqual(0.7 * (first + second));
  });

  it('shares the rest with others of its priority', async () => {
    const scene = machine(400);
    scene.begin('high', { priority: 'high', requests: 1e6 });
    for (const name of ['a', 'b', 'c', 'd']) scene.begin(name, { priority: 'low', requests: 1e6 });
    const [first = 0, ...lower] = await sharesOf(scene, ['high', 'a', 'b', 'c', 'd'], 3);
    const all = first + lower.reduce((sum, count) => sum + count, 0);
    expect(first).toBeGreaterThanOrEqual(0.7 * all);
    for (const count of lower) expect(count).toBeGreaterThanOrEqual(0.02 * all);
  });

  it('gets its turn with requests heavier than its share of a window', async () => {
    const scene = machine(60);
    scene.begin('high', { priority: 'high', requests: 1e6 });
    scene.begin('low', { priority: 'low', requests: 1e6, weight: 20 });
    const [high = 0, low = 0] = await sharesOf(scene, ['high', 'low'], 10);
    expect(low).toBeGreaterThanOrEqual(3);
    expect(high).toBeGreaterThanOrEqual(0.7 * (high + 20 * low));
  });

  it('goes on at full speed a few seconds after a high one was killed', async () => {
    const scene = machine(200);
    const high = scene.begin('high', { priority: 'high', requests: 1e6 });
    scene.begin('low', { priority: 'low', requests: 1e6 });
    await scene.clock.advance(2 * WINDOW_MS);
    high.kill();
    await scene.clock.advance(STALE_MS);
    const [low = 0] = await sharesOf(scene, ['low'], 1);
    expect(low).toBeGreaterThanOrEqual(195);
    // The file that it left is removed within minutes.
    await scene.clock.advance(90_000);
    expect(wanting(scene.files)).toEqual([expect.stringMatching(/^low-/)]);
  });

  it('takes all at once when the high one has ended', async () => {
    const scene = machine(200);
    await toNextWindow(scene);
    scene.begin('high', { priority: 'high', requests: 40 });
    scene.begin('low', { priority: 'low', requests: 1e6 });
    await scene.clock.advance(1500);
    expect(scene.countOf('high', 0, Number.POSITIVE_INFINITY)).toBe(40);
    // The first four fifths of a budget are not spread.
    expect(scene.countOf('low', 0, Number.POSITIVE_INFINITY)).toBeGreaterThanOrEqual(115);
  });
});

/** The first four fifths of its budget are there at once. */
async function toNextWindow({ clock }: ReturnType<typeof machine>): Promise<void> {
  await clock.advance(WINDOW_MS - (clock.monotonic() % WINDOW_MS));
}

function wanting(files: string): string[] {
  return readdirSync(files).filter((name) => name.endsWith('.wanting'));
}

describe('the files that show the demand of each run', () => {
  const NAME = `high-${randomUUID()}.wanting`;

  it('are empty, one for each run, and gone when it ends', async () => {
    const scene = machine(200);
    const high = scene.begin('high', { priority: 'high', requests: 300 });
    const low = scene.begin('low', { priority: 'low', requests: 300 });
    await scene.clock.advance(1000);
    expect(new Set(wanting(scene.files).map((name) => name.split('-')[0]))).toEqual(new Set(['high', 'low']));
    for (const name of wanting(scene.files)) expect(statSync(join(scene.files, name)).size).toBe(0);
    await scene.clock.advance(10 * WINDOW_MS);
    await Promise.all([high.ended, low.ended]);
    expect(wanting(scene.files)).toEqual([]);
  });

  it.each<[string, (path: string) => void]>([
    [
      'a file with content',
      (path) => {
        writeFileSync(path, 'mine');
      },
    ],
    [
      'a folder',
      (path) => {
        mkdirSync(path);
      },
    ],
    [
      'a link to an empty file',
      (path) => {
        writeFileSync(`${path}.target`, '');
        symlinkSync(`${path}.target`, path);
      },
    ],
    [
      'a pipe',
      (path) => {
        execFileSync('mkfifo', [path]);
      },
    ],
    [
      'another name',
      (path) => {
        writeFileSync(`${path}.txt`, '');
      },
    ],
  ])("count only when they are the tool's own, and nothing else is removed: %s", async (_, plant) => {
    const scene = machine(200);
    await toNextWindow(scene);
    mkdirSync(scene.files, { recursive: true });
    plant(join(scene.files, NAME));
    const before = readdirSync(scene.files);
    const seconds = scene.clock.now() / 1000;
    for (const name of before) lutimesSync(join(scene.files, name), seconds, seconds);
    scene.begin('low', { priority: 'low', requests: 1e6 });
    await scene.clock.advance(1000);
    expect(scene.granted.length).toBeGreaterThanOrEqual(155);
    await scene.clock.advance(90_000);
    expect(readdirSync(scene.files)).toEqual(expect.arrayContaining(before));
    expect(scene.warnings).toEqual([]);
  });

  it.each([
    [-4000, true],
    [-6000, false],
    [4000, true],
    [6000, false],
    [3_600_000, false],
  ])('count when their time is within five seconds of now: %i ms', async (aheadMs, counts) => {
    const scene = machine(200);
    await toNextWindow(scene);
    mkdirSync(scene.files, { recursive: true });
    writeFileSync(join(scene.files, NAME), '');
    const seconds = (scene.clock.now() + aheadMs) / 1000;
    lutimesSync(join(scene.files, NAME), seconds, seconds);
    scene.begin('low', { priority: 'low', requests: 1e6 });
    await scene.clock.advance(500);
    expect(scene.granted.length < 60).toBe(counts);
    await scene.clock.advance(2 * WINDOW_MS);
    expect(scene.countOf('low', 0, scene.clock.monotonic())).toBeGreaterThan(300);
  });

  it('are not written through a link', async () => {
    const elsewhere = mkdtempSync(join(scratch, 'elsewhere-'));
    const scene = machine(200);
    mkdirSync(join(scene.folder, 'budgets'), { recursive: true });
    symlinkSync(elsewhere, scene.files);
    scene.begin('low', { priority: 'low', requests: 1e6 });
    await scene.clock.advance(WINDOW_MS);
    expect(readdirSync(elsewhere)).toEqual([]);
    expect(scene.warnings.toSorted()).toEqual([
      expect.stringContaining('--priority does not count between them'),
      expect.stringContaining('permits of other runs on this machine are not counted'),
    ]);
  });

  it.each<[string, (folder: string) => void]>([
    [
      'a file in the place of the folder',
      (folder) => {
        writeFileSync(folder, '');
      },
    ],
    [
      'no right to write',
      (folder) => {
        mkdirSync(folder);
        chmodSync(folder, 0o500);
      },
    ],
  ])('cost the order between runs, not the run: %s', async (_, spoil) => {
    const folder = join(scratch, randomUUID());
    spoil(folder);
    const scene = machine(200, folder);
    scene.begin('low', { priority: 'low', requests: 1e6 });
    const [low = 0] = await sharesOf(scene, ['low'], 2);
    expect(low).toBeGreaterThanOrEqual(390);
    // Nothing is forbidden to root.
    if (scene.warnings.length === 0) expect(process.getuid?.()).toBe(0);
  });
});
