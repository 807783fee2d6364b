import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { ObjectLine } from '../../../src/model/manifest-line.js';
import type { Series } from '../../../src/model/task.js';
import { Converter, received } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';

const converter = new Converter(join(scratchFolder(), 'made'));
afterAll(() => {
  converter.close();
});

const START = Date.UTC(2024, 0, 15);
const BARS: Series = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' };

/** What the conversion of a day says about its values, in one statement and in steps. */
async function doubts(series: Series, csv: string): Promise<ObjectLine['suspicious'][]> {
  const found: ObjectLine['suspicious'][] = [];
  for (const how of [{}, { inSteps: true }, { staged: true }]) {
    const request = { series, received: [received('2024-01-15', csv)], edgeSeconds: 30, ...how };
    found.push((await converter.convert(request)).written.get('2024-01-15.zip')?.suspicious);
  }
  return found;
}

function always(suspicious: ObjectLine['suspicious']): ObjectLine['suspicious'][] {
  return [suspicious, suspicious, suspicious];
}

describe('the values of a bar', () => {
  /** Open, high, low, close and volume of the second bar of two. */
  const bars = (values: string): string =>
    ['2,4,1,3,5', values]
      .map((each, at) => `${START + at * 3_600_000},${each},${START + at * 3_600_000 + 1},9,3,1,1,0\n`)
      .join('');
  const at = (cells: string): string => `2024-01-15T01:00:00Z ${cells}`;

  it.each<[string, string, string | undefined]>([
    ['2,4,1,3,0', 'none', undefined],
    ['4,4,4,4,5', 'none', undefined],
    ['2,1,1,1,5', 'order', 'low 1, open 2, high 1, close 1'],
    ['2,4,3,3,5', 'order', 'low 3, open 2, high 4, close 3'],
    ['2,4,1,5,5', 'order', 'low 1, open 2, high 4, close 5'],
    ['0,0,0,0,5', 'zero', 'open 0, high 0, low 0, close 0'],
    ['2,4,1,3,-0.5', 'negative', 'volume -0.5'],
  ])('%s: %s', async (values, kind, cells) => {
    const expected = cells === undefined ? undefined : [{ kind, rows: 1, first: at(cells) }];
    expect(await doubts(BARS, bars(values))).toEqual(always(expected as ObjectLine['suspicious']));
  });

  it('may be below 0 where they are differences of prices', async () => {
    const premium = { ...BARS, dataset: 'premiumIndexKlines' };
    expect(await doubts(premium, bars('-2,-1,-4,-3,0'))).toEqual(always(undefined));
    expect(await doubts(premium, bars('-2,-1,-1,-3,0'))).toMatchObject(
      always([{ kind: 'order', rows: 1, first: at('low -1, open -2, high -1, close -3') }]),
    );
  });
});

describe('a band of a book', () => {
  /** Snapshots of two bands, one every 30 s, with the values of the second one. */
  const book = (count: number, values: (index: number) => string): string =>
    Array.from({ length: count }, (_, index) => {
      const time = new Date(START + index * 30_000).toISOString().slice(0, 19).replace('T', ' ');
      return `${time},-1,${index},${index}\n${time},1,${values(index)}\n`;
    }).join('');
  const depth: Series = { market: 'um', dataset: 'bookDepth', symbol: 'BTCUSDT' };
  const frozen = {
    kind: 'constant',
    rows: 20,
    first: '2024-01-15T00:00:00Z percentage 1, depth 7, notional 9',
  };

  it.each<[string, number, (index: number) => string, unknown]>([
    ['with one value is frozen', 20, () => '7,9', [frozen]],
    ['whose depth changes is not', 20, (index) => `${index === 19 ? 8 : 7},9`, undefined],
    ['without orders is not', 20, () => '0,0', undefined],
    ['with few rows is not', 19, () => '7,9', undefined],
  ])('%s', async (_, count, values, expected) => {
    expect(await doubts(depth, book(count, values))).toEqual(always(expected as ObjectLine['suspicious']));
  });
});
