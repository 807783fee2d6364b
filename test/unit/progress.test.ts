import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { progressText, startProgress } from '../../src/report/progress.js';
import type { ProgressState } from '../../src/report/progress.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const STATE: ProgressState = {
  objects: 120,
  totalObjects: 480,
  bytes: 1_200_000,
  totalBytes: 31_000_000,
  inFlight: 30,
  retried: 0,
  failed: 0,
};

describe('the text', () => {
  it('says how much is done, how fast, and how long it takes', () => {
    expect(progressText(STATE, 60_000)).toBe(
      '120/480 objects, 1.2 MB of 31 MB, 20 kB/s, ETA 3m, 30 in flight',
    );
  });

  it('has retries and failures only if there were some', () => {
    expect(progressText({ ...STATE, retried: 2, failed: 1 }, 60_000)).toMatch(/, 2 retried, 1 failed$/);
  });

  it('knows no time before the first object', () => {
    expect(progressText({ ...STATE, objects: 0, bytes: 0 }, 5000)).toContain('0 B/s, ETA -');
  });

  it('is sane at the very start, at the end and for nothing', () => {
    expect(progressText({ ...STATE, objects: 0, bytes: 0 }, 0)).not.toMatch(/NaN|Infinity/);
    expect(progressText({ ...STATE, objects: 480 }, 60_000)).toContain('ETA 0ms');
    expect(progressText({ ...STATE, objects: 0, totalObjects: 0 }, 0)).not.toMatch(/NaN|Infinity/);
  });
});

/** What is written in a minute, and how many timers are left after the stop. */
async function minute(mode: 'bar' | 'plain' | 'none'): Promise<{ text: string; waiting: number }> {
  const clock = new VirtualClock();
  const stream = new PassThrough();
  const progress = startProgress({ mode, stream, label: '', clock, state: () => STATE });
  await clock.advance(60_000);
  progress.clear();
  progress.stop();
  await clock.advance(60_000);
  return { text: String(stream.read() ?? ''), waiting: clock.waiting };
}

it('plain is a line now and then, and silent after the stop', async () => {
  const { text, waiting } = await minute('plain');
  expect(text.split('\n').filter((line) => line !== '')).toHaveLength(4);
  expect(text).toContain('120/480 objects');
  expect(text).not.toContain('\u001b');
  expect(waiting).toBe(0);
});

it('none is nothing', async () => {
  expect(await minute('none')).toEqual({ text: '', waiting: 0 });
});
