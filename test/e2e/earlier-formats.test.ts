/** Lakes, failure reports and logs of earlier programs (test/fixtures): the present program reads and continues them. */
import { cpSync, existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { rowsOf } from '../helpers/metrics-scene.js';
import { barsKey, earlierScene, runSteps } from '../helpers/earlier-formats.js';
import type { EarlierScene } from '../helpers/earlier-formats.js';
import { fieldsOf, jsonLines } from '../helpers/fields.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, parquetDigests } from '../helpers/lake.js';

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url));
const scratch = scratchFolder();
/** What the present program makes with the commands that made the fixtures. */
const present = mkdtempSync(join(scratch, 'present-'));
const scenes: EarlierScene[] = [];

beforeAll(async () => {
  const scene = await earlierScene(mkdtempSync(join(scratch, 'archive-')));
  scenes.push(scene);
  await runSteps(scene, present, async (argv, env) => (await cryptodl(argv, { cwd: present, env })).stdout);
  scene.repair();
}, 240_000);
afterAll(() => Promise.all(scenes.map((scene) => scene.close())));

interface Ran extends CliResult {
  /** File names of the zips that were asked for. */
  readonly zips: readonly string[];
}

/** Runs a command in a folder, at noon of a day; its flags count more than what a report says. */
async function run(cwd: string, argv: string, day = 8): Promise<Ran> {
  const [scene] = scenes as [EarlierScene];
  const env = scene.setDay(day);
  scene.archive.requests.length = 0;
  const hosts = ['ARCHIVE_URL', 'FAPI_URL'].flatMap((name) => [
    `--${name.toLowerCase().replace('_', '-')}`,
    env[`CRYPTODL_${name}`] ?? '',
  ]);
  const isLocal = /^(?:verify|coverage) /.test(argv);
  const result = await cryptodl([...argv.split(' '), ...(isLocal ? [] : hosts), '--json'], { cwd, env });
  const zips = scene.archive.objectRequests().filter((path) => path.endsWith('.zip'));
  return { ...result, zips: zips.map((path) => basename(path)).sort() };
}

const zipOf = (symbol: string, day: number): string => basename(barsKey(symbol, day));
const SOL = 'SOLUSDT-aggTrades-2026-11-0';

describe.each([
  // Since then the manifest remembers what failed.
  ['4c14af7', 'not-fetched'],
  ['557f5c2', 'failed:http-server-error'],
])('made by the program of %s', (name, whyMissing) => {
  let cwd = '';
  beforeEach(() => {
    cwd = mkdtempSync(join(scratch, 'copy-'));
    cpSync(join(FIXTURES, name), cwd, { recursive: true });
  });
  const lakes = readdirSync(join(FIXTURES, name, 'lakes')).filter((lake) =>
    existsSync(join(FIXTURES, name, 'lakes', lake, 'binance')),
  );

  it.each(lakes)('the lake is sound: %s', async (lake) => {
    // Files of two days were taken out of the CSV lake when it was made.
    if (lake === 'csv') await run(cwd, 'repair --out lakes/csv', 7);
    for (const verb of ['verify', 'verify --deep'])
      expect((await run(cwd, `${verb} --out lakes/${lake}`)).events).toMatchObject([
        { event: 'summary', findings: {}, exitCode: 0 },
      ]);
  });

  it('lost files of a lake are fetched again, and nothing else', async () => {
    const { code, zips } = await run(cwd, 'repair --out lakes/csv', 7);
    expect([code, zips]).toEqual([0, [`${SOL}5.zip`, `${SOL}6.zip`]]);
  });

  it('a run adds exactly the missing days: month files', async () => {
    const { code, zips } = await run(cwd, 'vision --days 1 --out lakes/parquet');
    const missing = [zipOf('BTCUSDT', 6), zipOf('BTCUSDT', 7)];
    expect([code, zips]).toEqual([0, [...missing, ...[5, 6, 7].map((day) => zipOf('ETHUSDT', day))]]);
    const range = '--interval 1d --from 2026-10-01 --to 2026-11-07';
    await run(cwd, `vision --symbols BTCUSDT,ETHUSDT ${range} --out lakes/new`);
    expect(await parquetDigests(join(cwd, 'lakes/parquet'))).toEqual(
      await parquetDigests(join(cwd, 'lakes/new')),
    );
  });

  it.each([
    ['csv', '', [`${SOL}5.zip`, `${SOL}6.zip`, `${SOL}7.zip`]],
    ['zip', '', [zipOf('BTCUSDT', 6), zipOf('BTCUSDT', 7)]],
    ...(lakes.includes('fill')
      ? [['fill', ' --fill rest', [5, 6, 7].map((day) => zipOf('BTCUSDT', day))] as const]
      : []),
  ] as const)('a run adds exactly the missing days: %s', async (lake, flags, expected) => {
    const { code, zips } = await run(cwd, `vision --days 1${flags} --out lakes/${lake}`);
    expect([code, zips]).toEqual([0, expected]);
    expect((await run(cwd, `verify --deep --out lakes/${lake}`)).code).toBe(0);
  });

  it('a run adds exactly the missing days: rows of REST', async () => {
    const { code, events } = await run(cwd, 'metrics --days 1 --out lakes/metrics');
    const fetched = events.filter(({ event, outcome }) => event === 'object' && outcome !== 'skipped');
    expect([code, fetched.map(({ key, outcome }) => `${String(key)} ${String(outcome)}`).sort()]).toEqual([
      0,
      ['rest/um/fundingRate/BTCUSDT/2026-11-07 ok', 'rest/um/openInterestHist/12h/BTCUSDT/2026-11-07 ok'],
    ]);
    const what = '--dataset fundingRate,openInterestHist --interval 12h --symbols BTCUSDT --days 3';
    await run(cwd, `metrics ${what} --out lakes/new`);
    for (const series of ['um/fundingRate', 'um/openInterestHist'])
      expect(await rowsOf(join(cwd, 'lakes/metrics'), series)).toEqual(
        await rowsOf(join(cwd, 'lakes/new'), series),
      );
  });

  it('coverage reads the gaps and revisions of the lake', async () => {
    const { events } = await run(cwd, 'coverage --to 2026-11-07 --out lakes/parquet');
    const gaps = expect.arrayContaining([
      expect.objectContaining({ from: '2026-11-02T00:00:00.000Z', reason: 'hole' }),
      expect.objectContaining({ from: '2026-11-06T00:00:00.000Z', reason: whyMissing }),
    ]) as unknown;
    expect(events).toMatchObject([
      { symbol: 'BTCUSDT', held: 35, revisions: 1, gaps },
      { symbol: 'ETHUSDT', held: 36, revisions: 0 },
      {},
    ]);
  });

  it('sql reads the rows of the lake', async () => {
    const query = 'SELECT symbol, count(*)::INT AS n FROM um_klines GROUP BY symbol ORDER BY symbol';
    const { events: rows } = await cryptodlOk(['sql', query, '--out', join(cwd, 'lakes/parquet'), '--json']);
    expect(rows).toEqual([
      { symbol: 'BTCUSDT', n: 35 },
      { symbol: 'ETHUSDT', n: 36 },
    ]);
  });

  it.each([
    ['vision', 'parquet', 3],
    ['metrics', 'metrics', 0],
    ['jobs', 'jobs', 3],
  ])('retry completes the failures of the report: %s', async (report, lake, zips) => {
    const failed = failures(join(cwd, `reports/${report}.jsonl`));
    expect(failed.length).toBeGreaterThan(2);
    const result = await run(cwd, `retry reports/${report}.jsonl --out lakes/${lake}`, 7);
    const fetched = result.events.filter(({ event, outcome }) => event === 'object' && outcome === 'ok');
    expect([result.code, result.zips.length]).toEqual([0, zips]);
    expect(failed).toEqual(expect.arrayContaining(fetched.map(({ key }) => key)));
    expect(failures(join(cwd, `reports/${report}.jsonl`))).toEqual([]);
    expect((await run(cwd, `verify --deep --out lakes/${lake}`)).code).toBe(0);
  });

  it.each([
    ['events of the logs', 'logs', /\.jsonl$/, 'event'],
    ['lines of the reports', 'reports', /\.jsonl$/, 'kind'],
    ['lines of the manifests', 'lakes', /(_manifest|symbol=[^/]*)\.jsonl$/, 'kind'],
  ])('the present program writes all %s with all their fields', (_, folder, files, type) => {
    const written = new Set(fieldsBelow(join(present, folder), files, type));
    const earlier = fieldsBelow(join(FIXTURES, name, folder), files, type);
    expect(earlier.length).toBeGreaterThan(20);
    expect(earlier.filter((field) => !written.has(field))).toEqual([]);
  });
});

/** Keys of the objects that a report lists as failed. */
function failures(report: string): unknown[] {
  return jsonLines(report).flatMap(({ kind, key }) => (kind === 'failed' ? [key] : []));
}

/** Fields of all lines of the files, each with the type of its line, which the field `type` names. */
function fieldsBelow(folder: string, file: RegExp, type: string): string[] {
  const files = filesBelow(folder).filter((path) => file.test(path));
  const lines = files.flatMap((path) => jsonLines(join(folder, path)));
  return [
    ...new Set(lines.flatMap((line) => fieldsOf(line).map((field) => `${String(line[type])} ${field}`))),
  ];
}
