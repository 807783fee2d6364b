/** The failures in the newest failure report of a lake, for `coverage`. */
import { mkdirSync, mkdtempSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SETTINGS } from '../../../scripts/synthetic-lake.js';
import { lakePaths } from '../../../src/lake/layout.js';
import { parsePeriod } from '../../../src/model/calendar.js';
import { readLastFailures } from '../../../src/run/failures/last-failures.js';
import type { LastFailures } from '../../../src/run/failures/last-failures.js';
import { scratchFolder } from '../../helpers/folders.js';

const scratch = scratchFolder();
const AT = '2024-01-11T12:00:00Z';
const HEADER = { v: 1, kind: 'header', verb: 'vision', tool: 'test', at: AT, options: {} };

const failed = (differences: object = {}): object => ({
  v: 1,
  kind: 'failed',
  market: 'um',
  dataset: 'klines',
  interval: '1m',
  symbol: 'BTCUSDT',
  cadence: 'daily',
  period: '2024-01-05',
  key: 'key',
  code: 'connect-failed',
  retryable: true,
  attempts: 1,
  message: 'message',
  at: AT,
  settings: SETTINGS,
  ...differences,
});

function newLake(reports: Readonly<Record<string, readonly object[]>>): string {
  const lake = mkdtempSync(join(scratch, 'lake-'));
  mkdirSync(join(lake, '_failures'));
  for (const [name, lines] of Object.entries(reports)) {
    const texts = [HEADER, ...lines].map((line) => `${JSON.stringify(line)}\n`);
    writeFileSync(join(lake, '_failures', name), texts.join(''));
  }
  return lake;
}

async function read(lake: string): Promise<{ found: LastFailures | undefined; warnings: string[] }> {
  const warnings: string[] = [];
  const found = await readLastFailures(lakePaths(lake), (message) => warnings.push(message));
  return { found, warnings };
}

const REPORT = 'vision-20240110T080000000Z.jsonl';

describe('the last failures', () => {
  it('are those of the newest report, by series, with format, period and code', async () => {
    const csv = { settings: { ...SETTINGS, format: 'csv' } };
    const month = { dataset: 'fundingRate', interval: undefined, cadence: 'monthly', period: '2023-12' };
    const lake = newLake({
      'vision-20240109T080000000Z.jsonl': [failed({ symbol: 'ETHUSDT' })],
      [REPORT]: [
        failed(),
        failed({ ...csv, period: '2024-01-06', code: 'of-a-later-version' }),
        failed(month),
        failed({ period: '2024-02-30', symbol: 'ETHUSDT' }),
      ],
    });
    const { found, warnings } = await read(lake);
    expect(warnings).toEqual([]);
    expect(found?.path).toBe(join(lake, '_failures', REPORT));
    expect([...(found?.bySeries ?? [])]).toEqual([
      [
        'um klines 1m BTCUSDT',
        [
          { format: 'parquet', period: parsePeriod('daily', '2024-01-05'), code: 'connect-failed' },
          { format: 'csv', period: parsePeriod('daily', '2024-01-06'), code: 'of-a-later-version' },
        ],
      ],
      [
        'um fundingRate BTCUSDT',
        [{ format: 'parquet', period: parsePeriod('monthly', '2023-12'), code: 'connect-failed' }],
      ],
    ]);
  });

  it('are undefined without a report', async () => {
    expect(await read(newLake({ 'notes.jsonl': [] }))).toEqual({ found: undefined, warnings: [] });
    expect(await read(join(scratch, 'nowhere'))).toEqual({ found: undefined, warnings: [] });
  });

  it('of a damaged report are a warning', async () => {
    const lake = newLake({ [REPORT]: [{ v: 2 }] });
    const { found, warnings } = await read(lake);
    expect(found).toBeUndefined();
    expect(warnings).toEqual([
      expect.stringMatching(/vision-20240110T080000000Z\.jsonl line 2 is not a failure /),
    ]);
  });

  it('are not read through a linked folder', async () => {
    const lake = newLake({ [REPORT]: [failed()] });
    renameSync(join(lake, '_failures'), join(scratch, 'elsewhere'));
    symlinkSync(join(scratch, 'elsewhere'), join(lake, '_failures'));
    const { found, warnings } = await read(lake);
    expect(found).toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining('_failures is a symbolic link')]);
  });
});
