import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createEngine } from '../../../src/convert/duckdb.js';
import { inspectRows } from '../../../src/convert/inspect-rows.js';
import { areDisjoint } from '../../../src/model/manifest-line.js';
import { Converter, objectLine, received, SETTINGS, specOf } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';

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
  const duckdb = await engine.connect();
  try {
    return await inspectRows(duckdb, {
      path: made.file,
      spec: specOf('um', 'fundingRate'),
      settings: SETTINGS,
      lines,
    });
  } finally {
    duckdb.close();
  }
}

it.each<[string, Readonly<Record<string, string>>, string[]]>([
  ['of the last instant that a day may have', { '2024-01-15': '2024-01-16T00:00:00' }, []],
  [
    'of the day before the file',
    { '2024-01-15': '2024-01-14T12:00:00' },
    ['the rows of 2024-01-15 are from 2024-01-14T12:00:00Z … 2024-01-14T12:00:00Z, outside this period'],
  ],
  [
    'of the day after, within the file',
    { '2024-01-15': '2024-01-16T08:00:00', '2024-01-16': '2024-01-16T16:00:00' },
    ['the rows of 2024-01-15 are from 2024-01-16T08:00:00Z … 2024-01-16T08:00:00Z, outside this period'],
  ],
])('rows %s are judged by the rule of the writer', async (_, times, wrong) => {
  expect(await wrongWith(times)).toEqual(wrong);
});

it.each<[string, string, string | undefined]>([
  ['in order', 'range', undefined],
  ['twice at the start of a row group', 'if(range = 81920, 81919, range)', '1 rows are duplicates'],
  [
    'exchanged over the start of a row group',
    'CASE range WHEN 81920 THEN 81919 WHEN 81919 THEN 81920 ELSE range END',
    '1 rows are not in the order',
  ],
])('rows %s are found in the order of the file, also with several threads', async (name, second, text) => {
  const path = join(folder, `${name}.parquet`);
  const threads = createEngine({ threads: 4, memoryBytes: 300e6, tempFolder: folder });
  const duckdb = await threads.connect();
  const start = '2024-01-15T00:00:00Z';
  // 22 row groups: DuckDB gives each thread several of them.
  await duckdb.run(
    `COPY (SELECT TIMESTAMP '2024-01-15' + to_seconds(${second}) AS calc_time, 8::BIGINT AS funding_interval_hours,
      0.0001::DOUBLE AS last_funding_rate, NULL::DOUBLE AS mark_price FROM range(86400)) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 4096)`,
  );
  const file = { path, spec: specOf('um', 'fundingRate'), settings: SETTINGS };
  const lines = [objectLine('2024-01-15', { rows: 86_400, first: start, last: '2024-01-15T23:59:59Z' })];
  for (let round = 0; round < 3; round += 1) {
    const wrong = await inspectRows(duckdb, { ...file, lines });
    expect(wrong).toEqual(text === undefined ? [] : [expect.stringContaining(text)]);
  }
  duckdb.close();
  threads.close();
});

it.each([
  ['2024-01-15T23:59:59.999999Z', true],
  ['2024-01-16T00:00:00.5Z', false],
])('objects are apart by time, not by the text of their times: %s', (last, isApart) => {
  const one = objectLine('2024-01-15', { first: '2024-01-15T00:00:00Z', last });
  const next = objectLine('2024-01-16', { first: '2024-01-16T00:00:00Z', last: '2024-01-16T23:00:00Z' });
  expect([areDisjoint(one, next), areDisjoint(next, one)]).toEqual([isApart, isApart]);
});
