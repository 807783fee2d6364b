import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../src/model/errors.js';
import { url } from '../../src/options/addresses.js';
import * as parse from '../../src/options/parsers.js';

const choice = parse.choice(['parquet', 'csv', 'zip']);

const PARSERS: Readonly<Record<string, parse.Parse<unknown>>> = {
  choice,
  text: parse.text,
  flag: parse.flag,
  'integer from 0': parse.integer(0),
  'integer from 1': parse.integer(1),
  days: parse.days,
  duration: parse.duration,
  bytes: parse.bytes,
  byteRate: parse.byteRate,
  timeout: parse.timeout,
  instant: parse.instant,
  url,
  concurrency: parse.concurrency,
  market: parse.market(['spot', 'um', 'cm', 'option']),
  interval: parse.interval(['1s', '1m', '5m', '15m', '1h', '2h', '4h', '12h', '1d', '3d', '1w', '1mo']),
};

function parserOf(name: string): parse.Parse<unknown> {
  const parser = PARSERS[name];
  if (parser === undefined) throw new RangeError(name);
  return parser;
}

describe('accepted', () => {
  it.each<[string, string, unknown]>([
    ['choice', 'csv', 'csv'],
    ['text', ' as it is ', ' as it is '],
    ['flag', 'true', true],
    ['flag', '1', true],
    ['flag', 'no', false],
    ['flag', 'off', false],
    ['integer from 0', '0', 0],
    ['integer from 1', '007', 7],
    ['duration', '1.5s', 1500],
    ['bytes', '2KiB', 2048],
    ['byteRate', '1kB', 1000],
    ['timeout', '1ms', 1],
    ['instant', '2026-11-21', Date.UTC(2026, 10, 21)],
    ['instant', '2026-11-21T08:00Z', Date.UTC(2026, 10, 21, 8)],
    ['instant', '2026-11-21T08:00:01.500Z', Date.UTC(2026, 10, 21, 8, 0, 1, 500)],
    ['url', 'http://127.0.0.1:8090/', 'http://127.0.0.1:8090'],
    ['url', 'https://s3.example/data.binance.vision//', 'https://s3.example/data.binance.vision'],
    ['concurrency', '50', { kind: 'fixed', limit: 50 }],
    ['concurrency', '1024', { kind: 'fixed', limit: 1024 }],
    ['concurrency', 'auto', { kind: 'auto', max: 128 }],
    ['concurrency', 'auto:64', { kind: 'auto', max: 64 }],
    ...['um', 'UM', 'usdm', 'USD-M', 'USDⓢ-M', 'futures', 'um-futures', 'perp', 'linear'].map(
      (text): [string, string, string] => ['market', text, 'um'],
    ),
    ...['cm', 'coinm', 'COIN-M', 'inverse', 'cm-futures'].map((text): [string, string, string] => [
      'market',
      text,
      'cm',
    ]),
    ['market', 'SPOT', 'spot'],
    ['market', 'options', 'option'],
    ['market', 'All', 'all'],
    ...['1h', '1H', '60m', '60min', '1hour', '1Hr', '3600s'].map((text): [string, string, string] => [
      'interval',
      text,
      '1h',
    ]),
    ['interval', '1min', '1m'],
    ['interval', '5MIN', '5m'],
    ['interval', '60s', '1m'],
    ['interval', '120m', '2h'],
    ['interval', '240min', '4h'],
    ['interval', '24h', '1d'],
    ['interval', '1day', '1d'],
    ['interval', '1week', '1w'],
    ['interval', '1month', '1mo'],
    ['interval', 'all', 'all'],
    // The datasets refuse these.
    ...['1M', '5M', '7d', '7m', 'h1', '60', '1 h', 'constructor'].map((text): [string, string, string] => [
      'interval',
      text,
      text,
    ]),
  ])('%s takes %j', (name, text, value) => {
    expect(parserOf(name)(text, '--x')).toEqual(value);
  });
});

function refusal(name: string, text: string): CryptodlError {
  try {
    parserOf(name)(text, 'CRYPTODL_X');
  } catch (error) {
    if (error instanceof CryptodlError && error.code === 'usage') return error;
    throw error;
  }
  throw new Error(`${name} took ${text}`);
}

it.each(['http://x/?X-Amz-Signature=secret', 'http://x/#secret', 'x/?secret'])(
  'the query of an address is refused, and not shown: %s',
  (text) => {
    const error = refusal('url', text);
    expect(error.message).toContain('CRYPTODL_X');
    expect(inspect(error)).not.toContain('secret');
  },
);

describe('refused, with place and reason', () => {
  it.each([
    ...['', 'PARQUET', 'cvs', 'parquet,csv'].map((text) => ['choice', text]),
    ...['maybe', 'TRUE', '', '2'].map((text) => ['flag', text]),
    ...['-1', '1.5', '1e3', '', ' 1', '0x10', '9007199254740993'].map((text) => ['integer from 0', text]),
    ...['0', '-0'].map((text) => ['integer from 1', text]),
    ...['nasdaq', 'margin', 'delivery', 'constructor', ''].map((text) => ['market', text]),
    ...['30', '1 s', '-1s', ''].map((text) => ['duration', text]),
    ...['30', '0', '0s', '0.9ms'].map((text) => ['timeout', text]),
    ...['1XB', '', '-1'].map((text) => ['bytes', text]),
    ...['1XB', '0', '999', '0.9kB'].map((text) => ['byteRate', text]),
    ...['2026-11-21T08:00', '2026-11-21T08:00:00+01:00', '2026-02-30', '1970-01-01', 'now', ''].map(
      (text) => ['instant', text],
    ),
    ...['ftp://x', 'x', '', 'file:///etc/passwd'].map((text) => ['url', text]),
    ...['0', '1025', 'auto:0', 'auto:1025', 'auto:', '-1', '1.5', 'all', ''].map((text) => [
      'concurrency',
      text,
    ]),
  ] as [string, string][])('%s: %j', (name, text) => {
    const error = refusal(name, text);
    expect(error.message).toContain('CRYPTODL_X');
    expect(error.message).toContain(`"${text}"`);
  });

  it.each([
    ['choice', 'parqet', 'did you mean parquet?'],
    ['integer from 1', 'x', 'CRYPTODL_X=7'],
    ['days', '2w', 'CRYPTODL_X=14'],
    ['market', 'margin', 'margin orders trade on the spot market'],
    ['duration', 'x', 'CRYPTODL_X=30s'],
    ['bytes', 'x', 'CRYPTODL_X=500MB'],
    ['instant', 'x', 'CRYPTODL_X=2026-11-21T08:00:00Z'],
    ['url', 'x', 'CRYPTODL_X=http://127.0.0.1:8090'],
    ['concurrency', 'x', 'CRYPTODL_X=auto:64'],
    ['text', '', 'give CRYPTODL_X a value'],
  ])('%s suggests a value in place of %j', (name, text, hint) => {
    expect(refusal(name, text).hint).toContain(hint);
  });

  it('a choice names all there is', () => {
    expect(refusal('choice', 'x').message).toContain('parquet, csv, zip');
  });

  it.each([
    ['--days', '1month', '--days 30, or --months 1 for the last complete month'],
    ['CRYPTODL_DAYS', '2y', 'CRYPTODL_DAYS=730, or CRYPTODL_MONTHS=24 for complete months'],
    ['c.yaml: days', '2 months', 'days: 60, or months: 2 for complete months'],
  ])('%s %s means days or complete months', (where, text, hint) => {
    expect(() => parse.days(text, where)).toThrow(expect.objectContaining({ hint, correction: undefined }));
  });

  it('a text with a NUL character', () => {
    expect(refusal('text', 'a\0b').message).toBe('CRYPTODL_X holds a NUL character');
  });
});
