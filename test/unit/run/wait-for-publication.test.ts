/** --wait-for-publication, with the time of the test. */
import { VERBS } from '../../../src/main.js';
import { describe, expect, it } from 'vitest';
import { dayPeriod, parseDay, parsePeriod } from '../../../src/model/calendar.js';
import { DAY_MS } from '../../../src/model/units.js';
import { SILENT_OBSERVER } from '../../../src/model/observer.js';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import type { SelectedSeries } from '../../../src/plan/series-request.js';
import { waitForPublication } from '../../../src/run/objects/wait-for-publication.js';
import type { WaitingSession } from '../../../src/run/objects/wait-for-publication.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { SETTINGS } from '../../helpers/conversion.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const exchange = loadBinance();
const NOW = Date.parse('2026-11-21T07:00:00Z');
const TODAY = parseDay('2026-11-21') ?? 0;

function requestOf(symbol: string, more: Partial<SelectedSeries> = {}): SelectedSeries {
  return {
    series: { market: 'um', dataset: 'klines', interval: '1m', symbol },
    settings: SETTINGS,
    cadences: ['daily', 'monthly'],
    ranges: [{ from: TODAY - 1, to: TODAY }],
    ...more,
  };
}

interface Scene {
  /** Minutes after the beginning at which the newest day of a symbol is published; undefined: never. */
  readonly published: Readonly<Record<string, number | undefined>>;
  /** Last day of a symbol before that; the day before yesterday when nothing is said. */
  readonly before?: Readonly<Record<string, number>>;
  readonly requests?: readonly SelectedSeries[];
  readonly nowMs?: number;
}

/** Minutes at which the listing was asked about each symbol, and how the wait went. */
async function wait(untilText: string, scene: Scene) {
  const clock = new VirtualClock();
  const startedAt = clock.monotonic();
  const minutes = (): number => (clock.monotonic() - startedAt) / 60_000;
  const asked: Record<string, number[]> = {};
  const said: string[] = [];
  const requests = scene.requests ?? Object.keys(scene.published).map((symbol) => requestOf(symbol));
  const stop = new AbortController();
  const session: WaitingSession = {
    options: resolveOptions(VERBS.vision, [
      { origin: 'flag', values: { 'wait-for-publication': [untilText] }, nameOf: (name) => `--${name}` },
    ]).options,
    clock,
    stop,
    exchange,
    nowMs: scene.nowMs ?? NOW,
    currentMs: () => (scene.nowMs ?? NOW) + clock.monotonic() - startedAt,
    observer: { ...SILENT_OBSERVER, waiting: (message) => said.push(message) },
    probe: () => Promise.resolve(false),
    listing: {
      async *folders() {},
      async *objects(prefix, marker = '') {
        await Promise.resolve();
        for (const { series, cadences } of requests) {
          const cadence = cadences.includes('daily') ? 'daily' : 'monthly';
          if (prefix !== exchange.archive.seriesPrefix(series, cadence)) continue;
          (asked[series.symbol] ??= []).push(minutes());
          const at = scene.published[series.symbol];
          const isThere = at !== undefined && minutes() >= at;
          const last = scene.before?.[series.symbol] ?? TODAY - 2;
          const days = Array.from({ length: 70 }, (_, index) => TODAY - 70 + index).filter(
            (day) => day <= last || (isThere && day === TODAY - 1),
          );
          const months = ['2026-07', '2026-08', '2026-09', ...(isThere ? ['2026-10'] : [])];
          const periods =
            cadence === 'daily'
              ? days.map(dayPeriod)
              : months.flatMap((month) => parsePeriod('monthly', month) ?? []);
          for (const period of periods) {
            const key = exchange.archive.objectKey(series, period);
            if (key > marker) yield [{ key, bytes: 1, etag: 'e', lastModified: '' }];
          }
        }
      },
    },
  };
  const waiting = waitForPublication(session, { requests, hasListing: true });
  for (let step = 0; step < 24 * 60; step += 1) await Promise.race([waiting, clock.advance(0)]);
  await clock.advance(DAY_MS);
  await waiting;
  return { asked, said, stop };
}

describe('--wait-for-publication', () => {
  it('asks after 1, 2, 4 and 8 minutes, and then every 10', async () => {
    const { asked, said } = await wait('09:00', { published: { BTCUSDT: 40 } });
    expect(asked['BTCUSDT']).toEqual([0, 1, 3, 7, 15, 25, 35, 45]);
    expect(said).toEqual([
      'waiting until 2026-11-21 09:00 UTC at the latest (--wait-for-publication): the archive has no um klines 1m BTCUSDT 2026-11-20 yet',
    ]);
  });

  it('asks only about those that are missing', async () => {
    const { asked } = await wait('90m', { published: { BTCUSDT: 0, ETHUSDT: 2 } });
    expect(asked).toEqual({ BTCUSDT: [0], ETHUSDT: [0, 1, 3] });
  });

  it.each([
    ['07:20', 20],
    ['20m', 20],
    ['2026-11-21T07:20:00Z', 20],
  ])('until %s: asks at that moment for the last time, and names the missing days', async (text, last) => {
    const { asked, said } = await wait(text, { published: { BTCUSDT: undefined, ETHUSDT: undefined } });
    expect(asked['BTCUSDT']?.at(-1)).toBe(last);
    expect(said.at(-1)).toBe(
      'not published by 2026-11-21 07:20 UTC: um klines 1m BTCUSDT 2026-11-20 and 1 more; continuing without them',
    );
  });

  it('a time of day that has passed is not that of tomorrow', async () => {
    const { asked } = await wait('06:59', { published: { BTCUSDT: undefined } });
    expect(asked['BTCUSDT']).toEqual([0]);
  });

  it('does not wait for a series that ended before the others, and waits for a day that no series has', async () => {
    const stopped = await wait('10h', {
      published: { BTCUSDT: 0, LUNAUSDT: undefined },
      before: { LUNAUSDT: TODAY - 5 },
    });
    expect(stopped.said).toEqual([]);
    const stalled = await wait('10h', {
      published: { BTCUSDT: 1, ETHUSDT: 1 },
      before: { BTCUSDT: TODAY - 3, ETHUSDT: TODAY - 3 },
    });
    expect(stalled.asked).toEqual({ BTCUSDT: [0, 1], ETHUSDT: [0, 1] });
  });

  it('a delisted series is not waited for, nor a range that is long over', async () => {
    const gone = await wait('10h', { published: { LUNAUSDT: undefined }, before: { LUNAUSDT: TODAY - 40 } });
    expect(gone.said).toEqual([]);
    const past = { ranges: [{ from: TODAY - 30, to: TODAY - 20 }] };
    const old = await wait('10h', {
      published: { BTCUSDT: undefined },
      requests: [requestOf('BTCUSDT', past)],
    });
    expect(old.said).toEqual([]);
  });

  it('does not ask for datasets of REST alone and bars of more than a day', async () => {
    const rest = {
      mode: 'only',
      from: 0,
      to: TODAY,
      today: TODAY,
      settledTo: TODAY,
      hasMonths: false,
    } as const;
    const weekly = {
      series: { market: 'um', dataset: 'klines', interval: '1w', symbol: 'ETHUSDT' },
    } as const;
    const { asked } = await wait('10h', {
      published: {},
      requests: [requestOf('BTCUSDT', { rest }), requestOf('ETHUSDT', weekly)],
    });
    expect(asked).toEqual({});
  });

  it('where there are only months: the last one that is over, when it is wanted', async () => {
    const THIRD = parseDay('2026-11-03') ?? 0;
    const monthly = (from: number): SelectedSeries =>
      requestOf('BTCUSDT', {
        series: { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT' },
        cadences: ['monthly'],
        ranges: [{ from, to: THIRD }],
      });
    const nowMs = THIRD * DAY_MS;
    const running = await wait('10h', { published: {}, requests: [monthly(THIRD - 2)], nowMs });
    expect(running.asked).toEqual({});
    const october = await wait('10h', { published: { BTCUSDT: 3 }, requests: [monthly(THIRD - 3)], nowMs });
    expect(october.asked['BTCUSDT']).toEqual([0, 1, 3]);
    expect(october.said[0]).toContain('um fundingRate BTCUSDT 2026-10 yet');
  });
});
