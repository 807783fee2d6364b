import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import { Timeline } from '../../../src/run/monitor/timeline.js';
import { Figures, LATENCY_BOUNDS_S, latencyBucketOf } from '../../../src/run/report/figures.js';
import { LiveRun } from '../../../src/run/report/live-run.js';
import type { NetworkFigures } from '../../../src/run/report/network-figures.js';
import type { PlanTotals } from '../../../src/model/task.js';
import { Tally } from '../../../src/run/report/tally.js';
import { REQUEST } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

function timelineOf() {
  const clock = new VirtualClock();
  const timeline = new Timeline(clock);
  const state = { inFlight: 0, writing: 0, toWrite: 0, concurrency: 30 };
  const live = new LiveRun(clock);
  live.follow(timeline);
  const figures = new Figures(live.counts);
  live.network = () => ({ concurrency: state.concurrency }) as NetworkFigures;
  live.progress = { totals: {} as PlanTotals, tally: new Tally(), state: () => ({ ...state }) };
  const attempt = (ms: number, error?: unknown): void => {
    figures.ended({
      request: REQUEST,
      sentAtMs: 100,
      endedAtMs: 100 + ms,
      firstByteMs: ms,
      status: 200,
      error,
    });
  };
  const retry = (usesAttempt: boolean): void => {
    figures.onRetry({ usesAttempt, error: new CryptodlError('connection-lost', 'x') });
  };
  return { clock, timeline, state, live, attempt, retry };
}

describe('the timeline of a run', () => {
  it('counts what happens in each second, and has the levels at its end', async () => {
    const { clock, timeline, state, live, attempt, retry } = timelineOf();
    // The listing, before the downloads.
    attempt(7);
    live.enter('working');
    live.observer.arrived(500);
    live.observer.arrived(700);
    attempt(30);
    attempt(30_000);
    attempt(5, new CryptodlError('connection-lost', 'x'));
    retry(true);
    retry(false);
    Object.assign(state, { inFlight: 12, writing: 2, toWrite: 3 });
    await clock.advance(1000);
    Object.assign(state, { inFlight: 1, writing: 0, toWrite: 0, concurrency: 21 });
    live.observer.arrived(1);
    await clock.advance(400);
    live.enter('ending');
    const none = LATENCY_BOUNDS_S.map(() => 0);
    const latency = [...none, 0];
    latency[latencyBucketOf(0.03)] = 1;
    latency[latencyBucketOf(30)] = 1;
    expect(timeline.figures.points).toEqual([
      {
        atMs: 1000,
        objects: 2,
        bytes: 1200,
        attempts: 3,
        failed: 1,
        retries: 1,
        latency,
        inFlight: 12,
        concurrency: 30,
        writing: 2,
        toWrite: 3,
      },
      {
        atMs: 1400,
        objects: 1,
        bytes: 1,
        attempts: 0,
        failed: 0,
        retries: 0,
        latency: [...none, 0],
        inFlight: 1,
        concurrency: 21,
        writing: 0,
        toWrite: 0,
      },
    ]);
  });

  it('stays below 240 points for a run of any length, and loses no count', async () => {
    const { clock, timeline, live, attempt } = timelineOf();
    live.enter('working');
    for (let second = 0; second < 3000; second += 1) {
      live.observer.arrived(10);
      attempt(20);
      await clock.advance(1000);
    }
    live.enter('ending');
    const { points } = timeline.figures;
    expect(points.length).toBeLessThanOrEqual(240);
    expect(points.length).toBeGreaterThan(100);
    const sum = (of: (point: (typeof points)[number]) => number): number =>
      points.reduce((total, point) => total + of(point), 0);
    expect(sum(({ objects }) => objects)).toBe(3000);
    expect(sum(({ bytes }) => bytes)).toBe(30_000);
    expect(sum(({ latency }) => latency[latencyBucketOf(0.02)] ?? 0)).toBe(3000);
    expect(points.at(-1)?.atMs).toBe(3_000_000);
    // All intervals are equally long, except for the last one.
    const lengths = points.slice(1, -1).map(({ atMs }, at) => atMs - (points[at]?.atMs ?? 0));
    expect([...new Set(lengths)]).toEqual([16_000]);
  });

  it('has no points without downloads, and no timer after the end', async () => {
    const { clock, timeline, live } = timelineOf();
    live.enter('ending');
    expect(timeline.figures.points).toEqual([]);
    live.enter('working');
    live.enter('ending');
    await clock.advance(10_000);
    expect(timeline.figures.points.length).toBe(1);
  });
});

describe('the buckets of latencies', () => {
  it('contain their bound, and have one more for longer times', () => {
    expect([0, 0.005, 0.0051, 10, 10.1].map(latencyBucketOf)).toEqual([0, 0, 1, 10, 11]);
  });
});
