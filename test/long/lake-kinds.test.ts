/** Lakes in buckets do what lakes in folders do. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, readParquet } from '../helpers/lake.js';
import { inBuckets, inFolders } from '../helpers/lake-kinds.js';
import type { LakeKind, TestLake } from '../helpers/lake-kinds.js';
import { hourlyBars, publish } from '../helpers/published.js';

const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const MONTH = `${SERIES}/2026-11.parquet`;

const dayOf = (day: number): string => `2026-11-${String(day).padStart(2, '0')}`;
const keyOf = (day: number, symbol = 'BTCUSDT'): string =>
  `data/futures/um/daily/klines/${symbol}/1h/${symbol}-1h-${dayOf(day)}.zip`;

/** The manifest without the times of its lines. */
const withoutTimes = (bytes: Buffer): string => bytes.toString().replaceAll(/"at":"[^"]*"/g, '"at":""');

const RUNS = [
  ['--days', '3'],
  ['--days', '9', '--format', 'csv'],
  ['--days', '9'],
  ['--days', '2', '--format', 'zip'],
];

it('a bucket holds the same files as a folder after the same runs', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'cryptodl-'));
  const archiveFolder = join(scratch, 'archive');
  for (let day = 1; day <= 20; day += 1)
    publish(archiveFolder, keyOf(day), hourlyBars([dayOf(day)], 100 + day));
  const archive = await startArchive(archiveFolder);
  const kinds = [await inFolders(scratch), await inBuckets(scratch)];
  const contents: string[] = [];
  for (const kind of kinds) {
    const lake = kind.make();
    for (const flags of RUNS) {
      const what = ['--symbols', 'BTCUSDT', '--interval', '1h', '--now', `${dayOf(11)}T08:00:00Z`, ...flags];
      const places = ['--archive-url', archive.url, '--out', lake.out, ...FAST];
      expect((await cryptodl(['vision', ...what, ...places], { env: lake.environment })).code).toBe(0);
    }
    contents.push(lake.content());
  }
  const [ofFolder = '', ofBucket = ''] = contents;
  const names = (root: string): string[] => filesBelow(root).filter((path) => !path.startsWith('.cryptodl/'));
  expect(names(ofBucket)).toEqual(names(ofFolder));
  for (const path of names(ofFolder))
    expect(withoutTimes(readFileSync(join(ofBucket, path)))).toBe(
      withoutTimes(readFileSync(join(ofFolder, path))),
    );
  expect(filesBelow(join(ofBucket, '.cryptodl')).every((path) => /^(?:orders|runs)\//.test(path))).toBe(true);
  await Promise.all([archive.close(), ...kinds.map((kind) => kind.close())]);
  rmSync(scratch, { recursive: true });
});

// Lakes in folders have these tests in the files of their verbs.
describe('a lake in a bucket', () => {
  const scratch = scratchFolder();
  const folder = join(scratch, 'archive');
  let archive: TestArchive;
  let kind: LakeKind;
  let lake: TestLake;
  beforeAll(async () => {
    mkdirSync(folder);
    archive = await startArchive(folder);
    kind = await inBuckets(scratch);
  });
  afterAll(async () => {
    await archive.close();
    await kind.close();
  });
  beforeEach(() => {
    lake = kind.make();
    rmSync(join(folder, 'data'), { recursive: true, force: true });
    for (let day = 1; day <= 20; day += 1) put(day);
  });
  afterEach(() => {
    archive.fault = undefined;
  });

  function put(day: number, price = 100 + day): void {
    publish(folder, keyOf(day), hourlyBars([dayOf(day)], price));
  }

  function verb(
    name: string,
    flags: readonly string[] = [],
    operand: readonly string[] = [],
  ): Promise<CliResult> {
    archive.requests.length = 0;
    return cryptodl([name, ...operand, '--out', lake.out, ...flags], { env: lake.environment });
  }

  /** A run of that day for the days before it. */
  function vision(today: number, flags: readonly string[] = ['--days', '10']): Promise<CliResult> {
    const time = ['--now', `${dayOf(today)}T08:00:00Z`];
    const what = ['--symbols', 'BTCUSDT', '--interval', '1h', '--json', '--archive-url', archive.url];
    return verb('vision', [...what, ...time, ...FAST, ...flags]);
  }

  const zips = (): string[] => archive.objectRequests().filter((path) => path.endsWith('.zip'));

  async function prices(): Promise<Record<string, unknown>> {
    const rows = await readParquet(join(lake.content(), MONTH));
    return Object.fromEntries(
      rows.map((row) => [(row['open_time'] as Date).toISOString().slice(8, 10), row['open']]),
    );
  }

  it('holds what a run has fetched, and a second run fetches nothing', async () => {
    const first = await vision(11);
    expect(first).toMatchObject({ code: 0 });
    expect(Object.keys(await prices())).toHaveLength(10);
    const before = lake.read(MONTH);
    const second = await vision(11);
    expect(second.code).toBe(0);
    expect(zips()).toEqual([]);
    expect(lake.read(MONTH)).toEqual(before);
  });

  it('is continued by days, by revisions and by force', async () => {
    await vision(11);
    expect((await vision(13, ['--days', '2'])).code).toBe(0);
    expect(zips()).toHaveLength(2);
    put(8, 999);
    expect((await vision(13, ['--days', '12'])).code).toBe(0);
    expect(zips()).toEqual([`/${keyOf(8)}`]);
    expect(await prices()).toMatchObject({ '01': 101, '08': 999, '12': 112 });
    expect((await vision(13, ['--days', '2', '--force'])).code).toBe(0);
    expect(Object.keys(await prices())).toHaveLength(12);
  });

  it('tells of damage, repairs it, and is sound then', async () => {
    await vision(11);
    const before = await prices();
    const bytes = Buffer.from(lake.read(MONTH));
    bytes[40] = (bytes[40] ?? 0) ^ 255;
    lake.change(MONTH, bytes);
    const found = await verb('verify');
    expect(found.code).toBe(4);
    expect(found.stdout).toContain(`damaged\t${MONTH}`);
    expect(found.stderr).toContain(`--out ${lake.out}`);
    const repaired = await verb('repair', ['--archive-url', archive.url, ...FAST]);
    expect(repaired.code).toBe(0);
    expect(await prices()).toEqual(before);
    expect((await verb('verify', ['--deep'])).stderr).toContain('all sound');
  });

  it('moves damage to the quarantine with verify --fix, and repair fetches it again', async () => {
    await vision(11);
    const before = await prices();
    lake.change(MONTH, lake.read(MONTH).subarray(0, 500));
    lake.change('binance/um/stray.txt', 'not ours');
    const fixed = await verb('verify', ['--fix']);
    expect(fixed.stdout).toContain(`kept in ${lake.out}/_quarantine/`);
    const content = lake.content();
    const kept = filesBelow(join(content, '_quarantine')).filter((path) => !path.endsWith('.cause'));
    expect(kept).toHaveLength(2);
    expect(filesBelow(content, 'stray.txt')).toEqual([]);
    expect(filesBelow(content, '2026-11.parquet')).toEqual([]);
    expect((await verb('repair', ['--archive-url', archive.url, ...FAST])).code).toBe(0);
    expect(await prices()).toEqual(before);
  });

  it('answers coverage, sql, runs, plot, export, universe and report', async () => {
    await vision(11);
    const now = ['--now', `${dayOf(11)}T08:00:00Z`];
    const covered = await verb('coverage', ['--json', ...now]);
    expect(covered.events[0]).toMatchObject({ symbol: 'BTCUSDT', rows: 240 });
    const counted = await verb('sql', ['--json'], ['select count(*) as n from um_klines']);
    expect(counted.stdout).toContain('240');
    expect((await verb('runs', ['--json'])).events[0]).toMatchObject({ event: 'run' });
    expect((await verb('plot', [], ['BTCUSDT'])).stdout).toContain('BTCUSDT');
    const target = join(scratch, `export-${Math.random()}`);
    const exported = await verb('export', ['--target', target, '--json'], ['freqtrade']);
    expect(exported.events.at(-1)).toMatchObject({ event: 'summary', rows: 240, files: { written: 1 } });
    const daily = await verb('universe', ['--every', 'day', '--window', '9d', ...now]);
    expect(daily.stdout).toMatch(new RegExp(`^${dayOf(11)},BTCUSDT,1,[\\d.]+,9,${dayOf(1)}$`, 'm'));
    const page = join(scratch, `report-${Math.random()}.html`);
    expect((await verb('report', ['--html', page, ...now])).code).toBe(0);
    expect(readFileSync(page, 'utf8')).toContain(lake.out);
  });

  it('keeps the failure report, and retry fetches what has failed', async () => {
    archive.fault = (path, _request, response) => {
      if (!path.includes(dayOf(5))) return false;
      response.writeHead(500).end();
      return true;
    };
    const failed = await vision(11, ['--days', '10', '--retries', '0']);
    expect(failed.code).toBe(3);
    const report = failed.events.find(({ event }) => event === 'summary')?.['failures'];
    expect(String(report).startsWith(`${lake.out}/_failures/vision-`)).toBe(true);
    archive.fault = undefined;
    const original = lake;
    const reports = (): string[] =>
      filesBelow(lake.content()).filter((path) => path.startsWith('_failures/'));
    lake = kind.make();
    const files = original.content();
    for (const path of filesBelow(files)) lake.change(path, readFileSync(join(files, path)));
    const [name = ''] = reports();
    const ofCopy = ['retry', `${lake.out}/${name}`, ...FAST];
    const retried = await cryptodl(ofCopy, { env: lake.environment });
    expect(retried.stderr).toContain('1 ok');
    expect(retried.code).toBe(0);
    expect([Object.keys(await prices()).length, reports()]).toEqual([10, []]);
    expect((await verb('coverage', ['--json'])).code).toBe(0);
    lake = original;
    expect([Object.keys(await prices()).length, reports()]).toEqual([9, [name]]);
    expect((await verb('retry', FAST)).code).toBe(0);
    expect([Object.keys(await prices()).length, reports()]).toEqual([10, []]);
  });

  it('keeps zips', async () => {
    const flags = ['--days', '3', '--format', 'zip'];
    expect((await vision(4, flags)).code).toBe(0);
    expect(lake.read(keyOf(2))).toEqual(readFileSync(join(folder, keyOf(2))));
    expect((await vision(4, flags)).code).toBe(0);
    expect(zips()).toEqual([]);
    expect((await verb('verify')).stderr).toContain('all sound');
    lake.change(keyOf(2), undefined);
    expect((await verb('repair', ['--archive-url', archive.url, ...FAST])).code).toBe(0);
    expect(lake.read(keyOf(2))).toEqual(readFileSync(join(folder, keyOf(2))));
  });
});
