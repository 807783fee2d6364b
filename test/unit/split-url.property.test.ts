import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hostOf, splitUrl } from '../../src/http/fetch.js';
import { sized } from '../helpers/tier-size.js';

const label = fc.oneof(
  fc.constantFrom(
    'data',
    'binance',
    'vision',
    'localhost',
    'xn--ls8h',
    'xn--',
    'XN--a',
    'a-b',
    '-a',
    'A',
    'ä',
    '_x',
    '0x7f',
    '08',
    '1',
  ),
  fc.constantFrom('127', '0', '255', '256', '999', '01', '1e3', '0b1', 'é', '%41', ''),
);
const host = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      'data.binance.vision',
      '127.0.0.1',
      '10.0.0.255',
      '[::1]',
      's3.eu-west-1.amazonaws.com',
    ),
  },
  fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join('.')),
);
const port = fc.constantFrom(
  '',
  '',
  ':80',
  ':443',
  ':8080',
  ':080',
  ':0',
  ':65535',
  ':65536',
  ':35955',
  ':256',
  ':99999',
  ':1',
  ':',
  ':x',
);
const segment = fc.oneof(
  fc.constantFrom(
    'data',
    'BTCUSDT-1m-2024-01.zip',
    '.',
    '..',
    '...',
    '.a',
    'a.',
    '%2e',
    '%2E%2e',
    '%20',
    '%zz',
    'a b',
    "it's",
    'é',
    '\\',
    '"',
    '|',
    '^',
  ),
  fc.string({ maxLength: 3 }),
);
const query = fc.constantFrom(
  '',
  '?',
  '?a=b&c=%2F',
  "?a='",
  '?a=/../x',
  '?prefix=data/spot/&max-keys=7',
  '#x',
  '?a#b',
  '? x',
);

const url = fc
  .tuple(
    fc.constantFrom('http', 'https', 'HTTP'),
    fc.constantFrom('', '', '', 'user@', 'a:b@'),
    host,
    port,
    fc.array(segment, { maxLength: 4 }),
    query,
  )
  .map(
    ([scheme, user, name, at, segments, rest]) =>
      `${scheme}://${user}${name}${at}${segments.map((each) => `/${each}`).join('')}${rest}`,
  );

function outcome<T>(act: () => T): T | 'refused' {
  try {
    return act();
  } catch {
    return 'refused';
  }
}

describe('the parts of a URL', () => {
  it('are those of URL, for every address', () => {
    fc.assert(
      fc.property(url, (address) => {
        const expected = outcome(() => {
          const { origin, host: name, pathname, search } = new URL(address);
          return { origin, host: name, path: pathname + search };
        });
        expect(outcome(() => splitUrl(address))).toEqual(expected);
        expect(outcome(() => hostOf(address))).toBe(expected === 'refused' ? expected : expected.host);
      }),
      { numRuns: sized(200_000, 20_000), examples: [['http://127.127.127.1.127']] },
    );
  });

  it.each([
    ['http://127.0.0.1:8080/data/a.zip', 'http://127.0.0.1:8080', '127.0.0.1:8080', '/data/a.zip'],
    [
      'https://data.binance.vision/a%20b?x=1',
      'https://data.binance.vision',
      'data.binance.vision',
      '/a%20b?x=1',
    ],
    ['https://data.binance.vision:443/a/../b', 'https://data.binance.vision', 'data.binance.vision', '/b'],
    ['http://127.1/a', 'http://127.0.0.1', '127.0.0.1', '/a'],
    ['HTTP://EXAMPLE.com', 'http://example.com', 'example.com', '/'],
    ['https://example.com', 'https://example.com', 'example.com', '/'],
  ])('of %s', (address, origin, name, path) => {
    expect(splitUrl(address)).toEqual({ origin, host: name, path });
    expect(hostOf(address)).toBe(name);
  });
});
