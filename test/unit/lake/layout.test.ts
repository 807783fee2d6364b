import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, resolve, sep, win32 } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lakePaths, seriesAt, seriesFolder } from '../../../src/lake/layout.js';
import { safeKeyPath, originalName, safeName } from '../../../src/lake/safe-names.js';
import { scratchFolder } from '../../helpers/folders.js';

const NASTY = [
  '..',
  '.',
  '',
  '/',
  '\\',
  'con',
  'NUL',
  'com1',
  'lpt9.zip',
  'aux',
  '%',
  '%2F',
  ':',
  '~',
  ' ',
  '\0',
];

/** Any text: well-formed or not, with a liking for what paths trip over. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('.', '/', '\\', '%', '2', 'F', ' ', '\n', 'c', 'o', 'n', '币') }),
  fc.array(fc.constantFrom(...NASTY), { maxLength: 4 }).map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom('con', 'PRN', 'aux', 'Nul', 'COM1', 'lpt9'), fc.constantFrom('', '.', '.zip', ' '))
    .map((parts) => parts.join('')),
);

describe('a name made of any text', () => {
  it('is one segment inside its folder', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const name = safeName(text);
        expect(name).not.toBe('');
        expect(name).not.toMatch(/[/\\\0]/);
        expect(resolve('/lake', name)).toBe(`/lake${sep}${name}`);
        expect(win32.resolve('C:\\lake', name)).toBe(`C:\\lake\\${name}`);
      }),
      { numRuns: 2000 },
    );
  });

  it('can be told from it again', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(originalName(safeName(text))).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });

  it('is never a device of Windows, hidden, or ended by a dot or space', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const name = safeName(text);
        expect(name.split('.')[0]).not.toMatch(/^(con|prn|aux|nul|com\d|lpt\d)$/i);
        expect(name).not.toMatch(/^\.|[. ]$/);
      }),
      { numRuns: 2000 },
    );
  });
});

it.each([
  'BTCUSDT',
  'BTCUSD_PERP',
  'BTCUSDT_240329',
  '币安人生USDT',
  '1000SHIBUSDT',
  'CONUSDT',
  '1INCHUPUSDT',
])('%s is its own folder name', (symbol) => {
  expect(safeName(symbol)).toBe(symbol);
});

it('a series has its Hive-style folder', () => {
  const klines = { market: 'um', dataset: 'klines', interval: '1m', symbol: '币安人生USDT' } as const;
  expect(seriesFolder('binance', klines)).toBe('binance/um/klines/interval=1m/symbol=币安人生USDT');
  const metrics = { market: 'cm', dataset: 'metrics', symbol: '../x' } as const;
  expect(seriesFolder('binance', metrics)).toBe('binance/cm/metrics/symbol=%2E.%2Fx');
});

describe('the series of a folder', () => {
  const binance = { name: 'binance', markets: { spot: {}, um: {}, cm: {}, option: {} } };

  it('is the one whose folder it is', () => {
    const interval = fc.option(anyText, { nil: undefined });
    fc.assert(
      fc.property(anyText, interval, anyText, (dataset, maybe, symbol) => {
        const layer = maybe === undefined ? {} : { interval: maybe };
        const series = { market: 'um', dataset, ...layer, symbol } as const;
        const found = seriesAt(binance, seriesFolder('binance', series));
        expect(JSON.stringify(found)).toBe(JSON.stringify(series));
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    'binance/um/klines/interval=1m/symbol=%42TCUSDT',
    'binance/um/klines/interval=1%6D/symbol=BTCUSDT',
    'binance/um/kline%73/interval=1m/symbol=BTCUSDT',
    'binance/um/klines/interval=1m/interval=1m/symbol=BTCUSDT',
    'lake/binance/um/klines/interval=1m/symbol=BTCUSDT',
    'other/um/klines/interval=1m/symbol=BTCUSDT',
    'binance/toString/klines/interval=1m/symbol=BTCUSDT',
    'binance/um/symbol=BTCUSDT',
    'binance/um/klines/interval=1m',
  ])('is none at %s, which the lake never writes', (place) => {
    expect(seriesAt(binance, place)).toBeUndefined();
  });
});

it('a key keeps its layout, and one that climbs stays below the root', () => {
  const key = 'data/spot/daily/klines/BTCUSDT/1m/BTCUSDT-1m-2024-01-15.zip';
  expect(safeKeyPath(key)).toBe(key);
  const root = scratchFolder();
  const file = join(root, safeKeyPath('data/../../../etc/con.zip'));
  expect(file.startsWith(root)).toBe(true);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, '');
  expect(readdirSync(root)).toEqual(['data']);
});

it('files of the program lie where no data folder can be', () => {
  const paths = lakePaths('/lake');
  expect(paths.staging.startsWith(paths.internal)).toBe(true);
  const places = Object.values(paths).filter((value) => typeof value === 'string');
  expect(new Set(places).size).toBe(5);
});
