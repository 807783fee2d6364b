/** By what hour a dataset's days are published, as `list datasets` tells it from kept listings. */
import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { DAY_MS, dayText } from '../../src/model/calendar.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const scratch = scratchFolder();
const folder = join(scratch, 'archive');
const state = join(scratch, 'state');
const HOUR_MS = 3_600_000;
const today = Math.floor(Date.now() / DAY_MS);
let archive: TestArchive;

/** Objects of days before today, each published so long after the end of its day. */
function publishDays(
  symbol: string,
  days: readonly [number, number],
  afterMs: (index: number) => number,
): void {
  const [first, last] = days.map((ago) => today - ago) as [number, number];
  const made = makeArchive(folder, {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: [symbol],
    from: dayText(first),
    to: dayText(last),
    cadence: 'daily',
  });
  for (const [index, key] of made.keys.entries()) {
    const at = ((first + index + 1) * DAY_MS + afterMs(index)) / 1000;
    utimesSync(join(folder, key), at, at);
  }
}

beforeAll(async () => {
  publishDays('BTCUSDT', [12, 1], (index) => (index === 3 ? 2 * DAY_MS : HOUR_MS));
  publishDays('ETHUSDT', [12, 1], (index) => (index === 5 ? 2 * HOUR_MS + 39.5 * 60_000 : HOUR_MS));
  // Neither old days nor other symbols count.
  publishDays('SOLUSDT', [45, 40], () => 5 * DAY_MS);
  publishDays('DOGEUSDT', [12, 1], () => 3 * DAY_MS);
  archive = await startArchive(folder);
});
afterAll(() => archive.close());

const place = (): string[] => ['--archive-url', archive.url, '--state-dir', state];

async function datasets(): Promise<{ line: string | undefined; fields: CliResult['events'] }> {
  const text = await cryptodlOk(['list', 'datasets', ...place()]);
  const { events } = await cryptodlOk(['list', 'datasets', '--json', ...place()]);
  const line = text.stdout.split('\n').find((one) => one.startsWith('klines\tum\t'));
  return { line, fields: events };
}

describe('the hour of publication', () => {
  it('is not told where no run has kept a listing', async () => {
    const { line, fields } = await datasets();
    expect(line?.split('\t')).toHaveLength(6);
    expect(fields.filter((one) => 'published' in one)).toEqual([]);
  });

  it('is that by which 95 % of the last 30 days of liquid symbols were there, with its sample', async () => {
    const range = ['--from', dayText(today - 45), '--to', dayText(today - 1), '--interval', '1h'];
    const out = ['--out', join(scratch, 'lake'), '--format', 'zip', '--quiet'];
    await cryptodlOk(['vision', '--symbols', 'all', ...range, ...out, ...place(), ...FAST]);
    archive.requests.length = 0;
    const { line, fields } = await datasets();
    expect(archive.requests).toEqual([]);
    const said = '95 % by D+1 02:40 UTC, of 24 daily objects of BTCUSDT, ETHUSDT in 30 days';
    expect(line?.split('\t')[6]).toBe(said);
    const told = fields.filter((one) => 'published' in one);
    const hour = { afterMs: 2 * HOUR_MS + 39.5 * 60_000, by: 'D+1 02:40 UTC', objects: 24 };
    expect(told).toMatchObject([
      { dataset: 'klines', market: 'um', published: { ...hour, symbols: ['BTCUSDT', 'ETHUSDT'] } },
    ]);
  });
});
