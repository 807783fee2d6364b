import { describe, expect, it } from 'vitest';
import type { FetchContext, FetchResponse } from '../../src/http/fetch.js';
import type { ArchiveObject, PartitionPlan } from '../../src/model/task.js';
import { WorkInProgress } from '../../src/report/work-in-progress.js';
import { WorkTracker } from '../../src/report/work-tracker.js';
import { VirtualClock } from '../helpers/virtual-clock.js';
import { SETTINGS } from '../helpers/conversion.js';

const series = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };
const plan: PartitionPlan = { series, settings: SETTINGS, label: '2024-01', tasks: [] };
const object: ArchiveObject = { key: 'a.zip', period: { cadence: 'daily', from: 0, to: 1 } };
const context: FetchContext = { signal: new AbortController().signal, traceId: 'trace' };
const answered = Promise.resolve({} as FetchResponse);

function follow(): {
  tracker: WorkTracker;
  names: () => string[];
  pieces: WorkInProgress;
  clock: VirtualClock;
} {
  const clock = new VirtualClock();
  const pieces = new WorkInProgress(clock);
  const names = (): string[] =>
    pieces.pieces.map(({ stage, name, parentId }) => {
      const parent = pieces.pieces.find(({ id }) => id === parentId);
      return `${stage} ${name} < ${parent?.stage ?? parentId ?? ''}`;
    });
  return { tracker: new WorkTracker([pieces.work]), names, pieces, clock };
}

describe('the work in progress', () => {
  it('is a tree from the partition to the waits of its requests', async () => {
    const { tracker, names } = follow();
    const end = tracker.begin('partition', { plan });
    await tracker.during('download', { plan, object }, async () => {
      const fetch = tracker.layer((_, { onWait }) => {
        const resume = onWait?.('permit');
        expect(names()).toEqual([
          'partition 2024-01 < ',
          'download a.zip < partition',
          'request http://a.test/a.zip < download',
          'wait permit < request',
        ]);
        resume?.();
        return answered;
      });
      await fetch(
        { url: 'http://a.test/a.zip', bucket: 'archive' },
        { ...context, workId: tracker.idOf(object) },
      );
      await tracker.during('check', { plan, object }, () => {
        expect(names().at(-1)).toBe('check a.zip < download');
        return answered;
      });
    });
    await tracker.during('write', { plan }, () =>
      tracker.during('convert', { plan, label: '2024-01-03' }, () => {
        expect(names().slice(1)).toEqual(['write 2024-01 < partition', 'convert 2024-01-03 < write']);
        expect(tracker.active).toMatchObject({ partition: 1, download: 0, write: 1, convert: 1 });
        return answered;
      }),
    );
    end();
    expect(names()).toEqual([]);
    expect(Object.values(tracker.active)).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it('ends after an error, which the followers get', async () => {
    const { tracker, pieces } = follow();
    const errors: unknown[] = [];
    const both = new WorkTracker([pieces.work, () => (error) => errors.push(error)]);
    const bad = new Error('bad');
    await expect(both.during('commit', { plan }, () => Promise.reject(bad))).rejects.toBe(bad);
    const failing = both.layer(() => Promise.reject(bad));
    await expect(failing({ url: 'http://a.test/', bucket: 'archive' }, context)).rejects.toBe(bad);
    expect(errors).toEqual([bad, bad]);
    expect(pieces.pieces).toEqual([]);
    expect(both.active.commit).toBe(0);
    expect(tracker.active.commit).toBe(0);
  });

  it('has the time since each beginning, and ids of 16 hex digits', async () => {
    const { tracker, pieces, clock } = follow();
    tracker.begin('partition', { plan });
    await clock.advance(250);
    tracker.begin('write', { plan });
    expect(pieces.pieces.map(({ forMs }) => forMs)).toEqual([250, 0]);
    for (const { id } of pieces.pieces) expect(id).toMatch(/^[0-9a-f]{16}$/);
  });

  it('is counted, and not told, without followers', () => {
    const tracker = new WorkTracker([]);
    const next = (): typeof answered => answered;
    expect(tracker.layer(next)).toBe(next);
    const end = tracker.begin('partition', { plan });
    expect(tracker.active.partition).toBe(1);
    expect(tracker.idOf(plan)).toBeUndefined();
    end();
    expect(tracker.active.partition).toBe(0);
  });
});
