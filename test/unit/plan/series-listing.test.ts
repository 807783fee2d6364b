import { describe, expect, it } from 'vitest';
import { dayText } from '../../../src/model/calendar.js';
import type { ListedObject } from '../../../src/exchange/exchange.js';
import type { Listing } from '../../../src/exchange/listing.js';
import { absenceReason, listSeries } from '../../../src/plan/series-listing.js';
import type { SeriesListing } from '../../../src/plan/series-listing.js';
import type { AbsenceReason } from '../../../src/model/absence-reasons.js';
import type { Cadence, Series } from '../../../src/model/task.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { day, period } from '../../helpers/conversion.js';

const exchange = loadBinance();
const SERIES: Series = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };
const TODAY = '2024-06-01';

function days(from: string, to: string): string[] {
  return Array.from({ length: day(to) - day(from) }, (_, index) => dayText(day(from) + index));
}

interface Walk {
  readonly marker: string | undefined;
  readonly pageSize: number | undefined;
  taken: number;
}

/** A bucket with zips, their sidecars and strays, in key order. */
function bucketOf(
  cadence: Cadence,
  labels: readonly string[],
  strays: readonly string[] = [],
): { listing: Listing; walks: Walk[] } {
  const prefix = exchange.archive.seriesPrefix(SERIES, cadence);
  const zips = labels.map((label) => exchange.archive.objectKey(SERIES, period(label)));
  const keys = [
    ...zips,
    ...zips.map((key) => `${key}.CHECKSUM`),
    ...strays.map((name) => prefix + name),
  ].sort();
  const walks: Walk[] = [];
  const listing: Listing = {
    folders: () => {
      throw new Error('not asked for');
    },
    // eslint-disable-next-line typescript/require-await
    async *objects(asked, marker, pageSize) {
      const noted = { marker, pageSize, taken: 0 };
      walks.push(noted);
      for (const key of keys) {
        if (asked !== prefix || (marker !== undefined && key <= marker)) continue;
        noted.taken += 1;
        yield [{ key, bytes: 1, etag: 'e', lastModified: '' } satisfies ListedObject];
      }
    },
  };
  return { listing, walks };
}

async function walk(
  bucket: { listing: Listing },
  cadence: Cadence,
  from: string | undefined,
  to: string,
): Promise<SeriesListing> {
  const want = { to: day(to), today: day(TODAY), ...(from === undefined ? {} : { from: day(from) }) };
  return listSeries(bucket.listing, exchange, SERIES, cadence, want);
}

function texts(listing: SeriesListing): string[] {
  return [...listing.objects.keys()].map(dayText);
}

describe('the walk', () => {
  it('starts by marker at the first wanted day and stops after the last', async () => {
    const bucket = bucketOf('daily', days('2023-01-01', '2024-05-31'));
    const listing = await walk(bucket, 'daily', '2023-03-01', '2023-03-04');
    expect(texts(listing)).toEqual(['2023-03-01', '2023-03-02', '2023-03-03', '2023-03-04']);
    expect(listing.more).toBe(true);
    expect(bucket.walks).toHaveLength(1);
    expect(bucket.walks[0]?.marker).toMatch(/BTCUSDT-1m-2023-03-01$/);
    expect(bucket.walks[0]?.taken).toBeLessThan(10);
  });

  it('sees the end of the series when the newest days are wanted', async () => {
    const bucket = bucketOf('daily', days('2023-01-01', '2024-05-30'));
    const listing = await walk(bucket, 'daily', '2024-05-31', '2024-06-01');
    expect(listing.more).toBe(false);
    expect(listing.last).toEqual(period('2024-05-29'));
    expect(bucket.walks).toHaveLength(1);
  });

  it('finds the first period with one small request more when the start is missing', async () => {
    const bucket = bucketOf('daily', [
      ...days('2022-01-01', '2022-01-05'),
      ...days('2023-03-03', '2023-03-09'),
    ]);
    const listing = await walk(bucket, 'daily', '2023-03-01', '2023-03-05');
    expect(listing.first).toEqual(period('2022-01-01'));
    expect(bucket.walks.map(({ pageSize }) => pageSize)).toEqual([undefined, 20]);
  });

  it('from the start needs no marker', async () => {
    const bucket = bucketOf('monthly', ['2024-01', '2024-02', '2024-03', '2024-04']);
    const listing = await walk(bucket, 'monthly', undefined, '2024-03-01');
    expect(texts(listing)).toEqual(['2024-01-01', '2024-02-01', '2024-03-01']);
    expect(listing.first).toEqual(period('2024-01'));
    expect(bucket.walks.map(({ marker }) => marker)).toEqual([undefined]);
  });

  it('passes over sidecars and stray keys', async () => {
    const strays = ['BTCUSDT-1m-2020-8.zip', 'part-00000-0fae7358-c000.zip', 'BTCUSDT-1m-2024-02-31.zip'];
    const bucket = bucketOf('daily', ['2024-05-01'], strays);
    expect(texts(await walk(bucket, 'daily', undefined, TODAY))).toEqual(['2024-05-01']);
  });

  it('of a series that is not there is empty', async () => {
    const listing = await walk(bucketOf('daily', []), 'daily', '2024-05-01', TODAY);
    expect(listing).toMatchObject({ first: undefined, last: undefined, more: false });
  });
});

describe('a day that is not there is', () => {
  const reasons: readonly (readonly [AbsenceReason, string, readonly string[], string])[] = [
    ['unknown', 'before the first listed day', days('2024-03-10', TODAY), '2024-03-09'],
    ['unknown', 'of a series without objects', [], '2024-03-09'],
    [
      'hole',
      'between listed days',
      [...days('2024-03-01', '2024-03-05'), ...days('2024-03-07', TODAY)],
      '2024-03-05',
    ],
    ['not-published-yet', 'after a last day that is near', days('2024-03-01', '2024-05-25'), '2024-05-31'],
    [
      'not-published-yet',
      'after a last day that is long ago',
      days('2024-03-01', '2024-04-01'),
      '2024-05-31',
    ],
    [
      'not-published-yet',
      'long after the last day of a dead series',
      days('2021-03-01', '2021-04-01'),
      '2024-05-31',
    ],
  ];
  it.each(reasons)('%s %s', async (reason, _, labels, wanted) => {
    const listing = await walk(bucketOf('daily', labels), 'daily', wanted, dayText(day(wanted) + 1));
    expect(listing.objects.has(day(wanted))).toBe(false);
    expect(absenceReason(listing, period(wanted), undefined)).toBe(reason);
  });

  const BOOK = { first: period('2023-05-16'), last: period('2024-03-30') };

  it.each([
    ['2024-03-01', '2024-03-30', '2024-04-02', '2024-04-02', 'dataset-ended'],
    ['2023-05-20', '2023-06-30', '2023-05-10', '2023-05-10', 'before-history'],
    ['2023-05-20', '2023-06-30', '2023-05-10', '2023-05-18', 'unknown'],
  ])('of the days %s … %s, walked from %s: a day outside of the dataset, %s, is %s', async (...row) => {
    const [first, last, from, outside, reason] = row;
    const listing = await walk(bucketOf('daily', days(first, last)), 'daily', from, TODAY);
    expect(absenceReason(listing, period(outside), BOOK)).toBe(reason);
  });

  it('the listing counts more than earlier knowledge', async () => {
    const listing = await walk(bucketOf('daily', ['2024-03-30', '2024-04-03']), 'daily', '2024-04-02', TODAY);
    expect(absenceReason(listing, period('2024-04-02'), BOOK)).toBe('hole');
  });
});
