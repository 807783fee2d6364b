/** A revision that cannot be taken, a day that is withdrawn, a day that shrinks: what the lake holds stays, and the run says so. */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { makeZip } from '../../scripts/make-zip.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { manifestOf, filesBelow, readCsv, readParquet } from '../helpers/lake.js';
import { publishMetrics } from '../helpers/metrics-archive.js';
import { BARS_HEADER, hourlyBars, memberOf, publish, publishZip } from '../helpers/published.js';
import { isZip, useScene } from '../helpers/scene.js';
import type { SceneRun } from '../helpers/scene.js';

const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';

const dayOf = (day: number): string => `2026-11-${String(day).padStart(2, '0')}`;
const keyOf = (day: number): string => `data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-${dayOf(day)}.zip`;

/** Hourly bars of a day; `hours`: as many, from its start. */
const csvOf = (day: number, price = 100 + day, hours = 24): string =>
  hourlyBars([dayOf(day)], price, { hours });

describe('held rows', () => {
  const scene = useScene({ flags: '--symbols BTCUSDT --interval 1h --json' });
  const { folder } = scene;
  const out = join(scene.scratch, 'lake');
  beforeEach(() => {
    for (const path of [join(folder, 'data'), out]) rmSync(path, { recursive: true, force: true });
    for (let day = 1; day <= 20; day += 1) put(day);
  });

  function put(day: number, price?: number, hours?: number): void {
    publish(folder, keyOf(day), csvOf(day, price, hours));
  }

  function withdraw(day: number): void {
    for (const ending of ['', '.CHECKSUM']) rmSync(join(folder, keyOf(day) + ending));
  }

  /** A run at 08:00 on that day of November, for so many days before it. Forgets earlier requests. */
  function run(today: number, flags: readonly string[] = [], days = 1): Promise<CliResult> {
    scene.archive.requests.length = 0;
    const when = ['--days', String(days), '--now', `${dayOf(today)}T08:00:00Z`];
    return scene.vision([...when, ...flags], { lake: 'lake' });
  }

  /** The lake holds the first ten days as they are published at the start of each test. */
  async function holdTenDays(form: readonly string[] = []): Promise<void> {
    const prepared = join(scene.scratch, ['prepared', ...form].join(' '));
    if (existsSync(prepared)) {
      cpSync(prepared, out, { recursive: true, preserveTimestamps: true });
      return;
    }
    expect((await run(11, form, 10)).code).toBe(0);
    cpSync(out, prepared, { recursive: true, preserveTimestamps: true });
  }

  const zips = (): string[] => scene.archive.objectRequests().filter(isZip);
  const objects = (result: CliResult): Record<string, unknown>[] =>
    result.events.filter(({ event }) => event === 'object');
  const outcomeOf = (result: CliResult, day: number): Record<string, unknown>[] =>
    objects(result).filter(({ key }) => key === keyOf(day));
  const summaryOf = (result: CliResult): Record<string, unknown> | undefined => result.events.at(-1);

  /** Of each held day its rows and their price: `24 of 108`. */
  async function held(): Promise<Record<number, string>> {
    const days: Record<number, { rows: number; price: number }> = {};
    for (const file of filesBelow(join(out, SERIES))) {
      const path = join(out, SERIES, file);
      const rows = file.endsWith('.parquet')
        ? await readParquet(path)
        : file.endsWith('.csv')
          ? readCsv(path)
          : [];
      for (const row of rows) {
        const time = row['open_time'];
        const day = (time instanceof Date ? time : new Date(Number(time) / 1000)).getUTCDate();
        days[day] = { rows: (days[day]?.rows ?? 0) + 1, price: Number(row['open']) };
      }
    }
    return Object.fromEntries(
      Object.entries(days).map(([day, { rows, price }]) => [Number(day), `${rows} of ${price}`]),
    );
  }
  const usual = (from: number, to: number): Record<number, string> =>
    Object.fromEntries(
      Array.from({ length: to - from + 1 }, (_, index) => [from + index, `24 of ${100 + from + index}`]),
    );

  const FORMS = [
    ['a month file', []],
    ['a CSV', ['--format', 'csv']],
    ['day files', ['--partition', 'day']],
    ['rows as published', ['--as-published']],
  ] as const;

  describe.each(FORMS)('in %s', (_, form) => {
    /** What is wrong with the revision of the 8th, how it is published, its error code, and the exit code. */
    const BROKEN: readonly (readonly [string, () => void, string, number])[] = [
      [
        'a stale sidecar',
        () => {
          publish(folder, keyOf(8), csvOf(8, 999), (_digest, name) => `${'0'.repeat(64)}  ${name}\n`);
        },
        'sidecar-stale',
        3,
      ],
      [
        'a broken zip',
        () => {
          const zip = makeZip([{ name: memberOf(keyOf(8)), data: csvOf(8, 999) }]);
          zip.fill(0, zip.length - 22, zip.length - 18);
          publishZip(folder, keyOf(8), zip);
        },
        'zip-broken',
        4,
      ],
      [
        'a malformed row',
        () => {
          publish(folder, keyOf(8), csvOf(8, 999).replace(/999,999/, '999,many'));
        },
        'row-malformed',
        4,
      ],
      [
        'rows of another day',
        () => {
          publish(folder, keyOf(8), csvOf(3, 999));
        },
        'rows-outside-period',
        4,
      ],
    ];

    it.each(BROKEN)(
      'a revision with %s leaves the old one in place, is fetched only by the first run, is told by each run, and keeps no new day out',
      async (_what, revise, code, exitCode) => {
        await holdTenDays(form);
        revise();
        for (const today of [12, 14]) {
          const result = await run(today, form, 13);
          expect([result.code, summaryOf(result)?.['failed']]).toEqual([exitCode, { [code]: 1 }]);
          expect(outcomeOf(result, 8)).toMatchObject([{ outcome: 'failed', code }]);
          const ends = objects(result).map(({ key }) => key);
          expect(ends).toHaveLength(new Set(ends).size);
          expect(await held()).toEqual(usual(1, today - 1));
          // A zip that does not match its sidecar is requested again past caches in the same run, so each path counts once.
          expect([...new Set(zips())].sort()).toEqual(
            (today === 12 ? [8, 11] : [12, 13]).map((day) => `/${keyOf(day)}`),
          );
        }
        put(8, 998);
        expect((await run(15, form)).code).toBe(0);
        expect(await held()).toEqual({ ...usual(1, 14), 8: '24 of 998' });
      },
    );

    it('a revision is taken beside a withdrawn day with one request, and the rows of that day stay', async () => {
      await holdTenDays(form);
      withdraw(6);
      put(8, 999);
      const result = await run(12, form);
      expect(result.code).toBe(0);
      expect(zips().sort()).toEqual([8, 11].map((day) => `/${keyOf(day)}`));
      expect(await held()).toEqual({ ...usual(1, 11), 8: '24 of 999' });
      expect(outcomeOf(result, 6)).toMatchObject([{ outcome: 'skipped', withdrawn: true }]);
      expect(summaryOf(result)).toMatchObject({ changed: 1, withdrawn: 1 });
      expect(result.stderr).toContain('1 changed upstream');
      expect(result.stderr).toContain(`1 withdrawn upstream; the held rows stay\n      ${keyOf(6)}`);
      expect((await run(13, form)).code).toBe(0);
      expect(await held()).toEqual({ ...usual(1, 12), 8: '24 of 999' });
    });
  });

  const ZIPS = ['zips', ['--format', 'zip']] as const;
  describe.each([...FORMS, ZIPS])('in %s', (_, form) => {
    const isConverted = form[1] !== 'zip';
    it.runIf(isConverted)(
      'a revision with as many rows, of other hours, is partial and named, and the held rows stay until --revisions take',
      async () => {
        const hoursOf = (from: number, to: number): string => {
          const [header = '', ...rows] = csvOf(8, 999).trimEnd().split('\n');
          return `${[header, ...rows.slice(from, to)].join('\n')}\n`;
        };
        publish(folder, keyOf(8), hoursOf(0, 20));
        expect((await run(11, form, 10)).code).toBe(0);
        publish(folder, keyOf(8), hoursOf(3, 23).replaceAll('999', '777'));
        const result = await run(12, [...form, '--quiet']);
        expect(outcomeOf(result, 8)).toMatchObject([
          { outcome: 'partial', rows: 20, keptRows: 20, lackedRows: 3 },
        ]);
        expect(summaryOf(result)).toMatchObject({ changed: 0, shorter: 1 });
        expect(result.stderr).toContain(`${keyOf(8)}: 20 rows, the lake holds 20; it lacks 3 held rows`);
        expect(await held()).toEqual({ ...usual(1, 11), 8: '20 of 999' });
        expect([(await run(13, form)).code, zips()]).toEqual([0, [`/${keyOf(12)}`]]);
        expect(summaryOf(await run(14, [...form, '--revisions', 'take']))).toMatchObject({ changed: 1 });
        expect(await held()).toEqual({ ...usual(1, 13), 8: '20 of 777' });
        // With rows added and none lost it is taken as usual.
        publish(folder, keyOf(8), hoursOf(3, 24).replaceAll('999', '555'));
        expect(summaryOf(await run(15, form))).toMatchObject({ changed: 1, shorter: 0 });
        expect(await held()).toEqual({ ...usual(1, 14), 8: '21 of 555' });
      },
    );

    it('a revision with fewer rows is partial and named, and the held rows stay', async () => {
      await holdTenDays(form);
      put(8, 999, 5);
      const result = await run(12, [...form, '--quiet']);
      expect(result.code).toBe(0);
      expect(zips().sort()).toEqual([8, 11].map((day) => `/${keyOf(day)}`));
      expect(outcomeOf(result, 8)).toMatchObject([{ outcome: 'partial' }]);
      expect(summaryOf(result)).toMatchObject({ outcomes: { ok: 1, partial: 1 }, changed: 0, shorter: 1 });
      expect(result.stderr).toContain('1 revised upstream without some of the held rows; the held rows stay');
      expect(result.stderr).toContain(keyOf(8));
      if (isConverted) expect(await held()).toEqual(usual(1, 11));
      // The same revision is not fetched again.
      expect((await run(13, form)).code).toBe(0);
      expect(zips()).toEqual([`/${keyOf(12)}`]);
      // Another revision is looked at: this one has all rows.
      put(8, 998);
      const fuller = await run(14, form);
      expect(summaryOf(fuller)).toMatchObject({ changed: 1, shorter: 0 });
      if (isConverted) expect(await held()).toEqual({ ...usual(1, 13), 8: '24 of 998' });
      expect((await cryptodl(['verify', '--deep', '--out', out])).code).toBe(0);
    });

    it('--revisions take takes a revision with fewer rows, also one that was looked at before', async () => {
      await holdTenDays(form);
      put(8, 999, 5);
      expect((await run(12, form)).code).toBe(0);
      const result = await run(13, [...form, '--revisions', 'take']);
      expect(zips().sort()).toEqual([8, 12].map((day) => `/${keyOf(day)}`));
      expect(summaryOf(result)).toMatchObject({ changed: 1, shorter: 0 });
      if (isConverted) expect(await held()).toEqual({ ...usual(1, 12), 8: '5 of 999' });
      expect((await run(14, form)).code).toBe(0);
      expect(zips()).toEqual([`/${keyOf(13)}`]);
    });
  });

  it('from day files to a month file with one malformed day, the file of that day stays', async () => {
    await holdTenDays(['--partition', 'day']);
    publish(folder, keyOf(8), csvOf(8, 999).replace(/999,999/, '999,many'));
    const result = await run(11, ['--partition', 'month', '--force'], 10);
    expect([result.code, await held()]).toEqual([4, usual(1, 10)]);
  });

  it('a forced rewrite with one malformed object keeps the old file', async () => {
    await holdTenDays();
    publish(folder, keyOf(8), csvOf(8, 999).replace(/999,999/, '999,many'));
    const result = await run(11, ['--force'], 10);
    expect([result.code, summaryOf(result)?.['failed']]).toEqual([4, { 'row-malformed': 10 }]);
    expect(await held()).toEqual(usual(1, 10));
  });

  /** The 8th without its header. */
  const rowsOnly = (hours: number): string => csvOf(8, 999, hours).slice(BARS_HEADER.length);

  it.each([
    ['a revision without the header has as many rows', csvOf(8, 999), rowsOnly(24), 0],
    ['a revision with a header and one row less has fewer', rowsOnly(24), csvOf(8, 999, 23), 1],
    ['a revision without the last line end has as many rows', rowsOnly(24), rowsOnly(24).trimEnd(), 0],
  ])('rows of a zip are counted, not lines: %s', async (_, first, second, shorter) => {
    publish(folder, keyOf(8), first);
    expect((await run(11, ['--format', 'zip'], 10)).code).toBe(0);
    publish(folder, keyOf(8), second);
    const result = await run(11, ['--format', 'zip'], 10);
    expect(summaryOf(result)).toMatchObject({ shorter, changed: 1 - shorter });
  });

  it('a revision is refused if the manifest line of the held day ends before the last row that the file has of this day', async () => {
    await holdTenDays();
    const manifest = manifestOf(join(out, SERIES));
    const text = readFileSync(manifest, 'utf8');
    const last = `"last":"${dayOf(8)}T23:00:00Z"`;
    expect(text).toContain(last);
    writeFileSync(manifest, text.replace(last, last.replace('23', '22')));
    put(8, 999);
    const result = await run(11, [], 10);
    expect([result.code, summaryOf(result)?.['failed']]).toEqual([3, { 'partition-incomplete': 1 }]);
    expect(await held()).toEqual(usual(1, 10));
  });

  it('a zip that cannot be unpacked does not take the place of one that can, without --revisions take', async () => {
    await holdTenDays(['--format', 'zip']);
    const sound = readFileSync(join(out, keyOf(8)));
    const broken = makeZip([{ name: memberOf(keyOf(8)), data: csvOf(8, 999) }]);
    broken[80] = (broken[80] ?? 0) ^ 0xff;
    publishZip(folder, keyOf(8), broken);
    const result = await run(12, ['--format', 'zip']);
    expect([result.code, summaryOf(result)]).toMatchObject([
      4,
      { outcomes: { ok: 1, failed: 1 }, failed: { 'zip-broken': 1 }, changed: 0 },
    ]);
    expect(readFileSync(join(out, keyOf(8)))).toEqual(sound);
    expect(readFileSync(join(out, '_quarantine', keyOf(8)))).toEqual(broken);
    expect((await cryptodl(['verify', '--deep', '--out', out])).code).toBe(0);
    const taken = await run(13, ['--format', 'zip', '--revisions', 'take']);
    expect([taken.code, summaryOf(taken)]).toMatchObject([0, { changed: 1 }]);
    expect(readFileSync(join(out, keyOf(8)))).toEqual(broken);
  });

  it('a zip without a checksum is not kept with the checksum of its earlier revision', async () => {
    await holdTenDays(['--format', 'zip']);
    put(8, 999);
    scene.refuse((path) => path === `/${keyOf(8)}.CHECKSUM`, 404);
    expect(summaryOf(await run(12, ['--format', 'zip']))).toMatchObject({ changed: 1 });
    const kept = filesBelow(out, '.CHECKSUM');
    expect(kept).toEqual([1, 2, 3, 4, 5, 6, 7, 9, 10, 11].map((day) => `${keyOf(day)}.CHECKSUM`));
    expect((await cryptodl(['verify', '--deep', '--out', out])).code).toBe(0);
  });

  describe('a revision that was refused before', () => {
    const stale = (): void => {
      publish(folder, keyOf(8), csvOf(8, 999), (_digest, name) => `${'0'.repeat(64)}  ${name}\n`);
    };
    const malformed = (day: number): void => {
      publish(folder, keyOf(day), csvOf(day, 999).replace(/999,999/, '999,many'));
    };
    const asked = (day: number): number => zips().filter((path) => path === `/${keyOf(day)}`).length;

    it('is fetched again when its sidecar is gone', async () => {
      await holdTenDays();
      stale();
      expect((await run(12)).code).toBe(3);
      rmSync(join(folder, `${keyOf(8)}.CHECKSUM`));
      const result = await run(13);
      expect([result.code, asked(8)]).toEqual([0, 1]);
    });

    it('is fetched again with --stale-checksum warn where its sidecar is stale', async () => {
      await holdTenDays();
      stale();
      expect((await run(12)).code).toBe(3);
      expect((await run(13, ['--stale-checksum', 'warn'])).code).toBe(0);
      expect(asked(8)).toBeGreaterThan(0);
      expect(await held()).toEqual({ ...usual(1, 12), 8: '24 of 999' });
    });

    it('is fetched again by retry and with --force', async () => {
      await holdTenDays();
      malformed(8);
      expect((await run(12)).code).toBe(4);
      const told = await run(13);
      expect([told.code, asked(8)]).toEqual([4, 0]);
      expect(outcomeOf(told, 8)).toMatchObject([{ code: 'row-malformed', attempts: 0 }]);
      expect(told.stderr).toContain(keyOf(8));
      const report = String(summaryOf(told)?.['failures']);
      scene.archive.requests.length = 0;
      const places = ['--archive-url', scene.archive.url, '--out', out, ...FAST];
      const again = await cryptodl(['retry', report, '--now', `${dayOf(13)}T09:00:00Z`, ...places]);
      expect([again.code, asked(8)]).toEqual([4, 1]);
      expect([(await run(13)).code, asked(8)]).toEqual([4, 0]);
      await run(13, ['--force']);
      expect(asked(8)).toBe(1);
    });

    it('is only told by later runs, also if nothing is held of its day, until repair asks for it', async () => {
      expect((await run(8, [], 7)).code).toBe(0);
      malformed(8);
      expect([(await run(9)).code, asked(8)]).toEqual([4, 1]);
      for (const today of [10, 11]) {
        const result = await run(today);
        expect([result.code, asked(8)]).toEqual([4, 0]);
        expect(outcomeOf(result, 8)).toMatchObject([{ outcome: 'failed', code: 'row-malformed' }]);
      }
      scene.archive.requests.length = 0;
      const places = ['--archive-url', scene.archive.url, '--out', out, ...FAST];
      const repaired = await cryptodl(['repair', '--now', `${dayOf(11)}T09:00:00Z`, ...places]);
      expect([repaired.code, asked(8)]).toEqual([4, 1]);
    });
  });

  /** Cuts the last byte off the only data file that holds the 6th. */
  function damage(ending: string): void {
    const files = filesBelow(out, ending).filter((file) => !file.startsWith('_quarantine'));
    const file = join(out, files.find((name) => name.includes(dayOf(6))) ?? files[0] ?? '');
    writeFileSync(file, readFileSync(file).subarray(0, -1));
  }

  it.each([
    ['a month file', '.parquet', []],
    ['a CSV', '.csv', ['--format', 'csv']],
    ['a day file', '.parquet', ['--partition', 'day']],
    ['a zip', '.zip', ['--format', 'zip']],
  ] as const)(
    '%s that is damaged and holds a withdrawn day goes to the quarantine, and the loss is told',
    async (_, ending, form) => {
      await holdTenDays(form);
      withdraw(6);
      damage(ending);
      const result = await run(12, form);
      expect([result.code, summaryOf(result)?.['failed']]).toEqual([4, { 'object-withdrawn': 1 }]);
      expect(outcomeOf(result, 6)).toMatchObject([{ outcome: 'failed' }]);
      expect(result.stderr).toContain(`${keyOf(6)} cannot be fetched again: its rows are lost`);
      expect(result.stderr).toMatch(/quarantine +\S+/);
      const aside = filesBelow(join(out, '_quarantine'), ending);
      expect(aside).toHaveLength(1);
      // The checksum of a zip goes with it.
      const checksums = filesBelow(out, `${dayOf(6)}.zip.CHECKSUM`);
      expect(checksums.filter((path) => !path.startsWith('_quarantine'))).toEqual([]);
      if (ending !== '.zip') {
        const { 6: _lost, ...others } = usual(1, 11);
        expect(await held()).toEqual(others);
      }
      const next = await run(13, form);
      expect([next.code, summaryOf(next)?.['failed']]).toEqual([0, {}]);
      expect(filesBelow(join(out, '_quarantine'), ending)).toEqual(aside);
    },
  );

  /** The archive answers requests for the zips and checksums of these days with a status. */
  function refuse(status: number, ...days: readonly number[]): void {
    scene.refuse((path) => days.some((day) => path.startsWith(`/${keyOf(day)}`)), status);
  }

  it('a damaged file that held nothing but a withdrawn day goes to the quarantine as well', async () => {
    expect((await run(7)).code).toBe(0);
    withdraw(6);
    damage('.parquet');
    const result = await run(7);
    expect([result.code, summaryOf(result)?.['failed']]).toEqual([4, { 'object-withdrawn': 1 }]);
    expect(filesBelow(join(out, '_quarantine'), '.parquet')).toHaveLength(1);
    expect(await held()).toEqual({});
  });

  it('of a damaged file, a day that cannot be had now is not lost: a later run fetches it', async () => {
    await holdTenDays();
    withdraw(6);
    damage('.parquet');
    refuse(500, 7);
    const result = await run(11, ['--retries', '0'], 10);
    scene.archive.fault = undefined;
    expect([result.code, summaryOf(result)?.['failed']]).toEqual([
      3,
      { 'object-withdrawn': 1, 'http-server-error': 1 },
    ]);
    const { 6: _lost, ...others } = usual(1, 10);
    expect((await run(11, [], 10)).code).toBe(0);
    expect(await held()).toEqual(others);
  });

  it('a damaged file stays in its place while none of its days can be fetched', async () => {
    await holdTenDays();
    withdraw(6);
    damage('.parquet');
    refuse(500, 1, 2, 3, 4, 5, 7, 8, 9, 10);
    const refused = await run(11, ['--retries', '0'], 10);
    scene.archive.fault = undefined;
    expect([refused.code, summaryOf(refused)?.['failed']]).toEqual([3, { 'http-server-error': 9 }]);
    expect(filesBelow(join(out, SERIES), '.parquet')).toHaveLength(1);
    expect(filesBelow(out).filter((path) => path.startsWith('_quarantine'))).toEqual([]);
    const result = await run(11, [], 10);
    expect(summaryOf(result)?.['failed']).toEqual({ 'object-withdrawn': 1 });
    const { 6: _lost, ...others } = usual(1, 10);
    expect(await held()).toEqual(others);
  });

  /** The hours of a day and the first one of the next, so that rows of both days have one time. */
  const INTO_THE_NEXT = 25;

  it('a revision makes a run fetch all days whose rows overlap, also through other days', async () => {
    for (let day = 1; day <= 5; day += 1) put(day, undefined, INTO_THE_NEXT);
    expect((await run(11, [], 10)).code).toBe(0);
    put(2, 999, INTO_THE_NEXT);
    const result = await run(11, [], 10);
    expect(summaryOf(result)).toMatchObject({ failed: {}, changed: 1 });
    expect(zips().sort()).toEqual([1, 2, 3, 4, 5, 6].map((day) => `/${keyOf(day)}`));
    const rows = await readParquet(join(out, SERIES, '2026-11.parquet'));
    expect([rows.length, rows.filter((row) => row['open'] === 999).length]).toEqual([245, 25]);
  });

  it('a revision that cannot be taken is told beside a revision with fewer rows', async () => {
    put(2, undefined, INTO_THE_NEXT);
    expect((await run(11, [], 10)).code).toBe(0);
    put(2, 999, INTO_THE_NEXT);
    withdraw(3);
    put(7, 999, 5);
    const result = await run(11, [], 10);
    expect([result.code, summaryOf(result)]).toMatchObject([
      4,
      { failed: { 'object-withdrawn': 1 }, shorter: 1, changed: 0 },
    ]);
    expect(outcomeOf(result, 7)).toMatchObject([{ outcome: 'partial' }]);
  });
});

describe('a revision whose rows share a time with those of the next day', () => {
  const scene = useScene({
    flags: `--dataset metrics --symbols BTCUSDT --from ${dayOf(1)} --json --retries 0`,
  });
  const BTC = { symbol: 'BTCUSDT', host: 'fapi' } as const;
  const metricsKey = (day: number): string =>
    `data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-${dayOf(day)}.zip`;
  /** Days 1 to 3 label rows with the end of the interval: the last label is 00:00 of the next day. `differing`: the first rows that are changed. */
  const put = (day: number, differing = 0): void => {
    const options = { shiftMs: day <= 3 ? 300_000 : 0, differing };
    publishMetrics(scene.folder, BTC, Date.parse(`${dayOf(day)}T00:00:00Z`), options);
  };
  /** A run from the first day to that one. */
  const run = (lake: string, to: number): Promise<SceneRun> => scene.vision(`--to ${dayOf(to)}`, { lake });
  const zips = (): string[] => scene.archive.objectRequests().filter(isZip);

  it.each([
    // Since 2026-06-25 days begin with the label 00:00. A day whose labels are ends begins with 00:05, so it is partial.
    ['can be had: both are taken', 200, 0, {}, { ok: 2, partial: 1 }],
    ['is withdrawn: both stay', 404, 4, { 'object-withdrawn': 1 }, { ok: 1 }],
    ['is refused: both stay', 400, 4, { 'http-refused': 2 }, { ok: 1 }],
    [
      'cannot be had now: both stay',
      500,
      3,
      { 'http-server-error': 1, 'partition-incomplete': 1 },
      { ok: 1 },
    ],
  ] as const)('and the next day %s, while a new day is added', async (_, status, code, failed, outcomes) => {
    const lake = String(status);
    for (let day = 1; day <= 7; day += 1) put(day);
    expect((await run(lake, 6)).code).toBe(0);
    put(3, 10);
    scene.archive.requests.length = 0;
    scene.refuse((path) => status !== 200 && path.startsWith(`/${metricsKey(4)}`), status);
    const result = await run(lake, 7);
    expect([result.code, result.events.at(-1)?.['failed']]).toEqual([code, failed]);
    if (status !== 500) expect(zips().sort()).toEqual([3, 4, 7].map((day) => `/${metricsKey(day)}`));
    expect(result.events.at(-1)).toMatchObject({ outcomes });
    const rows = await readParquet(join(result.lake, 'binance/um/metrics/symbol=BTCUSDT/2026-11.parquet'));
    expect(rows).toHaveLength(7 * 288);
  });

  it('and cannot be read: the unchanged next day is no failure', async () => {
    const lake = 'unreadable';
    for (let day = 1; day <= 7; day += 1) put(day);
    expect((await run(lake, 6)).code).toBe(0);
    publish(scene.folder, metricsKey(3), 'other\n1\n');
    scene.archive.requests.length = 0;
    const result = await run(lake, 7);
    expect(zips().sort()).toEqual([3, 4, 7].map((day) => `/${metricsKey(day)}`));
    expect([result.code, result.events.at(-1)]).toMatchObject([
      4,
      { failed: { 'header-unknown': 1 }, outcomes: { ok: 1, skipped: 5 } },
    ]);
    const rows = await readParquet(join(result.lake, 'binance/um/metrics/symbol=BTCUSDT/2026-11.parquet'));
    expect(rows).toHaveLength(7 * 288);
  });
});
