/** The made-up archive of the tests has the traps of the real one. */
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { afterAll, describe, expect, it } from 'vitest';

import { makeArchive, makeCsv } from '../../scripts/synthetic-archive.js';

const made: string[] = [];

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cryptodl-synthetic-'));
  made.push(folder);
  return folder;
}

afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

type CsvSpec = Parameters<typeof makeCsv>[0];

/** Cells of the data rows. */
function cells(spec: CsvSpec): string[][] {
  const lines = makeCsv(spec).csv.split('\n').slice(0, -1);
  return lines.filter((line) => /^\d/.test(line)).map((line) => line.split(','));
}

function firstLine(spec: CsvSpec): string {
  return makeCsv(spec).csv.split('\n')[0] ?? '';
}

function column(rows: readonly string[][], index: number): string[] {
  return rows.map((row) => row[index] ?? '');
}

const METRICS: CsvSpec = { market: 'um', dataset: 'metrics', symbol: 'BTCUSDT', period: '2026-06-24' };
const FUNDING: CsvSpec = { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT', period: '2024-02' };
const KLINES: CsvSpec = { market: 'spot', dataset: 'klines', symbol: 'BTCUSDT', period: '2024-12-31' };

describe('a synthetic archive', () => {
  const spec = {
    market: 'um',
    dataset: 'metrics',
    symbols: ['BTCUSDT', '币安人生USDT'],
    from: '2024-02-28',
    to: '2024-03-01',
    cadence: 'daily',
  } as const;

  it('lies in the key layout of the real one, with a true sidecar beside each zip', () => {
    const folder = newFolder();
    const { objects, rows, bytes, keys } = makeArchive(folder, spec);
    expect([objects, rows, keys.length]).toEqual([6, 6 * 288, 6]);
    expect(keys[1]).toBe('data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-2024-02-29.zip');
    let total = 0;
    for (const key of keys) {
      const zip = readFileSync(join(folder, key));
      total += zip.length;
      const digest = createHash('sha256').update(zip).digest('hex');
      expect(readFileSync(join(folder, `${key}.CHECKSUM`), 'utf8')).toBe(`${digest}  ${basename(key)}\n`);
      expect(zip.length).toBeGreaterThan(9_000);
      expect(zip.length).toBeLessThan(12_000);
    }
    expect(bytes).toBe(total);
  });

  it('has whole months, an interval layer for klines, and no sidecars when told so', () => {
    const folder = newFolder();
    const monthly = { market: 'cm', dataset: 'klines', interval: '1h', cadence: 'monthly' } as const;
    const days = { symbols: ['BTCUSD_PERP'], from: '2024-01-31', to: '2024-02-01', sidecars: false };
    const { keys, rows } = makeArchive(folder, { ...monthly, ...days });
    expect(keys).toEqual([
      'data/futures/cm/monthly/klines/BTCUSD_PERP/1h/BTCUSD_PERP-1h-2024-01.zip',
      'data/futures/cm/monthly/klines/BTCUSD_PERP/1h/BTCUSD_PERP-1h-2024-02.zip',
    ]);
    expect(rows).toBe((31 + 29) * 24);
    expect(existsSync(join(folder, `${keys[0]}.CHECKSUM`))).toBe(false);
  });

  it('is the same for the same seed with any other content, and differs for another seed', () => {
    const [first, second, other] = [newFolder(), newFolder(), newFolder()];
    const { keys } = makeArchive(first, spec);
    makeArchive(second, { ...spec, from: '2024-02-20', symbols: spec.symbols.toReversed() });
    makeArchive(other, { ...spec, seed: 2 });
    for (const key of keys) {
      expect(readFileSync(join(second, key)).equals(readFileSync(join(first, key)))).toBe(true);
      expect(readFileSync(join(other, key)).equals(readFileSync(join(first, key)))).toBe(false);
    }
  });
});

describe('metrics', () => {
  it('hold every five minutes once, out of order, as text without a zone', () => {
    const times = column(cells(METRICS), 0);
    const sorted = [...times].sort();
    expect(times).not.toEqual(sorted);
    expect(new Set(times).size).toBe(288);
    expect(column(cells({ ...METRICS, shuffle: false }), 0)).toEqual(sorted);
  });

  it('are labelled with the end of the interval before 2026-06-25 in um, and with its start ever after', () => {
    const ends = (spec: CsvSpec): (string | undefined)[] => {
      const times = column(cells(spec), 0).sort();
      return [times[0], times.at(-1)];
    };
    expect(ends(METRICS)).toEqual(['2026-06-24 00:05:00', '2026-06-25 00:00:00']);
    expect(ends({ ...METRICS, period: '2026-06-25' })).toEqual([
      '2026-06-25 00:00:00',
      '2026-06-25 23:55:00',
    ]);
    const cm: CsvSpec = { ...METRICS, market: 'cm', symbol: 'BTCUSD_PERP' };
    expect(ends(cm)).toEqual(['2026-06-24 00:00:00', '2026-06-24 23:55:00']);
  });

  it('have eight cells each, digits as in the real files, and quoted blanks in old cm files', () => {
    for (const row of cells(METRICS)) {
      expect(row).toHaveLength(8);
      expect(row.join(',')).toMatch(/^[-\d: ]+,BTCUSDT,\d+\.\d{16},\d+\.\d{16},(\d\.\d{8},){3}(\d\.\d{8})?$/);
    }
    const old = cells({ ...METRICS, market: 'cm', symbol: 'BTCUSD_PERP', period: '2023-06-25' });
    expect(new Set(column(old, 4))).toEqual(new Set(['""']));
  });
});

describe('funding rates', () => {
  it('come with jitter and sometimes with an exponent', () => {
    const rows = cells(FUNDING);
    expect(rows).toHaveLength(29 * 3);
    for (const [time = '', hours, rate = ''] of rows) {
      expect(Number(time) % (8 * 3600_000)).toBeLessThan(27);
      expect(hours).toBe('8');
      expect(rate).toMatch(/^-?(0\.\d{8}|\d\.\dE-7|\dE-8)$/);
    }
    expect(column(rows, 0).some((time) => Number(time) % 1000 !== 0)).toBe(true);
    expect(column(rows, 2).some((rate) => rate.includes('E-'))).toBe(true);
  });
});

describe('klines', () => {
  it('are in milliseconds, in spot from 2025 on in microseconds', () => {
    const last = cells(KLINES).at(-1) ?? [];
    expect([last[0], last[6]]).toEqual(['1735689540000', '1735689599999']);
    const first = cells({ ...KLINES, period: '2025-01-01' })[0] ?? [];
    expect([first[0], first[6]]).toEqual(['1735689600000000', '1735689659999999']);
    expect(cells({ ...KLINES, market: 'um', period: '2025-01-01' })[0]?.[0]).toBe('1735689600000');
  });

  it('have a header except in spot, unless told otherwise', () => {
    expect(firstLine(KLINES)).toMatch(/^\d{13},/);
    expect(firstLine({ ...KLINES, market: 'um' })).toMatch(/^open_time,.*,taker_buy_quote_volume,ignore$/);
    expect(firstLine({ ...KLINES, market: 'um', header: false })).toMatch(/^\d{13},/);
    expect(firstLine({ ...KLINES, header: true })).toMatch(/^open_time,/);
  });
});
