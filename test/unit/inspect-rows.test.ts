import { afterAll, expect, it } from 'vitest';
import { createEngine } from '../../src/convert/duckdb.js';
import { inspectRows } from '../../src/convert/inspect-rows.js';
import { Converter, objectLine, received, SETTINGS, specOf } from '../helpers/conversion.js';
import { scratchFolder } from '../helpers/folders.js';

const folder = scratchFolder();
const converter = new Converter(folder);
const engine = createEngine({ threads: 1, memoryBytes: 300e6, tempFolder: folder });
afterAll(() => {
  converter.close();
  engine.close();
});

/** What is wrong with a file of funding rates whose objects have one row each, written by a version that took any. */
async function wrongWith(times: Readonly<Record<string, string>>): Promise<string[]> {
  const objects = Object.entries(times).map(([label, time]) =>
    received(label, `${Date.parse(`${time}Z`)},8,0.0001\n`),
  );
  const series = { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT' } as const;
  const made = await converter.convert({ series, received: objects });
  const lines = Object.entries(times).map(([label, time]) =>
    objectLine(label, { rows: 1, first: `${time}Z`, last: `${time}Z` }),
  );
  const session = await engine.session();
  try {
    return await inspectRows(session, {
      path: made.file,
      spec: specOf('um', 'fundingRate'),
      settings: SETTINGS,
      lines,
      columns: new Set(['calc_time', 'funding_interval_hours', 'last_funding_rate', 'mark_price']),
    });
  } finally {
    session.close();
  }
}

it.each<[string, Readonly<Record<string, string>>, string[]]>([
  ['of the last instant that a day may have', { '2024-01-15': '2024-01-16T00:00:00' }, []],
  [
    'of the day before the file',
    { '2024-01-15': '2024-01-14T12:00:00' },
    ['its rows are from 2024-01-14T12:00:00.000Z … 2024-01-14T12:00:00.000Z, outside its period'],
  ],
  [
    'of the day after, within the file',
    { '2024-01-15': '2024-01-16T08:00:00', '2024-01-16': '2024-01-16T16:00:00' },
    ['the rows of 2024-01-15 are from 2024-01-16T08:00:00Z … 2024-01-16T08:00:00Z, outside this period'],
  ],
])('rows %s are judged by the rule of the writer', async (_, times, wrong) => {
  expect(await wrongWith(times)).toEqual(wrong);
});
