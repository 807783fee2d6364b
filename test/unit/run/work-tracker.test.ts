import { describe, expect, it } from 'vitest';
import type { FetchContext, FetchResponse } from '../../../src/model/fetch.js';
import { followLayer as followed } from '../../../src/http/transport/measure.js';
import type { SourceObject, PartitionPlan } from '../../../src/model/task.js';
import { LiveRun } from '../../../src/run/report/live-run.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';
import { SETTINGS } from '../../helpers/conversion.js';

const series = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };
const plan: PartitionPlan = { series, settings: SETTINGS, label: '2024-01', tasks: [] };
const object: SourceObject = { key: 'a.zip', period: { cadence: 'daily', from: 0, to: 1 } };
const context: FetchContext = { signal: new AbortController().signal, traceId: 'trace' };
const answered = Promise.resolve({} as FetchResponse);

function follow() {
  const clock = new VirtualClock();
  const tracker = new LiveRun(clock);
  const names = (): string[] => tracker.pieces.map(({ stage, name }) => `${stage} ${name}`);
  return { tracker, names, clock };
}

describe('the work in progress', () => {
  it('goes from the partition to the waits of its requests', async () => {
    const { tracker, names } = follow();
    const end = tracker.begin('partition', { plan });
    await tracker.during('download', { plan, object }, async () => {
      const fetch = followed([tracker])((_, { onWait }) => {
        const resume = onWait?.('permit');
        expect(names()).toEqual([
          'partition 2024-01',
          'download a.zip',
          'request http://a.test/a.zip',
          'wait permit: http://a.test/a.zip',
        ]);
        resume?.();
        return answered;
      });
      await fetch({ url: 'http://a.test/a.zip', bucket: 'archive' }, context);
      await tracker.during('check', { plan, object }, () => {
        expect(names()).toEqual(['partition 2024-01', 'download a.zip', 'check a.zip']);
        return answered;
      });
    });
    await tracker.during('write', { plan }, () =>
      tracker.during('convert', { plan, label: '2024-01-03' }, () => {
        expect(names().slice(1)).toEqual(['write 2024-01', 'convert 2024-01-03']);
        expect(tracker.active).toMatchObject({ partition: 1, download: 0, write: 1, convert: 1 });
        return answered;
      }),
    );
    end();
    expect(names()).toEqual([]);
    expect(Object.values(tracker.active)).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it('ends after an error', async () => {
    const { tracker } = follow();
    const bad = new Error('bad');
    await expect(tracker.during('commit', { plan }, () => Promise.reject(bad))).rejects.toBe(bad);
    const failing = followed([tracker])(() => Promise.reject(bad));
    await expect(failing({ url: 'http://a.test/', bucket: 'archive' }, context)).rejects.toBe(bad);
    expect([tracker.pieces, tracker.active.commit]).toEqual([[], 0]);
  });

  it('has the time since each beginning', async () => {
    const { tracker, clock } = follow();
    tracker.begin('partition', { plan });
    await clock.advance(250);
    tracker.begin('write', { plan });
    expect(tracker.pieces.map(({ forMs }) => forMs)).toEqual([250, 0]);
  });
});
