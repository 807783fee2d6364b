import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { CryptodlError } from '../../../src/model/errors.js';
import type { Series, Settings } from '../../../src/model/task.js';
import type { ColumnSpec } from '../../../src/exchange/facts.js';
import { findFirstError } from '../../../src/convert/check-rows.js';
import { rowLines } from '../../../src/convert/csv-input.js';
import { Converter, received, specOf } from '../../helpers/conversion.js';
import type { Made } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';
import { readCsv, readParquet } from '../../helpers/lake.js';
import { sized } from '../../helpers/tier-size.js';

const SYMBOL = 'BTCUSDT_240329';
const SERIES: Readonly<Record<string, Series>> = {
  klines: { market: 'um', dataset: 'klines', interval: '1m', symbol: SYMBOL },
  metrics: { market: 'um', dataset: 'metrics', symbol: SYMBOL },
  fundingRate: { market: 'um', dataset: 'fundingRate', symbol: SYMBOL },
};

/** One right row; `at` counts rows. */
const ROWS: Readonly<Record<string, (at: number) => string>> = {
  klines: (at) => {
    const time = 1_704_067_200_000 + at * 60_000;
    return `${time},42283.58,42298.62,0.1,-1.8E-7,2E3,${time + 59_999},12345678901.12345678,1271,${at}.5,0E-8,0`;
  },
  metrics: (at) => `2024-01-15 00:0${at}:00,${SYMBOL},101.5000000000000000,4.2e6,"",1.25,,0.98`,
  fundingRate: (at) => `${1_704_067_200_003 + at * 28_800_000},8,-6E-8`,
};

const NUMBERS = [
  ['1_000', '0x1F', '0b1', 'nan', 'NaN', 'inf', '-Infinity', '1e400', '-1e400', '1e-400', '', '""', ' '],
  ['1.5', '+1', '+-1', '--1', '-+1', '1.', '.5', '.', '-', 'e5', '1e', '1E+5', '1e5.5', '007', '-0', '1d'],
  [' 1', '1 ', ' 1 ', '\t1', '1\t', '1\v', '\f1', '1\r', '\r1', '\u00a01', '1\u2028', '1 2', '1\0'],
  ['"1"', '" 1"', '"1" ', ' "1"', '"1"x', '"1', '1"', '"1""2"', '""""', '"1,2"', '"1\n2"', '"\n1"', '"" '],
  ['١', '１', 'true', "'1'", '9007199254740993', '-9007199254740991', '1e3', '1,', '#1', '\\N', 'NULL'],
].flat();
const TIMES = [
  ['1704067200000', '1704067200000000', '170406720000', '17040672000000', '1704067200000.5', '1.7e12'],
  ['2024-01-15', '2024/01/15 00:00:00', '2024-01-15T00:00:00', '2024-01-15 24:00:00', '2024-02-30 00:00:00'],
  ['24-01-15 00:00:00.0', '2024-01-15 23:59:60', '0000-01-01 00:00:00', '2024-01-15 00:00:0Z', '2024 01 15'],
  ['2024-1-15 00:00:00', '2024-01-15\t00:00:00', '2024-01-15 00:00+00', 'infinity', 'epoch', '2023-02-29'],
  [' 2024-01-15 00:00:00', '"2024-01-15 00:00:00"', SYMBOL, 'BTCUSDT', `"${SYMBOL}"`, ` ${SYMBOL}`],
].flat();
/** What follows a line that has all its cells; the empty text takes its last cell away. */
const TAILS = ['', ',', ',,', ',1', ',""', ' ', ', ', ',,,'];

type Mutation = (lines: string[]) => void;

function inCell(column: fc.Arbitrary<number>, text: fc.Arbitrary<string>): fc.Arbitrary<Mutation> {
  return fc.tuple(fc.nat(3), column, text).map(([at, index, put]): Mutation => (lines) => {
    const cells = (lines[at % lines.length] ?? '').split(',');
    cells[index % cells.length] = put;
    lines[at % lines.length] = cells.join(',');
  });
}

const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  { weight: 5, arbitrary: inCell(fc.nat(11), fc.constantFrom(...NUMBERS)) },
  { weight: 3, arbitrary: inCell(fc.constant(0), fc.constantFrom(...TIMES)) },
  { weight: 1, arbitrary: inCell(fc.nat(11), fc.constantFrom(...NUMBERS, ...TIMES)) },
  { weight: 1, arbitrary: inCell(fc.nat(11), fc.stringMatching(/^[-+ ."\t0-9eE_]{0,6}$/)) },
  {
    weight: 1,
    arbitrary: inCell(fc.nat(11), fc.double({ noNaN: true, noDefaultInfinity: true }).map(String)),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.nat(5), fc.constantFrom('', 'twice')).map(([at, what]): Mutation => (lines) => {
      lines.splice(at, 0, what === '' ? '' : (lines[0] ?? ''));
    }),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.nat(3), fc.constantFrom(...TAILS)).map(([at, tail]): Mutation => (lines) => {
      const line = lines[at % lines.length] ?? '';
      lines[at % lines.length] = tail === '' ? line.replace(/,[^,]*$/, '') : line + tail;
    }),
  },
);

const published = fc
  .record({
    dataset: fc.constantFrom('klines', 'metrics', 'fundingRate'),
    rows: fc.integer({ min: 1, max: 4 }),
    mutations: fc.array(mutation, { maxLength: 2 }),
    header: fc.boolean(),
    bom: fc.boolean(),
    newline: fc.constantFrom('\n', '\n', '\r\n', '\r\r\n'),
    end: fc.constantFrom('newline', 'newline', 'none', 'return', 'blank'),
    byte: fc.option(fc.record({ at: fc.nat(), value: fc.constantFrom(0x00, 0xff, 0xc3, 0x80, 0x22, 0x0d) }), {
      freq: 8,
    }),
    inFile: fc.boolean(),
  })
  .map((made) => {
    const lines = Array.from({ length: made.rows }, (_, at) => ROWS[made.dataset]?.(at) ?? '');
    for (const mutate of made.mutations) mutate(lines);
    if (made.header)
      lines.unshift(
        columnsOf(made.dataset)
          .map((column) => column.name)
          .join(','),
      );
    const end = { newline: made.newline, none: '', return: '\r', blank: made.newline.repeat(2) }[made.end];
    const bytes = Buffer.from((made.bom ? '\uFEFF' : '') + lines.join(made.newline) + (end ?? ''));
    if (made.byte !== null) bytes[made.byte.at % bytes.length] = made.byte.value;
    return { dataset: made.dataset, inFile: made.inFile, bytes };
  });

/** Of published files, which have no column that only REST fills. */
function columnsOf(dataset: string): readonly ColumnSpec[] {
  return specOf('um', dataset).columns.filter((column) => !column.restOnly);
}

interface Expected {
  /** Values of the file's columns, row by row. */
  readonly rows: readonly (string | number | null)[][];
  /** Counted from 1, header included. */
  readonly wrongLine?: number;
}

/** What the file says, as the design wants it read: nothing is guessed at. */
function expectedOf(dataset: string, bytes: Buffer, keepsText: boolean): Expected {
  const columns = columnsOf(dataset);
  const neverPublished = specOf('um', dataset).columns.slice(columns.length);
  const lines = bytes
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .split('\n');
  const unended = lines.pop() ?? '';
  const all = [...lines.map((line) => line.replace(/\r$/, '')), ...(unended === '' ? [] : [unended])];
  const hasHeader = /^"?[a-z]/i.test(all[0] ?? '');
  const header = (all[0] ?? '').replaceAll('"', '').trim();
  if (hasHeader && header !== columns.map((column) => column.name).join(','))
    return { rows: [], wrongLine: 1 };
  const rows: (string | number | null)[][] = [];
  for (const [index, line] of all.entries()) {
    if (index === 0 && hasHeader) continue;
    const cells = line.split(',').map((text) => /^"([^"]*)"$/.exec(text)?.[1] ?? text);
    const values = columns.map((column, at) => valueOf(column, cells[at] ?? '', keepsText));
    if (cells.length !== columns.length || values.includes(undefined)) return { rows, wrongLine: index + 1 };
    const written = values.filter((_, at) => columns[at]?.type !== 'symbol').map((value) => value ?? null);
    rows.push([...written, ...neverPublished.map(() => null)]);
  }
  return { rows };
}

/** Undefined for a cell that is not what its column declares. */
function valueOf(column: ColumnSpec, text: string, keepsText: boolean): string | number | null | undefined {
  if (column.type === 'symbol') return text === SYMBOL ? text : undefined;
  if (text === '') return column.nullable ? null : undefined;
  const trimmed = text.replace(/^ +| +$/g, '');
  if (column.type === 'datetime') {
    const match = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d))?$/.exec(trimmed);
    const instant = `${match?.[1] ?? ''}T${match?.[2] ?? '00:00:00'}`;
    const epochMs = Date.parse(`${instant}Z`);
    if (Number.isNaN(epochMs) || epochMs < 0) return undefined;
    return new Date(epochMs).toISOString().startsWith(instant) ? epochMs : undefined;
  }
  const value = Number(trimmed);
  if (!/^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(trimmed) || !Number.isFinite(value)) return undefined;
  const isUnderflow = value === 0 && /[1-9]/.test(trimmed.split(/e/i)[0] ?? '');
  if (isUnderflow || (column.type === 'time' && /e/i.test(trimmed))) return undefined;
  if (column.type === 'number') return keepsText ? trimmed : value;
  if (!Number.isInteger(value)) return undefined;
  if (column.type === 'integer') return Number.isSafeInteger(value) ? value : undefined;
  const digits = String(value).length;
  return value > 0 && digits === 13 ? value : digits === 16 ? Math.floor(value / 1000) : undefined;
}

/** Rows in any order, exact duplicates once: both are said elsewhere. */
function asSet(rows: readonly (readonly unknown[])[]): string[] {
  const texts = rows.map((row) => JSON.stringify(row.map((value) => (value === 0 ? 0 : value))));
  return [...new Set(texts)].sort();
}

function heldValue(value: unknown): unknown {
  if (value instanceof Date) return value.getTime();
  return typeof value === 'bigint' ? Number(value) : (value ?? null);
}

const folder = scratchFolder();
const converter = new Converter(folder);
afterAll(() => {
  converter.close();
});

const MODES = {
  'Parquet with doubles': { format: 'parquet', numbers: 'double' },
  'Parquet with digits': { format: 'parquet', numbers: 'string' },
  CSV: { format: 'csv', numbers: 'double' },
} as const;

interface Outcome {
  readonly what: string;
  /** Rows of the object, dropped duplicates included. */
  readonly counted: number;
  /** Rows of the file: those of the object and of its right neighbour. */
  readonly rows: readonly string[];
}

function outcomeThatIsRight(dataset: string, bytes: Buffer, neighbour: Buffer, keepsText: boolean): Outcome {
  const { rows, wrongLine } = expectedOf(dataset, bytes, keepsText);
  const others = expectedOf(dataset, neighbour, keepsText).rows;
  if (wrongLine !== undefined) return { what: `line ${wrongLine}`, counted: 0, rows: asSet(others) };
  if (rows.length === 0) return { what: 'file-empty', counted: 0, rows: asSet(others) };
  return { what: 'written', counted: rows.length, rows: asSet([...rows, ...others]) };
}

async function outcomeOf(made: Made, dataset: string): Promise<Outcome> {
  const error = made.failed.get('2024-01-15.zip');
  const facts = made.written.get('2024-01-15.zip');
  const counted = (facts?.rows ?? 0) + (facts?.duplicates ?? 0);
  return {
    what: error === undefined ? 'written' : told(error),
    counted,
    rows: asSet(await rowsIn(made.file, dataset)),
  };
}

/** Only the codes of content may be given for content. */
function told(error: CryptodlError): string {
  if (error.code === 'file-empty') return error.code;
  const isContent = ['row-malformed', 'symbol-mismatch', 'header-unknown'].includes(error.code);
  const line = /^2024-01-15\.csv (line \d+): /.exec(error.message)?.[1];
  return isContent && line !== undefined ? line : `${error.code}: ${error.message}`;
}

async function rowsIn(file: string, dataset: string): Promise<unknown[][]> {
  if (file.endsWith('.parquet'))
    return (await readParquet(file)).map((row) => Object.values(row).map(heldValue));
  const types = columnsOf(dataset).filter((column) => column.type !== 'symbol');
  return readCsv(file).map((row) =>
    Object.values(row).map((text, at) => {
      const type = types[at]?.type;
      if (text === '') return null;
      if (type === 'time' || type === 'datetime') return Math.floor(Number(text) / 1000);
      return type === 'integer' ? Number(text) : text;
    }),
  );
}

/** What came of a file, and what should have. */
async function compare(
  settings: Partial<Settings>,
  dataset: string,
  bytes: Buffer,
  inFile: boolean,
): Promise<{ readonly found: Outcome; readonly right: Outcome }> {
  const series = SERIES[dataset];
  if (series === undefined) throw new RangeError(dataset);
  const keepsText = settings.numbers === 'string' || settings.format === 'csv';
  const neighbour = Buffer.from(`${ROWS[dataset]?.(9) ?? ''}\n`);
  const path = inFile ? join(folder, 'published.csv') : undefined;
  const objects = [received('2024-01-15', bytes, path), received('2024-01-16', neighbour)];
  const made = await converter.convert({ series, settings, staged: inFile, received: objects });
  const right = outcomeThatIsRight(dataset, bytes, neighbour, keepsText);
  return { found: await outcomeOf(made, dataset), right };
}

const NAMES = Object.keys(MODES);

describe.each(Object.entries(MODES))('%s', (mode, settings) => {
  it('every row of a published file is written as it says, or its first wrong line is named', async () => {
    await fc.assert(
      fc.asyncProperty(published, async ({ dataset, bytes, inFile }) => {
        const { found, right } = await compare(settings, dataset, bytes, inFile);
        expect(found).toEqual(right);
      }),
      { numRuns: sized(300, 8) },
    );
  });

  it.each(['klines', 'metrics'])('no odd cell of %s is taken lightly', async (dataset) => {
    const [first = '', ...rest] = (ROWS[dataset]?.(0) ?? '').split(',');
    const lines = [
      ...TIMES.map((time) => [time, ...rest].join(',')),
      ...NUMBERS.map((cell) => [first, rest[0], cell, ...rest.slice(2)].join(',')),
      ...TAILS.map((tail) => [first, ...rest].join(',') + tail),
    ];
    // In `npm test` each mode takes its share of the lines, so that all of them are read.
    const share = lines.filter((_line, index) => index % NAMES.length === NAMES.indexOf(mode));
    for (const line of sized(lines, share)) {
      const { found, right } = await compare(settings, dataset, Buffer.from(`${line}\n`), false);
      expect({ line, ...found }).toEqual({ line, ...right });
    }
  });
});

it('the exact checker accepts just the files that are read as they say', async () => {
  await fc.assert(
    fc.asyncProperty(published, async ({ dataset, bytes, inFile }) => {
      const expected = expectedOf(dataset, bytes, false);
      const headerLines = /^(\uFEFF)?[a-z]/i.test(bytes.toString('utf8')) ? 1 : 0;
      fc.pre(expected.wrongLine !== 1 || headerLines === 0);
      const object = received('2024-01-15', bytes, inFile ? join(folder, 'checked.csv') : undefined);
      const file = { name: object.name, symbol: SYMBOL, headerLines };
      const wrong = await findFirstError(columnsOf(dataset), file, rowLines(object, headerLines));
      const line = /line (\d+):/.exec(wrong?.message ?? '')?.[1];
      expect(line).toBe(expected.wrongLine?.toString());
    }),
    { numRuns: sized(2000, 50) },
  );
});
