/** An exchange that is not Binance (test/helpers/second-exchange.ts) through the pipeline of the built program. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, manifestLines, parquetMetadata, readParquet } from '../helpers/lake.js';
import { candles, candlesKey, secondExchange, SecondArchive } from '../helpers/second-exchange.js';

const scratch = scratchFolder();
const BTC = 'BTC-USDT-SWAP';
const SERIES = `tidal/swap/candles/interval=1h/symbol=${BTC}`;
const archive = new SecondArchive();
let out = '';

beforeAll(() => archive.open());
afterAll(() => archive.close());

beforeEach(() => {
  out = mkdtempSync(join(scratch, 'lake-'));
  archive.objects.clear();
  for (let day = 1; day <= 9; day += 1) publish(day);
  archive.takeRequests();
});

const dayOf = (day: number): string => `2024-03-0${day}`;
const nameOf = (day: number): string => `${BTC}_1h_${dayOf(day)}.csv.gz`;

function publish(day: number, rows = candles(BTC, dayOf(day))): void {
  archive.publish(candlesKey(BTC, dayOf(day)), rows);
}

/** Runs a command line. Verbs that download also get short delays. */
function run(
  line: string,
  now = '2024-03-10T12:00:00Z',
  loadExchange = secondExchange(archive),
): Promise<CliResult> {
  const [verb = ''] = line.split(' ');
  const isDownload = ['vision', 'retry', 'repair'].includes(verb);
  const place = verb === 'list' ? [] : ['--out', out];
  const flags = [...place, '--now', now, ...(isDownload ? FAST : [])];
  return cryptodl([...line.split(' '), ...flags], { loadExchange });
}

const CHOICE = `--market swap --dataset candles --interval 1h --symbols ${BTC}`;
const days = (from: number, to: number): string => `--from ${dayOf(from)} --to ${dayOf(to)}`;

function vision(rest: string, now?: string): Promise<CliResult> {
  return run(`vision ${CHOICE} ${rest}`, now);
}

describe('a download from another exchange', () => {
  it('makes a Parquet file with the rows of its days, which begin at 16:00 UTC', async () => {
    expect(await vision(days(1, 3))).toMatchObject({ code: 0 });
    const rows = await readParquet(join(out, SERIES, '2024-03.parquet'));
    expect(rows).toHaveLength(72);
    expect(rows[0]).toMatchObject({ opened: new Date('2024-02-29T16:00:00Z'), price: 100, amount: 0.5 });
    // The terms of this exchange are not known.
    const { key_value_metadata: entries } = await parquetMetadata(join(out, SERIES, '2024-03.parquet'));
    expect(entries?.map(({ key }) => key).filter((key) => key !== 'ARROW:schema')).toEqual(['cryptodl']);
    expect(existsSync(join(out, '_NOTICE.md'))).toBe(false);
    expect(rows.at(-1)).toMatchObject({ opened: new Date('2024-03-03T15:00:00Z'), price: 123, amount: 23.5 });
    expect(manifestLines(join(out, SERIES)).map(({ key, verified }) => [key, verified])).toEqual(
      [1, 2, 3].map((day) => [candlesKey(BTC, dayOf(day)), 'crc']),
    );
  });

  it('keeps the objects as they are published with --format zip', async () => {
    const { code, stderr } = await vision(`${days(1, 2)} --format zip --recheck-days 0`);
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^ +data +\S+\/history$/m)]);
    const keys = [1, 2].map((day) => candlesKey(BTC, dayOf(day)));
    expect(filesBelow(out, '.csv.gz')).toEqual(keys);
    expect(readFileSync(join(out, keys[0] ?? ''))).toEqual(archive.objects.get(keys[0] ?? ''));
    expect(await run('verify')).toMatchObject({ code: 0 });
    archive.takeRequests();
    const continued = await run(
      'vision --dataset candles --interval 1h --recheck-days 0',
      '2024-03-04T12:00:00Z',
    );
    expect([continued.code, continued.stderr]).toEqual([0, expect.stringMatching(/^ +data +\S+\/history$/m)]);
    expect(archive.takeRequests()).toEqual([nameOf(3)]);
    expect(await vision(`${days(1, 2)} --format zip --recheck-days 0`)).toMatchObject({ code: 0 });
    expect(archive.takeRequests()).toEqual([]);
  });

  it('fetches nothing twice', async () => {
    await vision(days(1, 9));
    expect(archive.takeRequests()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map(nameOf));
    expect(await vision(days(1, 9))).toMatchObject({ code: 0 });
    expect(archive.takeRequests()).toEqual([]);
  });

  it.each([
    ['2024-03-09T15:59:59Z', 8],
    ['2024-03-09T16:00:00Z', 9],
  ])('at %s takes day %i as the last day that is over', async (now, day) => {
    expect(await vision('--days 1', now)).toMatchObject({ code: 0 });
    expect(archive.takeRequests()).toEqual([nameOf(day)]);
    const later = await vision(`--to ${dayOf(day + 1)}`.replace('2024-03-010', '2024-03-10'), now);
    expect([later.code, later.stderr]).toEqual([0, expect.stringContaining(`… ${dayOf(day)}`)]);
  });
});

describe('an hour after day 9 of the exchange ended, on the same UTC day', () => {
  const NOW = '2024-03-09T17:00:00Z';

  it('continues the lake up to day 9, from its last day on', async () => {
    await vision(days(1, 8));
    archive.takeRequests();
    const { code, events } = await run('vision --dataset candles --interval 1h --recheck-days 0 --json', NOW);
    expect([code, events.at(-1)]).toMatchObject([0, { outcomes: { ok: 1, skipped: 0 } }]);
    expect(archive.takeRequests()).toEqual([nameOf(9)]);
  });

  it('repair gets a deleted file back with day 9, and verify then finds the lake sound', async () => {
    await vision(days(1, 9), NOW);
    archive.takeRequests();
    rmSync(join(out, SERIES, '2024-03.parquet'));
    expect(await run('verify', NOW)).toMatchObject({ code: 4 });
    expect(await run('repair', NOW)).toMatchObject({ code: 0 });
    expect(archive.takeRequests()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map(nameOf));
    expect(await run('verify --deep', NOW)).toMatchObject({ code: 0 });
  });

  it('audit compares the days up to day 9', async () => {
    await vision(days(1, 9), NOW);
    archive.takeRequests();
    const { code, stderr } = await run('audit', NOW);
    expect([code, stderr]).toEqual([0, expect.stringContaining('1 series, 1 month')]);
    expect(archive.takeRequests()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map(nameOf));
  });

  it('names day 9 as the last complete day', async () => {
    const { code, stderr } = await vision('--from 2024-03-10 --to 2024-03-10', NOW);
    expect([code, stderr]).toEqual([2, expect.stringContaining('to 2024-03-09, the last complete day\n')]);
  });
});

describe('what another exchange lacks', () => {
  it('is a hole where a day between published days is missing', async () => {
    archive.objects.delete(candlesKey(BTC, dayOf(2)));
    expect(await vision(days(1, 3))).toMatchObject({ code: 0 });
    const absent = manifestLines(join(out, SERIES)).filter(({ kind }) => kind === 'absent');
    expect(absent).toMatchObject([{ first: dayOf(2), last: dayOf(2), reason: 'hole' }]);
    const { events } = await run(`coverage ${days(1, 3)} --json`);
    expect(events.find(({ event }) => event === 'series')).toMatchObject({
      market: 'swap',
      from: '2024-02-29T16:00:00.000Z',
      to: '2024-03-03T16:00:00.000Z',
      expected: 72,
      held: 48,
      gaps: [{ from: '2024-03-01T16:00:00.000Z', to: '2024-03-02T16:00:00.000Z', reason: 'hole', rows: 24 }],
    });
  });

  it('is a gap of hours within a day', async () => {
    const hours = Array.from({ length: 24 }, (_, hour) => hour).filter((hour) => hour < 2 || hour > 4);
    publish(2, candles(BTC, dayOf(2), hours));
    expect(await vision(days(1, 3))).toMatchObject({ code: 0 });
    const gap = ['2024-03-01T18:00:00Z', '2024-03-01T21:00:00Z'];
    expect(manifestLines(join(out, SERIES)).flatMap(({ gaps }) => gaps ?? [])).toEqual([gap]);
    const { events } = await run(`coverage ${days(1, 3)} --json`);
    expect(events.find(({ event }) => event === 'series')).toMatchObject({
      gaps: [{ from: '2024-03-01T18:00:00.000Z', to: '2024-03-01T21:00:00.000Z', rows: 3 }],
      periods: [{ missing: 0 }, { missing: 3 }, { missing: 0 }],
    });
    expect((await run(`coverage ${days(1, 3)}`)).stdout).toContain('2024-03-01 18:00 … 20:00');
  });

  it('is a halt where the exchange knows one', async () => {
    const hours = Array.from({ length: 24 }, (_, hour) => hour).filter((hour) => hour < 2 || hour > 4);
    publish(2, candles(BTC, dayOf(2), hours));
    await vision(days(1, 3));
    const halt = { from: '2024-03-01T18:00:00.000Z', to: '2024-03-01T21:00:00.000Z' };
    const halts = [{ ...halt, market: 'swap', datasets: ['candles'], source: 'https://tidal.test/halt' }];
    const source = secondExchange(archive, { halts });
    const { events } = await run(`coverage ${days(1, 3)} --json`, undefined, source);
    expect(events.find(({ event }) => event === 'series')).toMatchObject({
      gaps: [{ ...halt, reason: 'halt', rows: 3 }],
    });
  });

  it('comes from the origin where the archive fails', async () => {
    const origin = new SecondArchive();
    await origin.open();
    try {
      for (const [key, bytes] of archive.objects) origin.objects.set(key, bytes);
      archive.isDown = true;
      const source = secondExchange(archive, { origin: origin.url });
      expect(
        await run(`vision ${CHOICE} ${days(1, 2)} --breaker-failures 1`, undefined, source),
      ).toMatchObject({ code: 0 });
      expect(new Set(origin.takeRequests())).toEqual(new Set([1, 2].map(nameOf)));
    } finally {
      archive.isDown = false;
      await origin.close();
    }
    expect(await readParquet(join(out, SERIES, '2024-03.parquet'))).toHaveLength(48);
  });

  it('is a failure where an object is cut, until retry gets it whole', async () => {
    const whole = archive.objects.get(candlesKey(BTC, dayOf(2))) ?? Buffer.alloc(0);
    archive.objects.set(candlesKey(BTC, dayOf(2)), whole.subarray(0, -20));
    expect(await vision(days(1, 3))).toMatchObject({ code: 4 });
    const [report = ''] = filesBelow(join(out, '_failures'));
    expect(readFileSync(join(out, '_failures', report), 'utf8')).toContain('"code":"zip-broken"');
    archive.objects.set(candlesKey(BTC, dayOf(2)), whole);
    expect(await run(`retry ${join(out, '_failures', report)}`)).toMatchObject({ code: 0 });
    expect(await readParquet(join(out, SERIES, '2024-03.parquet'))).toHaveLength(72);
  });

  it('is a failure where rows are outside of the day of the exchange', async () => {
    publish(
      2,
      candles(BTC, dayOf(2)).replace(
        String(Date.parse('2024-03-02T15:00:00Z')),
        String(Date.parse('2024-03-02T17:00:00Z')),
      ),
    );
    expect(await vision(days(1, 3))).toMatchObject({ code: 4 });
    const [report = ''] = filesBelow(join(out, '_failures'));
    expect(readFileSync(join(out, '_failures', report), 'utf8')).toContain('"code":"rows-outside-period"');
  });
});

describe('other verbs with another exchange', () => {
  it('list markets, symbols and days', async () => {
    expect((await run('list markets')).stdout).toContain('swap');
    expect((await run('list symbols --market swap --dataset candles --interval 1h')).stdout).toBe(`${BTC}\n`);
    expect((await run(`list periods ${CHOICE} ${days(1, 2)}`)).stdout).toContain(dayOf(2));
  });

  it('coverage ends with the last day that is over for the exchange', async () => {
    await vision(days(1, 2));
    const { events } = await run('coverage --from 2024-03-01 --json', '2024-03-09T16:00:00Z');
    expect(events.find(({ event }) => event === 'series')).toMatchObject({ to: '2024-03-09T16:00:00.000Z' });
  });
});
