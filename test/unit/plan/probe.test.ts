import { describe, expect, it } from 'vitest';
import { dayText } from '../../../src/model/calendar.js';
import type { Series } from '../../../src/model/task.js';
import { absenceReason, probeSeries } from '../../../src/plan/series-listing.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { day, period } from '../../helpers/conversion.js';

const exchange = loadBinance();
const SERIES: Series = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };
const TODAY = day('2024-03-15');

/** Sidecars of these periods are there. */
function sidecars(labels: readonly string[]): { probe: (key: string) => Promise<boolean>; asked: string[] } {
  const keys = new Set(labels.map((label) => exchange.archive.objectKey(SERIES, period(label))));
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
    const listing = await probeSeries(probe, exchange, SERIES, 'daily', want);
    expect([...listing.objects.keys()].map(dayText)).toEqual(['2024-03-02', '2024-03-04']);
    expect([listing.first, listing.last]).toEqual([period('2024-03-02'), period('2024-03-04')]);
    const reasons = ['01', '03', '05'].map((date) =>
      absenceReason(listing, period(`2024-03-${date}`), undefined),
    );
    expect(reasons).toEqual(['unknown', 'hole', 'not-published-yet']);
  });

  it('is asked once for each wanted day, and for each wanted month that is over', async () => {
    const daily = sidecars([]);
    const want = { from: day('2024-01-30'), to: day('2024-03-02'), today: TODAY };
    await probeSeries(daily.probe, exchange, SERIES, 'daily', want);
    expect(new Set(daily.asked).size).toBe(32);
    expect(daily.asked).toHaveLength(32);
    const monthly = sidecars([]);
    await probeSeries(monthly.probe, exchange, SERIES, 'monthly', want);
    expect(monthly.asked.map((key) => key.slice(-11))).toEqual(['2024-01.zip', '2024-02.zip']);
  });

  it('needs a start', async () => {
    const probing = probeSeries(sidecars([]).probe, exchange, SERIES, 'daily', { to: TODAY, today: TODAY });
    await expect(probing).rejects.toMatchObject({
      code: 'unreachable',
      hint: expect.stringContaining('--from') as string,
    });
  });

  it('fails when no request is answered', async () => {
    const want = { from: TODAY - 100, to: TODAY, today: TODAY };
    await expect(probeSeries(nobody, exchange, SERIES, 'daily', want)).rejects.toThrow('nobody');
  });
});
