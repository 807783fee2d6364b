import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { Series, Settings } from '../../../src/model/task.js';
import { Converter, received, specOf } from '../../helpers/conversion.js';
import type { Made } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';
import { sized } from '../../helpers/tier-size.js';

// Usual files are written by one statement, all others in steps. Both ways must have the same result for any input.

const SYMBOL = 'BNBUSDT';
/** The second number of a row. */
const NUMBER = /(?<=,-?\d+),2(?:\.5)?,/;
const DAY = 86_400_000;
const START = Date.UTC(2024, 0, 15);
const DATASETS: readonly Series[] = [
  { market: 'um', dataset: 'klines', interval: '1h', symbol: SYMBOL },
  { market: 'spot', dataset: 'klines', interval: '3d', symbol: SYMBOL },
  { market: 'um', dataset: 'markPriceKlines', interval: '4h', symbol: SYMBOL },
  { market: 'um', dataset: 'metrics', symbol: SYMBOL },
];

/** Milliseconds between the expected rows of a dataset. */
function stepOf({ dataset, interval }: Series): number {
  if (dataset === 'metrics') return 300_000;
  return interval === '1h' ? 3_600_000 : interval === '4h' ? 14_400_000 : 28_800_000;
}

/** One row at a time in microseconds, as the archive has it. */
function rowAt(series: Series, us: number, { inMs, value }: { inMs: boolean; value: number }): string {
  const time = inMs ? String(Math.floor(us / 1000)) : String(us);
  if (series.dataset !== 'metrics') {
    const close = Math.floor(us / 1000) + 59_999;
    return `${time},2,2.5,0.001,2,5,${inMs ? close : close * 1000},9,4,1,1,${value}`;
  }
  const text = new Date(Math.floor(us / 1e6) * 1000).toISOString().slice(0, 19).replace('T', ' ');
  return `${text},${SYMBOL},${Math.abs(value)},2,,4,5.5,6`;
}

interface Row {
  /** Steps after the row before. */
  readonly steps: number;
  readonly jitterUs: number;
  readonly value: number;
}

const usualRow = fc.record<Row>({
  steps: fc.constant(1),
  jitterUs: fc.constant(0),
  value: fc.integer({ min: -9, max: 999 }),
});
const unusualRow = fc.record<Row>({
  steps: fc.constantFrom(0, 1, 1, 2, 3, -1, -4),
  jitterUs: fc.constantFrom(0, 0, 0, 1000, 999_000, 1_000_000, 123_456, 7),
  value: fc.integer({ min: -9, max: 999 }),
});

const EDITS: readonly ((text: string) => string)[] = [
  (text) => text.replaceAll('\n', '\r\n'),
  (text) => text.slice(0, -1),
  (text) => `${text}\n`,
  (text) => `\uFEFF${text}`,
  (text) => text.replace(',5', ',5x'),
  (text) => text.replace(',5', ', 5'),
  (text) => text.replace(/\d(?=,)/, '$&.5'),
  (text) => text.replace(/^\d+/m, '"$&"'),
  (text) => text.replace(/^\d/m, ''),
  (text) => text.replace(/^\d/m, ' $&'),
  (text) => text.replace(/^2024-01/m, '2024-13'),
  (text) => text.replace(/^2024-01-1/m, '2024-02-3'),
  (text) => text.replace(' 0', ' 24:'),
  (text) => text.replace(':00,', ':60,'),
  (text) => text.replace(' ', 'T'),
  (text) => text.replace(SYMBOL, 'ETHUSDT'),
  (text) => text.replace('\n', ',1\n'),
  (text) => text.replace(/^[^\n]*\n/, ''),
  (text) => text.replace(/^1/m, '9'),
  (text) => text.replace('2.5', '"2\n.5"'),
  (text) => text.replace('1,0', '1'),
  (text) => text.replace('0.001', '1E-3'),
  (text) => text.replaceAll(',6\n', ',""\n'),
  (text) => text.replaceAll(',6\n', ',\n'),
  (text) => text.replace(NUMBER, ',nan,'),
  (text) => text.replace(NUMBER, ',-inf,'),
  (text) => text.replace(NUMBER, ',Infinity,'),
  (text) => text.replace(NUMBER, `,${'9'.repeat(240)},`),
  (text) => text.replace(NUMBER, `,${'9'.repeat(309)},`),
  (text) => text.replace(/,(?:5|1,0)\n$/, `,0.${'0'.repeat(330)}1`),
  // As many letters as the symbols of all rows have.
  (text) => text.replace(`${SYMBOL},`, 'BTCUSDT,').replace(NUMBER, ',inf,'),
];

const settings = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<Partial<Settings>>({}, { timestamps: 'utc' }) },
  fc.constantFrom<Partial<Settings>>({ format: 'csv' }, { numbers: 'string' }, { asPublished: true }),
);

interface PublishedObject {
  readonly isUsual: boolean;
  readonly rows: readonly (readonly [Row, Row])[];
  /** Rows that are moved, by their positions. */
  readonly moved: readonly number[];
  /** Steps between the start of the period and the first row. */
  readonly startSteps: number;
  readonly hasHeader: boolean;
  readonly inMs: boolean;
  readonly edit: ((text: string) => string) | null;
}

const object = fc.record<PublishedObject>({
  isUsual: fc.boolean(),
  rows: fc.array(fc.tuple(usualRow, unusualRow), { minLength: 1, maxLength: 30, size: '+1' }),
  moved: fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.array(fc.nat(99), { maxLength: 8 })),
  startSteps: fc.constantFrom(0, 0, 0, 1, 5, -1),
  hasHeader: fc.boolean(),
  inMs: fc.boolean(),
  edit: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, fc.constantFrom(...EDITS)),
});

function contentOf(series: Series, day: number, made: PublishedObject): string {
  const step = stepOf(series) * 1000;
  let at = (START + day * DAY) * 1000 + made.startSteps * step;
  // A row of metrics has the time of the end of its interval.
  if (series.dataset === 'metrics') at += step;
  const lines = made.rows.map(([usual, unusual]) => {
    const { steps, jitterUs, value } = made.isUsual ? usual : unusual;
    const line = rowAt(series, at + jitterUs, { inMs: made.inMs, value });
    at += steps * step;
    return line;
  });
  for (const [index, from] of made.moved.entries()) {
    const [line] = lines.splice(from % lines.length, 1);
    lines.splice(index % (lines.length + 1), 0, line ?? '');
  }
  const { columns } = specOf(series.market, series.dataset);
  const names = columns.filter(({ restOnly }) => !restOnly).map(({ name, published }) => published ?? name);
  const text = `${[...(made.hasHeader ? [names.join(',')] : []), ...lines].join('\n')}\n`;
  return made.edit === null ? text : made.edit(text);
}

describe('one statement and several', () => {
  const folder = scratchFolder();
  const converter = new Converter(join(folder, 'both'));
  afterAll(() => {
    converter.close();
  });

  /** Everything that a caller can see. */
  const seen = ({ written, failed, rows, duplicatesAcross, file }: Made): unknown => ({
    written: [...written],
    failed: [...failed].map(([key, { code, message }]) => ({ key, code, message })),
    rows,
    duplicatesAcross,
    content: existsSync(file) ? readFileSync(file).toString('base64') : undefined,
  });

  it('have the same result', async () => {
    let direct = 0;
    const runs = sized(5000, 60);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...DATASETS),
        fc.array(object, { minLength: 1, maxLength: 3 }),
        settings,
        fc.constantFrom(60, 86_400, Number.POSITIVE_INFINITY),
        async (series, objects, chosen, edgeSeconds) => {
          const objectsOf = (): ReturnType<typeof received>[] =>
            objects.map((made, day) => received(`2024-01-${15 + day}`, contentOf(series, day, made)));
          const request = { series, settings: chosen, edgeSeconds };
          const one = await converter.convert({ ...request, received: objectsOf() });
          const several = await converter.convert({ ...request, received: objectsOf(), inSteps: true });
          expect(seen(one)).toEqual(seen(several));
          if (one.statements === 1) direct += 1;
        },
      ),
      { numRuns: runs },
    );
    // Otherwise the property compares the steps with themselves.
    expect(direct / runs).toBeGreaterThan(runs < 1000 ? 0 : 0.1);
  }, 600_000);
});
