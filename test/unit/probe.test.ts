import { describe, expect, it } from 'vitest';
import { dayText } from '../../src/model/calendar.js';
import type { PartitionPlan, Series, Task } from '../../src/model/task.js';
import { absenceReason, LAG_DAYS, probeNewest, probeSeries } from '../../src/plan/series-listing.js';
import { loadBinance } from '../../src/source/binance/binance.js';
import { day, period, SETTINGS } from '../helpers/conversion.js';

const venue = loadBinance();
const SERIES: Series = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };
const TODAY = day('2024-03-15');

/** Sidecars of these periods are there. */
function sidecars(labels: readonly string[]): { probe: (key: string) => Promise<boolean>; asked: string[] } {
  const keys = new Set(labels.map((label) => venue.archive.objectKey(SERIES, period(label))));
  const asked: string[] = [];
  return {
    asked,
    probe: (key) => {
      asked.push(key);
      return Promise.resolve(keys.has(key));
    },
  };
}

const nobody = (): Promise<boolean> => Promise.reject(new Error('nobody'));

describe('a series that is probed', () => {
  it('has the periods that answered, in order, with their holes', async () => {
    const { probe } = sidecars(['2024-03-02', '2024-03-04']);
    const want = { from: day('2024-03-01'), to: day('2024-03-06'), today: TODAY };
    const listing = await probeSeries(probe, venue, SERIES, 'daily', want);
    expect([...listing.objects.keys()].map(dayText)).toEqual(['2024-03-02', '2024-03-04']);
    expect([listing.first, listing.last]).toEqual([period('2024-03-02'), period('2024-03-04')]);
    const reasons = ['01', '03', '05'].map((date) =>
      absenceReason(listing, period(`2024-03-${date}`), { today: TODAY, span: undefined }),
    );
    expect(reasons).toEqual(['not-listed-yet', 'hole', 'not-published-yet']);
  });

  it('is asked once for each wanted day, and for each wanted month that is over', async () => {
    const daily = sidecars([]);
    const want = { from: day('2024-01-30'), to: day('2024-03-02'), today: TODAY };
    await probeSeries(daily.probe, venue, SERIES, 'daily', want);
    expect(new Set(daily.asked).size).toBe(32);
    expect(daily.asked).toHaveLength(32);
    const monthly = sidecars([]);
    await probeSeries(monthly.probe, venue, SERIES, 'monthly', want);
    expect(monthly.asked.map((key) => key.slice(-11))).toEqual(['2024-01.zip', '2024-02.zip']);
  });

  it('needs a start', async () => {
    const probing = probeSeries(sidecars([]).probe, venue, SERIES, 'daily', { to: TODAY, today: TODAY });
    await expect(probing).rejects.toMatchObject({
      code: 'unreachable',
      hint: expect.stringContaining('--from') as string,
    });
  });

  it('fails when no request is answered', async () => {
    const want = { from: TODAY - 100, to: TODAY, today: TODAY };
    await expect(probeSeries(nobody, venue, SERIES, 'daily', want)).rejects.toThrow('nobody');
  });
});

function planOf(actions: Readonly<Record<string, Task['action']>>): PartitionPlan {
  const tasks = Object.entries(actions).map(([label, action]): Task => {
    const object = { key: venue.archive.objectKey(SERIES, period(label)), period: period(label) };
    return { series: SERIES, object, action };
  });
  return { series: SERIES, settings: SETTINGS, label: '2024-03', tasks };
}

describe('behind a listing that lags', () => {
  const absent = { kind: 'absent', reason: 'not-published-yet' } as const;

  it('the newest days are requested once each, and those that answer are fetched', async () => {
    const { probe, asked } = sidecars(['2024-03-01', '2024-03-12', '2024-03-14', '2024-02']);
    const plan = planOf({
      '2024-03-01': absent,
      '2024-03-12': absent,
      '2024-03-13': { kind: 'skip' },
      '2024-03-14': absent,
      '2024-02': absent,
    });
    const probed = await probeNewest(probe, plan, TODAY);
    expect(probed.tasks.map((task) => task.action.kind)).toEqual([
      'absent',
      'fetch',
      'skip',
      'fetch',
      'absent',
    ]);
    expect(asked.map((key) => key.slice(-14, -4))).toEqual(['2024-03-12', '2024-03-14']);
    expect(LAG_DAYS).toBe(3);
  });

  it('a period that does not answer is absent, with its reason', async () => {
    const probed = await probeNewest(sidecars([]).probe, planOf({ '2024-03-14': absent }), TODAY);
    expect(probed.tasks[0]?.action).toEqual(absent);
  });
});
