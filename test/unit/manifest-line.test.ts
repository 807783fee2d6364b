/** The fast reader of manifest lines gives what `JSON.parse` and the check of each field give, or nothing. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { klinesLine } from '../../scripts/synthetic-lake.js';
import { createLineCheck, createLineReader } from '../../src/lake/check-manifest-line.js';
import { PlainLine, readPlainLine } from '../../src/lake/manifest-line.js';
import type { PlainChecks } from '../../src/lake/manifest-line.js';
import type { Settings } from '../../src/model/task.js';
import { loadBinance } from '../../src/source/binance/binance.js';

const ARCHIVE = loadBinance().archive;
const FOLDER = '/lake/binance/um/klines/interval=1m/symbol=BTCUSDT';
const LINE = JSON.stringify(klinesLine('BTCUSDT', '2026-11-20'));
const FACTS = [
  'period',
  'verified',
  'rows',
  'first',
  'last',
  'duplicates',
  'fileBytes',
  'file',
  'settings',
  'key',
] as const;
const readLine = createLineReader(FOLDER, ARCHIVE);
const read = (text: string) => {
  const line = readLine(text);
  return line instanceof PlainLine ? line.line : line;
};
const check = createLineCheck(FOLDER, ARCHIVE);
const CHECKS: PlainChecks = {
  settingsOf: (settings) => JSON.parse(settings) as Settings,
  fileOf: (file) => file,
  isRight: () => true,
};
const plain = (text: string) => readPlainLine(text, CHECKS)?.line;

/** What a reader returns, or its error. */
function resultOf(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return String(error);
  }
}

/** The whole check, without the fast reader. */
function checked(text: string): unknown {
  return resultOf(() => {
    let line: unknown;
    try {
      line = JSON.parse(text);
    } catch {
      throw new TypeError('the line is not JSON');
    }
    return check(line);
  });
}

describe('the fast reader', () => {
  it.each([
    ['a line with all frequent fields', {}],
    ['a name that is not ASCII', { key: 'data/币安人生USDT.zip' }],
  ])('reads %s', (_, differences) => {
    const text = JSON.stringify(klinesLine('BTCUSDT', '2026-11-20', differences));
    expect(plain(text)).toEqual(JSON.parse(text));
    expect(JSON.stringify(plain(text))).toBe(text);
  });

  it.each([
    ['rare fields', { gaps: [] }],
    ['fields that are missing', { rows: undefined }],
    ['no ETag', { etag: undefined }],
    ['a wrong digest', { fileSha256: 'x' }],
    ['a text with an escape', { etag: '"' }],
    ['a negative size', { bytes: -1 }],
    ['a long ETag', { etag: 'x'.repeat(257) }],
    ['a control character', { etag: '\u0085' }],
    ['a number that is not exact', { bytes: 2 ** 53 }],
  ])('leaves a line with %s to the other reader', (_, differences) => {
    expect(plain(JSON.stringify(klinesLine('BTCUSDT', '2026-11-20', differences)))).toBeUndefined();
  });

  it.each([
    ['a day', {}],
    ['a month from REST', { cadence: 'monthly', period: '2026-11', verified: 'rest' }],
  ])('gives %s the same fields at once as later', (_, differences) => {
    const text = JSON.stringify(klinesLine('BTCUSDT', '2026-11-20', differences));
    const line = readPlainLine(text, CHECKS);
    for (const name of FACTS) expect(line?.[name]).toEqual(line?.line[name]);
    expect(line?.line).toEqual(JSON.parse(text));
    expect(line?.line).toBe(line?.line);
  });

  it('leaves settings to their check', () => {
    expect(readPlainLine(LINE, { ...CHECKS, settingsOf: () => undefined })).toBeUndefined();
    expect(readPlainLine(LINE, { ...CHECKS, isRight: () => false })).toBeUndefined();
  });
});

describe('a line gives the same with and without the fast reader', () => {
  it.each([
    ['a file of another kind', { file: '2026-11.csv' }],
    ['a file outside of the series', { file: '../x/2026-11.parquet' }],
    ['an object of another series', { key: LINE.replaceAll('BTC', 'ETH') }],
    ['another period', { period: '2026-11-21' }],
    ['another cadence', { cadence: 'monthly' }],
    [
      'no date of the calendar',
      { period: '2026-11-31', key: 'data/futures/um/daily/klines/BTCUSDT/1m/BTCUSDT-1m-2026-11-31.zip' },
    ],
    ['unknown settings', { settings: { format: 'xml' } }],
    ['no settings', { settings: {} }],
  ])('with %s', (_, differences) => {
    const text = JSON.stringify(klinesLine('BTCUSDT', '2026-11-20', differences));
    expect(resultOf(() => read(text))).toEqual(checked(text));
    expect(checked(text)).toEqual(expect.any(String));
  });

  it('after any edit of its text', () => {
    const piece = fc.constantFrom(
      '',
      '"',
      '}',
      '{',
      ',',
      '\\',
      '0',
      '-',
      '.',
      ' ',
      '\u0000',
      'x',
      ':{"a":"}',
      '"v":2,',
    );
    fc.assert(
      fc.property(fc.nat(LINE.length), fc.nat(30), piece, (from, length, inserted) => {
        const text = LINE.slice(0, from) + inserted + LINE.slice(from + length);
        expect(resultOf(() => read(text))).toEqual(checked(text));
      }),
      { numRuns: 5000 },
    );
  });

  it('with any values of its fields', () => {
    const fields = Object.keys(klinesLine('BTCUSDT', '2026-11-20'));
    fc.assert(
      fc.property(fc.constantFrom(...fields), fc.jsonValue(), (field, value) => {
        const text = JSON.stringify(klinesLine('BTCUSDT', '2026-11-20', { [field]: value }));
        expect(resultOf(() => read(text))).toEqual(checked(text));
      }),
      { numRuns: 2000 },
    );
  });
});
