/** What changes upstream, comes late, is missing or is contradicted: through the real binary, run after run. */
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { manifestLines, readParquet } from '../helpers/lake.js';
import { hourlyBars, publish } from '../helpers/published.js';
import { useScene } from '../helpers/scene.js';

const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';

const keyOf = (day: string): string => `data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-${day}.zip`;

/** Hourly bars of a day, but for the hours that are left out. */
const csvOf = (day: string, price: number, without: readonly number[] = []): string =>
  hourlyBars([day], price, { without });

describe('a lake that is continued every day', () => {
  const scene = useScene({});
  const { scratch, folder } = scene;
  let out = '';
  let runs = 0;
  beforeEach(() => {
    runs += 1;
    out = join(scratch, `lake-${runs}`);
    rmSync(join(folder, 'data'), { recursive: true, force: true });
    for (let day = 1; day <= 20; day += 1) put(day);
  });

  const dayOf = (day: number): string => `2026-11-${String(day).padStart(2, '0')}`;

  function put(day: number, price = 100 + day, without: readonly number[] = []): void {
    publish(folder, keyOf(dayOf(day)), csvOf(dayOf(day), price, without));
  }

  function take(day: number): void {
    for (const ending of ['', '.CHECKSUM']) rmSync(join(folder, keyOf(dayOf(day)) + ending), { force: true });
  }

  /** A run at eight o'clock of that day. */
  async function run(today: number, flags: readonly string[], time = '08:00'): Promise<CliResult> {
    scene.archive.requests.length = 0;
    const what = ['--interval', '1h', '--now', `${dayOf(today)}T${time}:00Z`];
    const places = ['--archive-url', scene.archive.url, '--out', out, '--json', ...FAST];
    return cryptodl(['vision', ...what, ...places, ...flags]);
  }

  const named = ['--symbols', 'BTCUSDT'];
  const zips = (): string[] => scene.archive.objectRequests().filter((path) => path.endsWith('.zip'));
  const lines = (kind: string): Record<string, unknown>[] =>
    manifestLines(join(out, SERIES)).filter((line) => line['kind'] === kind);
  const prices = async (): Promise<Record<string, unknown>> =>
    Object.fromEntries(
      (await readParquet(join(out, SERIES, '2026-11.parquet'))).map((row) => [
        (row['open_time'] as Date).toISOString().slice(0, 10),
        row['open'],
      ]),
    );

  it('fetches a revised day, prints both digests, and records the earlier one', async () => {
    expect((await run(11, [...named, '--days', '10'])).code).toBe(0);
    const [before] = lines('object').filter((line) => line['period'] === dayOf(8));
    put(8, 999);
    const result = await run(12, [...named, '--days', '1']);
    expect(result.code).toBe(0);
    const [changed, ...others] = result.events.filter(({ event }) => event === 'changed');
    expect(others).toEqual([]);
    expect(changed).toMatchObject({
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      symbol: 'BTCUSDT',
      period: dayOf(8),
      key: keyOf(dayOf(8)),
      from: { sha256: before?.['sha256'], etag: before?.['etag'], bytes: before?.['bytes'] },
    });
    const after = lines('object').findLast((line) => line['period'] === dayOf(8));
    expect(changed?.['to']).toMatchObject({ sha256: after?.['sha256'], bytes: after?.['bytes'] });
    expect(after).toMatchObject({ replaces: { sha256: before?.['sha256'], at: before?.['at'] } });
    expect(result.stderr).toContain('1 changed upstream');
    expect(result.stderr).toContain(
      `SHA-256 ${String(before?.['sha256'])} is now ${String(after?.['sha256'])}`,
    );
    expect(result.events.at(-1)).toMatchObject({ changed: 1 });
    expect(await prices()).toMatchObject({ [dayOf(7)]: 107, [dayOf(8)]: 999, [dayOf(11)]: 111 });
  });

  it('looks at each held day that the listing shows, or at none with --recheck-days 0', async () => {
    await run(20, [...named, '--days', '15']);
    put(5, 995);
    expect((await run(21, [...named, '--days', '1', '--recheck-days', '0'])).events.at(-1)).toMatchObject({
      changed: 0,
    });
    expect((await run(21, [...named, '--days', '1'])).events.at(-1)).toMatchObject({ changed: 1 });
    expect(await prices()).toMatchObject({ [dayOf(5)]: 995, [dayOf(20)]: 120 });
  });

  it('lacks a day whose revision cannot be taken, until it can', async () => {
    const check = async (): Promise<unknown> =>
      (await cryptodl(['check', '--out', out, '--now', `${dayOf(13)}T09:00:00Z`])).code;
    await run(11, [...named, '--days', '3']);
    publish(folder, keyOf(dayOf(9)), csvOf(dayOf(9), 999), (_, name) => `${'0'.repeat(64)}  ${name}\n`);
    for (const today of [12, 13]) expect((await run(today, [...named, '--days', '1'])).code).toBe(3);
    expect(await check()).toBe(3);
    put(9, 999);
    expect((await run(13, [...named, '--days', '1'])).code).toBe(0);
    expect(await check()).toBe(0);
  });

  it('--revisions ignore keeps the held rows, only fetches nothing else', async () => {
    await run(11, [...named, '--days', '5']);
    put(9, 999);
    const ignored = await run(12, [...named, '--days', '5', '--revisions', 'ignore']);
    expect(ignored.events.at(-1)).toMatchObject({ outcomes: { ok: 1, skipped: 4 }, changed: 0 });
    put(10, 998);
    const only = await run(13, [...named, '--days', '5', '--revisions', 'only']);
    expect(only.events.at(-1)).toMatchObject({ changed: 2 });
    expect(Object.keys(await prices())).not.toContain(dayOf(12));
    expect(await prices()).toMatchObject({ [dayOf(9)]: 999, [dayOf(10)]: 998 });
    const continued = await run(13, ['--revisions', 'only']);
    expect(continued.events.at(-1)).toMatchObject({ changed: 0, outcomes: { ok: 0 } });
  });

  it('takes no repeated upload of the same bytes for a change', async () => {
    await run(11, [...named, '--days', '5']);
    put(9);
    expect(statSync(join(folder, keyOf(dayOf(9)))).isFile()).toBe(true);
    await run(12, [...named, '--days', '1']);
    expect(zips()).toEqual([`/${keyOf(dayOf(11))}`]);
  });

  it('fetches a late day when it is there, and remembers why it was not', async () => {
    for (let day = 10; day <= 20; day += 1) take(day);
    await run(10, [...named, '--days', '5']);
    expect((await run(11, [...named, '--days', '1'])).events.at(-1)).toMatchObject({
      absent: { 'not-published-yet': 1 },
    });
    expect(lines('absent')).toMatchObject([
      { cadence: 'daily', first: dayOf(10), last: dayOf(10), reason: 'not-published-yet', asked: 1 },
    ]);
    // Five minutes later nothing of it is news.
    await run(11, [...named, '--days', '1'], '08:05');
    expect(lines('absent')).toHaveLength(1);
    put(11);
    await run(12, [...named, '--days', '1']);
    expect(lines('absent').at(-1)).toMatchObject({ first: dayOf(10), reason: 'hole', asked: 1 });
    put(10);
    put(12);
    await run(13, [...named, '--days', '1']);
    expect(Object.keys(await prices())).toEqual([5, 6, 7, 8, 9, 10, 11, 12].map(dayOf));
  });

  it('remembers which hours a short day lacks', async () => {
    put(9, 109, [0, 1, 5, 23]);
    const result = await run(11, [...named, '--days', '3']);
    expect(result.events.at(-1)).toMatchObject({ outcomes: { ok: 2, partial: 1 } });
    const hour = (text: string): string => `${dayOf(9)}T${text}:00:00Z`;
    expect(lines('object').find((line) => line['period'] === dayOf(9))).toMatchObject({
      rows: 20,
      gaps: [
        [hour('00'), hour('02')],
        [hour('05'), hour('06')],
        [hour('23'), `${dayOf(10)}T00:00:00Z`],
      ],
    });
    expect(lines('object').filter((line) => 'gaps' in line)).toHaveLength(1);
  });

  describe('with a checksum that contradicts an object of the listed size and ETag', () => {
    beforeEach(() => {
      publish(folder, keyOf(dayOf(9)), csvOf(dayOf(9), 109), (_, name) => `${'0'.repeat(64)}  ${name}\n`);
    });

    it('takes it with --stale-checksum warn, and says so', async () => {
      const result = await run(11, [...named, '--days', '3', '--stale-checksum', 'warn']);
      expect(result.code).toBe(0);
      expect(result.stderr).toContain('1 stale checksum, accepted by size and ETag');
      expect(result.events.at(-1)).toMatchObject({ staleSidecars: 1, outcomes: { ok: 3 } });
      expect(lines('object').find((line) => line['period'] === dayOf(9))).toMatchObject({
        verified: 'etag',
        staleSidecar: '0'.repeat(64),
      });
    });
  });
});
