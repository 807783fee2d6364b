import { ZIP as ZIP_FORMAT } from '../../../src/exchange/zip/unzip.js';
import { describe, expect, it } from 'vitest';
import type { FetchContext, FetchRequest, FetchResponse } from '../../../src/model/fetch.js';
import { followLayer } from '../../../src/http/transport/measure.js';
import type { PartitionPlan } from '../../../src/model/task.js';
import { timeText } from '../../../src/run/report/closing-block.js';
import { LiveRun } from '../../../src/run/report/live-run.js';
import { SETTINGS } from '../../helpers/conversion.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const CONTEXT: FetchContext = { signal: new AbortController().signal, traceId: 'trace' };
const ZIP: FetchRequest = {
  url: 'http://archive.test/a.zip',
  bucket: 'archive',
  expect: { format: ZIP_FORMAT },
};

const series = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };
const plan: PartitionPlan = { series, settings: SETTINGS, label: '2024-01', tasks: [] };

/** A request that waits for `waitMs` and is on the wire for `wireMs`. */
async function ask(
  live: LiveRun,
  clock: VirtualClock,
  { request = ZIP, waitMs = 0, wireMs = 0 }: { request?: FetchRequest; waitMs?: number; wireMs?: number },
): Promise<void> {
  const asked = followLayer([live])(async () => {
    await clock.sleep(waitMs);
    const sentAtMs = clock.monotonic();
    await clock.sleep(wireMs);
    live.onAttempt(request)({ sentAtMs, endedAtMs: clock.monotonic() });
    return {} as FetchResponse;
  })(request, CONTEXT);
  await clock.advance(waitMs);
  await clock.advance(wireMs);
  await asked;
}

async function pass(clock: VirtualClock, ms: number, act: (sleep: () => Promise<void>) => Promise<void>) {
  const acted = act(() => clock.sleep(ms));
  await clock.advance(ms);
  await acted;
}

describe('the phases of a run', () => {
  it('add up to the time since the command began, pauses of the whole run apart', async () => {
    const clock = new VirtualClock();
    const live = new LiveRun(clock, clock.monotonic() - 400);
    await pass(clock, 5000, (sleep) => live.pause(sleep));
    await clock.advance(600);
    live.enter('working');
    await clock.advance(3000);
    await pass(clock, 700, (sleep) => live.pause(sleep));
    expect(live.times).toMatchObject({ elapsedMs: 9700, planMs: 1000, pausedMs: 5700, workMs: 3000 });
  });
});

describe('the stages of objects', () => {
  it('are the waits and transfers of requests, and stages measured by name; parallel ones are added', async () => {
    const clock = new VirtualClock();
    const live = new LiveRun(clock);
    live.enter('working');
    await ask(live, clock, { waitMs: 30, wireMs: 70 });
    await ask(live, clock, { waitMs: 5, wireMs: 10 });
    await pass(clock, 20, async (sleep) => {
      await Promise.all([live.during('convert', { plan }, sleep), live.during('convert', { plan }, sleep)]);
    });
    await pass(clock, 3, async (sleep) => {
      await expect(
        live.during('check', { plan }, () => sleep().then(() => Promise.reject(new Error('bad')))),
      ).rejects.toThrow('bad');
    });
    expect(live.times.stagesMs).toEqual({ wait: 35, transfer: 80, check: 3, convert: 40, commit: 0 });
  });

  it('do not count sidecars, the listing, and requests of the plan', async () => {
    const clock = new VirtualClock();
    const live = new LiveRun(clock);
    await ask(live, clock, { waitMs: 30, wireMs: 70 });
    live.enter('working');
    await ask(live, clock, {
      request: { url: `${ZIP.url}.CHECKSUM`, bucket: 'archive' },
      waitMs: 1,
      wireMs: 1,
    });
    await ask(live, clock, { request: { ...ZIP, bucket: 'listing' }, waitMs: 1, wireMs: 1 });
    expect(live.times.stagesMs).toMatchObject({ wait: 0, transfer: 0 });
  });
});

describe('the line of times', () => {
  const figures: LiveRun['times'] = {
    elapsedMs: 10_001,
    planMs: 1000,
    pausedMs: 0,
    workMs: 9001,
    stagesMs: { wait: 0, transfer: 0, check: 0, convert: 0, commit: 0 },
  };

  it('is there after ten seconds', () => {
    expect(timeText({ ...figures, elapsedMs: 10_000 })).toBeUndefined();
    expect(timeText(figures)).toBe('plan 1s, work 9s');
  });

  it('names pauses of a second and more', () => {
    expect(timeText({ ...figures, pausedMs: 999 })).toBe('plan 1s, work 9s');
    expect(timeText({ ...figures, pausedMs: 1000 })).toBe('plan 1s, pauses 1s, work 9s');
  });
});
