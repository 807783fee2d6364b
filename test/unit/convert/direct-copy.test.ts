import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { Series } from '../../../src/model/task.js';
import { Converter, received } from '../../helpers/conversion.js';
import type { ConvertRequest, Made } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';
import { readParquet } from '../../helpers/lake.js';

const folder = scratchFolder();
const converter = new Converter(join(folder, 'made'));
afterAll(() => {
  converter.close();
});

const BARS: Series = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' };
const METRICS: Series = { market: 'um', dataset: 'metrics', symbol: 'BTCUSDT' };
const HOUR = 3_600_000;
const DAY_15 = Date.UTC(2024, 0, 15);

function bar(time: number, open: number | string = 1): string {
  return `${time},${open},1000,0.5,2,5,${time + HOUR - 1},9,3,1,1,0\n`;
}

/** A row so many minutes after the start of 15 January. */
function metric(minutes: number): string {
  const time = new Date(DAY_15 + minutes * 60_000).toISOString().slice(0, 19).replace('T', ' ');
  return `${time},BTCUSDT,1,2,3,4,5,6\n`;
}

/** The bars of a day from the first hour on. */
function bars(day: number, hours = 24, stepMs = HOUR): string {
  const start = DAY_15 + (day - 15) * 24 * HOUR;
  return Array.from({ length: hours }, (_, index) => bar(start + index * stepMs, index + 1)).join('');
}

function make(
  content: Readonly<Record<string, string>>,
  request: Partial<ConvertRequest> = {},
): Promise<Made> {
  const objects = Object.entries(content).map(([label, csv]) => received(label, csv));
  return converter.convert({ series: BARS, received: objects, edgeSeconds: 0, ...request });
}

describe('a usual file', () => {
  it.each<readonly [string, Series, string]>([
    ['bars in milliseconds', BARS, bars(15)],
    ['bars in microseconds', BARS, bars(15).replaceAll(/\b(\d{13})\b/g, '$1000')],
    [
      'bars with a header',
      BARS,
      `open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore\n${bars(15)}`,
    ],
    ['bars in another order', BARS, bars(15).trimEnd().split('\n').toReversed().join('\n')],
    ['bars with a gap', BARS, bars(15, 12)],
    [
      'dates and times',
      METRICS,
      '2024-01-15 00:05:00,BTCUSDT,1,2,3,4,5,6\n2024-01-15 00:10:00,BTCUSDT,1,2,,4,5,6\n',
    ],
  ])('is written by one statement: %s', async (...[, series, content]) => {
    const made = await make({ '2024-01-15': content }, { series });
    expect(made.failed).toEqual(new Map());
    expect(made.statements).toBe(1);
    expect(await readParquet(made.file)).toHaveLength(made.rows);
  });

  it('is sorted, and its objects are described', async () => {
    const made = await make({ '2024-01-15': bar(DAY_15 + HOUR, 7) + bar(DAY_15, 8), '2024-01-16': bars(16) });
    expect(made.statements).toBe(1);
    const opens = (await readParquet(made.file)).map((row) => row['open']);
    expect(opens.slice(0, 4)).toEqual([8, 7, 1, 2]);
    expect(made.written.get('2024-01-15.zip')).toEqual({
      rows: 2,
      first: '2024-01-15T00:00:00Z',
      last: '2024-01-15T01:00:00Z',
      duplicates: 0,
      gaps: [['2024-01-15T02:00:00Z', '2024-01-16T00:00:00Z']],
    });
    expect(made.written.get('2024-01-16.zip')).toEqual({
      rows: 24,
      first: '2024-01-16T00:00:00Z',
      last: '2024-01-16T23:00:00Z',
      duplicates: 0,
    });
  });

  it('may have numbers as text', async () => {
    const made = await make({ '2024-01-15': bar(DAY_15, '1.50') }, { settings: { numbers: 'string' } });
    expect(made.statements).toBe(1);
    expect((await readParquet(made.file)).map((row) => row['open'])).toEqual(['1.50']);
  });

  it('is sorted if each object is in order but not the objects', async () => {
    const made = await make(
      { '2024-01-15': bars(16), '2024-01-16': bars(15) },
      { edgeSeconds: Number.POSITIVE_INFINITY },
    );
    expect(made.statements).toBe(1);
    const times = (await readParquet(made.file)).map((row) => (row['open_time'] as Date).getTime());
    expect(times).toEqual(Array.from({ length: 48 }, (_, index) => DAY_15 + index * HOUR));
  });

  it('has gaps of one and a half intervals or more', async () => {
    const usual = Array.from({ length: 288 }, (_, index) => (index + 1) * 5);
    // 12 minutes after 01:40 is a gap, 7 minutes after 03:20 is none.
    const minutes = usual.flatMap((minute) => {
      if (minute > 100 && minute < 112) return [];
      return minute === 205 ? [207] : [minute];
    });
    const made = await make(
      { '2024-01-15': minutes.map(metric).join('') },
      { series: METRICS, edgeSeconds: 86_400 },
    );
    expect(made.statements).toBe(1);
    expect(made.written.get('2024-01-15.zip')?.gaps).toEqual([
      ['2024-01-15T01:45:00Z', '2024-01-15T01:55:00Z'],
    ]);
  });

  it('has such gaps also with all rows, if they are in another order', async () => {
    // The row of 03:25:00 has 03:22:24, so the next one is 7.6 minutes later.
    const times = Array.from({ length: 288 }, (_, index) => (index === 40 ? 202.4 : (index + 1) * 5));
    const lines = times.map(metric);
    const made = await make(
      { '2024-01-15': lines.toReversed().join('') },
      { series: METRICS, edgeSeconds: 86_400 },
    );
    expect(made.statements).toBe(1);
    expect(made.written.get('2024-01-15.zip')?.gaps).toEqual([
      ['2024-01-15T03:27:24Z', '2024-01-15T03:30:00Z'],
    ]);
  });

  it('has no gap after the end of its period', async () => {
    const content = bars(15, 22) + bar(DAY_15 + 27 * HOUR);
    const made = await make({ '2024-01-15': content }, { edgeSeconds: 86_400 });
    expect(made.statements).toBe(1);
    // The last row is outside of the period, and stands for none of its rows.
    expect(made.written.get('2024-01-15.zip')?.gaps).toEqual([
      ['2024-01-15T22:00:00Z', '2024-01-16T00:00:00Z'],
    ]);
  });

  it('is searched for gaps if its rows are in another order, also with the expected number of rows', async () => {
    // One bar is missing, and one of the next day is there.
    const lines = (bars(15) + bar(DAY_15 + 24 * HOUR)).trimEnd().split('\n');
    const content = [...lines.slice(12).toReversed(), ...lines.slice(0, 11)].join('\n');
    const made = await make({ '2024-01-15': content }, { edgeSeconds: 86_400 });
    expect(made.statements).toBe(1);
    expect(made.written.get('2024-01-15.zip')).toMatchObject({
      gaps: [['2024-01-15T11:00:00Z', '2024-01-15T12:00:00Z']],
    });
  });

  it('lists at most a hundred gaps of an object', async () => {
    const minutes = Array.from({ length: 250 }, (_, index) => bar(DAY_15 + index * 120_000));
    const made = await make({ '2024-01-15': minutes.join('') }, { series: { ...BARS, interval: '1m' } });
    expect(made.statements).toBe(1);
    expect(made.written.get('2024-01-15.zip')?.gaps).toHaveLength(100);
  });

  it('keeps fractions of seconds in its first and last time', async () => {
    const made = await make({ '2024-01-15': bar(DAY_15 + 20) + bar(DAY_15 + HOUR + 123) });
    expect(made.written.get('2024-01-15.zip')).toMatchObject({
      first: '2024-01-15T00:00:00.02Z',
      last: '2024-01-15T01:00:00.123Z',
    });
  });
});

it('more rows than fit into memory take several statements', async () => {
  const made = await make({ '2024-01-15': bars(15) }, { staged: true });
  expect(made.statements).toBeGreaterThan(1);
  expect(await readParquet(made.file)).toHaveLength(24);
});

describe('errors of the engine', () => {
  it('that do not concern the content end the conversion', async () => {
    let copies = 0;
    const full = make(
      { '2024-01-15': bars(15) },
      {
        onStatement: (sql) => {
          if (!sql.startsWith('COPY')) return;
          copies += 1;
          throw new CryptodlError('disk-full', 'the disk is full');
        },
      },
    );
    await expect(full).rejects.toMatchObject({ code: 'disk-full' });
    expect(copies).toBe(1);
  });

  it.each([
    ['in one statement', false],
    ['in steps', true],
  ])('that are mistakes of the program surface as themselves: %s', async (_, inSteps) => {
    const mistake = new TypeError('x is not a function');
    const onStatement = (): void => {
      throw mistake;
    };
    const ended = make({ '2024-01-15': bars(15) }, { inSteps, onStatement });
    expect(await ended.catch((error: unknown) => error)).toBe(mistake);
  });

  it('with another row count than that of the lines lead to several statements', async () => {
    const made = await make({ '2024-01-15': bars(15) }, { copiedRows: (rows) => rows - 1 });
    expect(made.statements).toBeGreaterThan(1);
    expect(await readParquet(made.file)).toHaveLength(24);
  });

  it('leave no file of the first statement if the next one fails', async () => {
    const before = readdirSync(join(folder, 'made'));
    const ended = make(
      { '2024-01-15': bars(15) },
      {
        copiedRows: (rows) => rows - 1,
        onStatement: (sql) => {
          if (!sql.startsWith('COPY')) throw new CryptodlError('disk-full', 'the disk is full');
        },
      },
    );
    await expect(ended).rejects.toMatchObject({ code: 'disk-full' });
    expect(readdirSync(join(folder, 'made'))).toEqual(before);
  });
});
