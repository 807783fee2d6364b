import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import { dayPeriod, parseDay, parsePeriod } from '../../../src/model/calendar.js';
import type { Outcome } from '../../../src/model/outcome.js';
import type { AbsenceReason } from '../../../src/model/absence-reasons.js';
import type { SourceObject, Period, Series } from '../../../src/model/task.js';
import { Tally } from '../../../src/run/report/tally.js';

const KLINES: Series = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };
const TRADES: Series = { market: 'spot', dataset: 'aggTrades', symbol: 'BTCUSDT' };
const day = (text: string): Period => dayPeriod(parseDay(text) ?? Number.NaN);
const object = (text: string, lastModified?: string) => ({
  key: text,
  period: day(text),
  ...(lastModified !== undefined && { lastModified }),
});
const ok = { kind: 'ok', rows: 1440, bytes: 60_000, unverified: false } as const;

describe('the tally by dataset', () => {
  it('counts outcomes, holes, rows and bytes of each dataset of each market', () => {
    const tally = new Tally({ dayStartMs: 0 });
    tally.count(KLINES, object('2024-01-14'), ok);
    tally.count({ ...KLINES, interval: '1h' }, object('2024-01-15'), { ...ok, kind: 'partial', rows: 20 });
    tally.count(KLINES, object('2024-01-16'), { kind: 'absent', reason: 'hole' });
    tally.count(KLINES, object('2024-01-17'), { kind: 'absent', reason: 'not-published-yet' });
    tally.count(KLINES, object('2024-01-13'), { kind: 'skipped' });
    // The lake keeps its rows.
    tally.count(KLINES, object('2024-01-12'), { ...ok, kind: 'partial', keptRows: 1500 });
    tally.count(TRADES, object('2024-01-15'), {
      kind: 'failed',
      error: new CryptodlError('connection-lost', 'x'),
    });
    expect(tally.datasets).toEqual([
      {
        market: 'um',
        dataset: 'klines',
        outcomes: { ok: 1, partial: 2, skipped: 1, absent: 2, failed: 0 },
        holes: 1,
        days: { held: 4, missing: 1 },
        rows: 1460,
        bytes: 120_000,
        newest: '2024-01-15',
        newestEndMs: Date.UTC(2024, 0, 16),
        publicationDelayMs: null,
        unpublished: '2024-01-17',
        unpublishedEndMs: Date.UTC(2024, 0, 18),
        freshUntilMs: Date.UTC(2024, 0, 20),
      },
      {
        market: 'spot',
        dataset: 'aggTrades',
        outcomes: { ok: 0, partial: 0, skipped: 0, absent: 0, failed: 1 },
        holes: 0,
        days: { held: 0, missing: 1 },
        rows: 0,
        bytes: 0,
        newest: null,
        newestEndMs: null,
        publicationDelayMs: null,
        unpublished: null,
        unpublishedEndMs: null,
        freshUntilMs: null,
      },
    ]);
  });

  it('has the delay of the newest published period, by the day of the exchange', () => {
    const tally = new Tally({ dayStartMs: 8 * 3_600_000 });
    tally.count(KLINES, object('2024-01-15', '2024-01-16T14:30:00.000Z'), { kind: 'skipped' });
    tally.count(KLINES, object('2024-01-14', '2024-01-19T00:00:00.000Z'), ok);
    tally.count(KLINES, object('2024-01-16', 'not a time'), ok);
    expect(tally.datasets[0]).toMatchObject({
      newest: '2024-01-16',
      newestEndMs: Date.UTC(2024, 0, 17, 8),
      publicationDelayMs: 6.5 * 3_600_000,
    });
  });

  it('has the oldest unpublished period after the newest held one', () => {
    const tally = new Tally({ dayStartMs: 0 });
    const late = { kind: 'absent', reason: 'not-published-yet' } as const;
    const other = { ...KLINES, symbol: 'OLDUSDT' };
    // A symbol that ended says nothing about its dataset.
    for (const text of ['2024-01-12', '2024-01-13', '2024-01-15', '2024-01-16'])
      tally.count(other, object(text), late);
    tally.count(KLINES, object('2024-01-14'), { kind: 'skipped' });
    tally.count(TRADES, object('2024-01-15'), { kind: 'absent', reason: 'delisted' });
    tally.count({ ...KLINES, market: 'cm', interval: '1w' }, object('2024-01-15'), late);
    tally.count({ ...KLINES, market: 'spot', interval: '1d' }, object('2024-01-15'), late);
    const unpublished = tally.datasets.map((one) => [one.market, one.dataset, one.unpublished]);
    expect(unpublished).toEqual([
      ['um', 'klines', '2024-01-15'],
      ['spot', 'aggTrades', null],
      // Of bars of a week, most days have no object.
      ['cm', 'klines', null],
      ['spot', 'klines', '2024-01-15'],
    ]);
    expect(tally.datasets[0]?.unpublishedEndMs).toBe(Date.UTC(2024, 0, 16));
  });

  const HELD = { kind: 'skipped' } as const;
  const absent = (reason: AbsenceReason) => ({ kind: 'absent', reason }) as const;
  const month = (text: string) => ({ key: text, period: parsePeriod('monthly', text) ?? day('1970-01-01') });
  const WEEKS = { ...KLINES, interval: '1w' };
  const OLD = { ...KLINES, symbol: 'OLDUSDT' };

  it.each<[string, [Series, Pick<SourceObject, 'key' | 'period'>, Outcome][], number | null]>([
    ['a day', [[KLINES, object('2024-01-14'), HELD]], Date.UTC(2024, 0, 16 + 2)],
    [
      'the newest day',
      ['2024-01-14', '2024-01-12'].map((text) => [KLINES, object(text), ok]),
      Date.UTC(2024, 0, 18),
    ],
    ['a month', [[KLINES, month('2024-01'), HELD]], Date.UTC(2024, 2, 1 + 10)],
    ['December', [[KLINES, month('2023-12'), HELD]], Date.UTC(2024, 1, 1 + 10)],
    [
      'a month, and days that are not published',
      [
        [KLINES, month('2024-01'), HELD],
        [KLINES, object('2024-02-01'), absent('not-published-yet')],
      ],
      Date.UTC(2024, 1, 2 + 2),
    ],
    // Most days have no object of such bars.
    ['bars of a week', [[WEEKS, object('2024-01-14'), HELD]], null],
    [
      'bars of a week and of a minute',
      [
        [KLINES, object('2024-01-14'), HELD],
        [WEEKS, object('2024-01-15'), HELD],
      ],
      Date.UTC(2024, 0, 18),
    ],
    [
      'a series that has ended',
      [
        [KLINES, object('2024-01-14'), HELD],
        [KLINES, object('2024-01-15'), absent('delisted')],
      ],
      null,
    ],
    [
      'a dataset that has ended',
      [
        [KLINES, object('2024-01-14'), HELD],
        [KLINES, object('2024-01-15'), absent('dataset-ended')],
      ],
      null,
    ],
    [
      'a series that has ended, and one that goes on',
      [
        [OLD, object('2024-01-13'), absent('delisted')],
        [KLINES, object('2024-01-14'), HELD],
      ],
      Date.UTC(2024, 0, 18),
    ],
    ['no object', [[KLINES, object('2024-01-14'), absent('hole')]], null],
  ])('says until when it is fresh: %s', (_, outcomes, freshUntilMs) => {
    const tally = new Tally({ dayStartMs: 0 });
    for (const [series, held, outcome] of outcomes) tally.count(series, held, outcome);
    expect(tally.datasets[0]?.freshUntilMs).toBe(freshUntilMs);
  });
});
