/** Jobs of different priority that share one budget, on a virtual clock. */
import { setMaxListeners } from 'node:events';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Priority } from '../../src/model/fetch.js';
import { ProcessCount, WindowMeter } from '../../src/http/throttle/meter.js';
import { PRIORITIES, PriorityQueue, Shares } from '../../src/http/throttle/priority-queue.js';
import { QuotaBucket } from '../../src/http/throttle/quota-bucket.js';
import { sized } from '../helpers/tier-size.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const WINDOW_MS = 10_000;
/** How long a priority counts after its last request. */
const WANTS_MS = 5000;

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

/** A process with one budget, in the middle of a window. */
function machine(permits: number) {
  const clock = new VirtualClock();
  const granted: Grant[] = [];
  const time = (nowMs: number) => ({ from: nowMs, to: nowMs });
  const meter = new WindowMeter({ permits, windowMs: WINDOW_MS }, time, new ProcessCount());
  const bucket = new QuotaBucket({ clock, name: 'funding', meter, maxWaitMs: 1e9 });
  const begin = (run: string, options: RunOptions) => {
    const { priority, requests, weight = 1, atOnce = 10, answerMs = 20 } = options;
    const controller = new AbortController();
    setMaxListeners(0, controller.signal);
    let left = requests;
    let endedAt: number | undefined;
    const work = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        await bucket.take({ weight, priority }, controller.signal);
        granted.push({ run, at: clock.monotonic() });
        endedAt = clock.monotonic();
        await clock.sleep(answerMs, controller.signal);
      }
    };
    const ended = Promise.all(Array.from({ length: atOnce }, work)).catch(() => undefined);
    return {
      begunAt: clock.monotonic(),
      ended,
      endedAt: () => endedAt ?? Number.NaN,
      isDone: () => left === 0,
      stop: () => {
        controller.abort(new Error('stopped'));
      },
    };
  };
  const countOf = (run: string, from: number, to: number): number =>
    granted.filter((grant) => grant.run === run && grant.at >= from && grant.at < to).length;
  const allIn = (from: number, to: number): number =>
    granted.filter(({ at }) => at >= from && at < to).length;
  return { clock, granted, begin, countOf, allIn };
}

const windowOf = (at: number): number => Math.floor(at / WINDOW_MS);

describe('the earnings of lower priorities', () => {
  const earned = (shares: Shares): Priority[] => PRIORITIES.filter((priority) => shares.has(priority));

  it('are a fifth of the permits for all of them, and a fifth of that for the lowest of three', () => {
    const shares = new Shares();
    const all = { high: true, normal: true, low: true };
    // A permit without earnings costs nothing.
    shares.spend({ weight: 9, priority: 'low' });
    shares.earn(6, all, 100);
    expect(earned(shares)).toEqual([]);
    shares.earn(1, all, 100);
    expect(earned(shares)).toEqual(['normal']);
    shares.earn(17, all, 100);
    expect(earned(shares)).toEqual(['normal']);
    shares.earn(1, all, 100);
    expect(earned(shares)).toEqual(['normal', 'low']);
    const two = new Shares();
    two.earn(5, { high: true, normal: false, low: true }, 100);
    expect(earned(two)).toEqual(['low']);
    two.spend({ weight: 1, priority: 'low' });
    expect(earned(two)).toEqual([]);
  });

  it('decide the order of the waiting requests: earned ones first, the lowest before', () => {
    const queue = new PriorityQueue<{ readonly priority: Priority }>();
    for (const priority of ['low', 'high', 'normal'] as const) queue.add({ priority });
    const shares = new Shares();
    const order = (): Priority[] => queue.heads(shares).map(({ priority }) => priority);
    expect([order(), queue.waiting]).toEqual([
      ['high', 'normal', 'low'],
      { high: true, normal: true, low: true },
    ]);
    shares.earn(10, { high: true, normal: true, low: false }, 100);
    expect(order()).toEqual(['normal', 'high', 'low']);
    shares.earn(50, { high: true, normal: true, low: true }, 100);
    expect(order()).toEqual(['low', 'normal', 'high']);
  });
});

describe('jobs of different priority on one budget', () => {
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
          const { clock, granted, begin, countOf, allIn } = machine(permits);
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
          const from = Math.max(...[...begun.values()].map(({ begunAt }) => begunAt));
          // The permits of its last moment count too.
          const to = first.endedAt() + 1;
          const taken = allIn(from, to);
          if (taken > 0) expect(countOf('high', from, to)).toBeGreaterThanOrEqual(0.7 * taken - lower.length);
          for (let window = windowOf(from) + 1; window < windowOf(to); window += 1) {
            const [begins, ends] = [window * WINDOW_MS, (window + 1) * WINDOW_MS];
            expect(allIn(begins, ends)).toBeLessThanOrEqual(permits);
            expect(allIn(begins, ends)).toBeGreaterThanOrEqual(0.9 * permits);
            // The jobs of one priority are served in the order of their requests.
            for (const priority of ['normal', 'low'] as const) {
              const names = starts.filter((each) => each.priority === priority).map(({ name }) => name);
              const counts = names.map((name) => countOf(name, begins, begins + WINDOW_MS / 2));
              if (names.length > 0) expect(Math.max(...counts)).toBeGreaterThan(0);
            }
          }
          for (const each of begun.values()) each.stop();
          await Promise.all([...begun.values()].map(({ ended }) => ended));
          expect(granted.length).toBeGreaterThan(0);
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
    high.stop();
    await scene.clock.advance(WANTS_MS);
    const [second = 0, third = 0] = await sharesOf(scene, ['normal', 'low'], 3);
    expect(second).toBeGreaterThanOrEqual(0.7 * (second + third));
    expect(second + third).toBeGreaterThanOrEqual(0.95 * 3 * 400);
  });

  it('saves up no more than a little while it asks for nothing', async () => {
    const scene = machine(400);
    scene.begin('high', { priority: 'high', requests: 1e6 });
    const low = scene.begin('low', { priority: 'low', requests: 1e6, atOnce: 1, answerMs: 1500 });
    await scene.clock.advance(5 * WINDOW_MS);
    low.stop();
    scene.begin('hungry', { priority: 'low', requests: 1e6 });
    const [first = 0, second = 0] = await sharesOf(scene, ['high', 'hungry'], 1);
    expect(first).toBeGreaterThanOrEqual(0.7 * (first + second));
  });

  it('gets its turn with requests heavier than its share of a window', async () => {
    const scene = machine(60);
    scene.begin('high', { priority: 'high', requests: 1e6 });
    scene.begin('low', { priority: 'low', requests: 1e6, weight: 20 });
    const [high = 0, low = 0] = await sharesOf(scene, ['high', 'low'], 10);
    expect(low).toBeGreaterThanOrEqual(3);
    expect(high).toBeGreaterThanOrEqual(0.7 * (high + 20 * low));
  });
});
