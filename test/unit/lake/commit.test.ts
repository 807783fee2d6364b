/** What a manifest and its files say after a commit: of runs within this process, and of single commits that fail. */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeCsv } from '../../../scripts/synthetic-archive.js';
import { systemClock } from '../../../src/model/clock.js';
import { createEngine } from '../../../src/convert/duckdb.js';
import type { Engine } from '../../../src/convert/duckdb.js';
import { lakePaths } from '../../../src/lake/layout.js';
import type { LakePaths } from '../../../src/lake/layout.js';
import type { ObjectLine } from '../../../src/model/manifest-line.js';
import { readManifest } from '../../../src/lake/manifest.js';
import { appendManifest, Manifests } from '../../../src/lake/manifests.js';
import { finishCommits } from '../../../src/lake/commit-files.js';
import { createSerializer } from '../../../src/model/in-order.js';
import { vision } from '../../../src/library.js';
import type { RunSummary, VisionOptions } from '../../../src/library.js';
import type { PartitionPlan, RestPeriod } from '../../../src/model/task.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { commit } from '../../../src/lake/write/commit.js';
import type { ReceivedObject } from '../../../src/convert/csv-input.js';
import type { WriterContext } from '../../../src/lake/write/writer.js';
import { readExistingFile } from '../../../src/lake/write/existing-file.js';
import { startArchive } from '../../helpers/archive.js';
import type { TestArchive } from '../../helpers/archive.js';
import { objectLine, period, received, SETTINGS } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';
import { manifestOf, filesBelow, manifestLines } from '../../helpers/lake.js';
import { publish } from '../../helpers/published.js';

const ARCHIVE = loadBinance().archive;

const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const scratch = scratchFolder();

function sha256Of(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

describe('a run', () => {
  const folder = join(scratch, 'archive');
  let archive: TestArchive;
  let out = '';
  beforeAll(async () => {
    mkdirSync(folder);
    archive = await startArchive(folder);
  });
  afterAll(() => archive.close());
  beforeEach(async () => {
    out = await mkdtemp(join(scratch, 'lake-'));
    rmSync(join(folder, 'data'), { recursive: true, force: true });
    for (const day of [1, 2, 3, 4]) put(dayOf(day));
  });
  afterEach(() => {
    archive.fault = undefined;
  });

  const dayOf = (day: number): string => `2026-11-0${day}`;

  function keyOf(label: string): string {
    const cadence = label.length === 7 ? 'monthly' : 'daily';
    return `data/futures/um/${cadence}/klines/BTCUSDT/1h/BTCUSDT-1h-${label}.zip`;
  }

  function csvOf(label: string, seed = 1): string {
    return makeCsv({
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      symbol: 'BTCUSDT',
      period: label,
      seed,
    }).csv;
  }

  function put(label: string, seed = 1): void {
    publish(folder, keyOf(label), csvOf(label, seed));
  }

  /** Without the rows of these days. */
  function putMonth(label: string, without: readonly string[] = []): void {
    const days = without.map((day) => Date.parse(`${day}T00:00:00Z`));
    const lines = csvOf(label).split('\n');
    const isLeft = (line: string): boolean => {
      const time = Number(line.split(',')[0]);
      return !days.some((day) => time >= day && time < day + 86_400_000);
    };
    publish(folder, keyOf(label), lines.filter(isLeft).join('\n'));
  }

  async function run(options: VisionOptions): Promise<RunSummary> {
    const base = { market: 'um', interval: '1h', symbols: 'BTCUSDT', archiveUrl: archive.url } as const;
    const quick = {
      retryDelay: 2,
      breakerOpen: '100ms',
      maxWait: '20s',
      now: '2026-11-05T12:00:00Z',
    } as const;
    return vision({ ...base, ...quick, out, ...options }).summary();
  }

  const at = (name: string): string => join(out, SERIES, name);
  const lines = (kind = 'object'): Record<string, unknown>[] =>
    manifestLines(join(out, SERIES)).filter((line) => line['kind'] === kind);
  const lineAt = (label: string): Record<string, unknown> =>
    lines().findLast((line) => line['period'] === label) ?? {};

  function factsOf(name: string): { file: string; fileBytes: number; fileSha256: string } {
    return { file: name, fileBytes: statSync(at(name)).size, fileSha256: sha256Of(at(name)) };
  }

  it('that adds an object to the file of a month records the object and the new file', async () => {
    await run({ from: dayOf(1), to: dayOf(2) });
    expect(lines()).toMatchObject([1, 2].map(() => ({ ...factsOf('2026-11.parquet'), fileRows: 48 })));
    const { fileBytes: bytes, fileSha256: sha256 } = factsOf('2026-11.parquet');
    await run({ from: dayOf(1), to: dayOf(3), now: '2026-11-04T12:00:00Z' });
    const zip = join(folder, keyOf(dayOf(3)));
    expect([lines().length, existsSync(join(out, '_quarantine'))]).toEqual([3, false]);
    expect(lines()[2]).toEqual({
      v: 1,
      kind: 'object',
      key: keyOf(dayOf(3)),
      cadence: 'daily',
      period: dayOf(3),
      etag: createHash('md5').update(readFileSync(zip)).digest('hex'),
      lastModified: expect.stringContaining('T') as string,
      bytes: statSync(zip).size,
      sha256: sha256Of(zip),
      verified: 'sidecar',
      rows: 24,
      first: '2026-11-03T00:00:00Z',
      last: '2026-11-03T23:00:00Z',
      duplicates: 0,
      ...factsOf('2026-11.parquet'),
      fileRows: 72,
      fileBefore: { bytes, sha256 },
      settings: SETTINGS,
      at: expect.stringMatching(/^20.*Z$/) as string,
      tool: expect.stringMatching(/^\d+\./) as string,
    });
  });

  it('tells which revision another one replaces, also of a month, and nothing of the same bytes', async () => {
    putMonth('2026-10');
    await run({ from: '2026-10-01', to: dayOf(2) });
    const [day, month] = [lineAt(dayOf(2)), lineAt('2026-10')];
    put(dayOf(2), 2);
    put('2026-10', 2);
    expect(await run({ from: '2026-10-01', to: dayOf(2), force: true })).toMatchObject({ changed: 2 });
    for (const before of [day, month]) {
      const after = lineAt(String(before['period']));
      const { etag, lastModified, bytes, sha256, at: then } = before;
      expect(after['replaces']).toEqual({ etag, lastModified, bytes, sha256, at: then });
      expect(after['sha256']).not.toBe(sha256);
    }
    expect(lineAt(dayOf(1))['at']).not.toBe(lines()[0]?.['at']);
    expect(lineAt(dayOf(1))).not.toHaveProperty('replaces');
  });

  it('of CSV by day has a file for each object', async () => {
    await run({ from: dayOf(1), to: dayOf(2), format: 'csv', partition: 'day' });
    expect(filesBelow(join(out, SERIES), '.csv')).toEqual([`${dayOf(1)}.csv`, `${dayOf(2)}.csv`]);
    for (const label of [dayOf(1), dayOf(2)])
      expect(lineAt(label)).toMatchObject({ ...factsOf(`${label}.csv`), rows: 24, fileRows: 24 });
  });

  it('writes no line of an object that cannot be read, beside those of its file', async () => {
    publish(folder, keyOf(dayOf(2)), csvOf(dayOf(2)).replace(/\n\d+/, '\nx'));
    const { exitCode } = await run({ from: dayOf(1), to: dayOf(3) });
    expect([exitCode, lines().map((line) => line['period'])]).toEqual([4, [dayOf(1), dayOf(3)]]);
    expect(lineAt(dayOf(3))).toMatchObject({ ...factsOf('2026-11.parquet'), fileRows: 48 });
  });

  it('remembers the digest of a stale sidecar', async () => {
    publish(folder, keyOf(dayOf(2)), csvOf(dayOf(2)), (_, name) => `${'0'.repeat(64)}  ${name}\n`);
    await run({ from: dayOf(1), to: dayOf(2), staleChecksum: 'warn' });
    expect(lineAt(dayOf(2))).toMatchObject({ verified: 'etag', staleSidecar: '0'.repeat(64) });
    expect(lineAt(dayOf(1))).not.toHaveProperty('staleSidecar');
  });

  it('leaves the days of a month that lacks some to a run that asks for them', async () => {
    putMonth('2026-09');
    putMonth('2026-10', ['2026-10-11']);
    await run({ from: '2026-09-01', to: '2026-10-31' });
    const october = lines().filter((line) => line['period'] === '2026-10');
    expect(october.map((line) => line['daysPending'])).toEqual([true, undefined]);
    expect(lineAt('2026-09')).not.toHaveProperty('daysPending');
  });

  it('of months alone leaves no days to a later run', async () => {
    putMonth('2026-10', ['2026-10-11']);
    await run({ from: '2026-10-01', to: '2026-10-31', cadence: 'monthly' });
    expect(lines()).toMatchObject([{ period: '2026-10', gaps: [[expect.any(String), expect.any(String)]] }]);
    expect(lineAt('2026-10')).not.toHaveProperty('daysPending');
  });

  it('keeps a damaged file of which an object is gone, and says that the object is dropped', async () => {
    await run({ from: dayOf(1), to: dayOf(3) });
    truncateSync(at('2026-11.parquet'), 1000);
    const damaged = sha256Of(at('2026-11.parquet'));
    for (const ending of ['', '.CHECKSUM']) rmSync(join(folder, keyOf(dayOf(2)) + ending));
    // The listing does not tell of days that the file is made of and that this run does not ask for.
    archive.fault = (_path, _request, response) => {
      const writeHead = response.writeHead.bind(response);
      response.writeHead = ((status: number, headers: Record<string, string>) => {
        const { ETag: _etag, 'Last-Modified': _lastModified, ...others } = headers;
        return writeHead(status, others);
      }) as typeof response.writeHead;
      return false;
    };
    const { exitCode } = await run({ from: dayOf(4), to: dayOf(4), recheckDays: 0 });
    expect(exitCode).toBe(4);
    expect(lines('dropped')).toEqual([
      {
        v: 1,
        kind: 'dropped',
        key: keyOf(dayOf(2)),
        format: 'parquet',
        at: expect.stringMatching(/^20.*Z$/) as string,
      },
    ]);
    const [kept = '', ...others] = filesBelow(join(out, '_quarantine'), '.parquet');
    expect([sha256Of(join(out, '_quarantine', kept)), others]).toEqual([damaged, []]);
    const [cause = ''] = filesBelow(join(out, '_quarantine'), '.cause');
    expect(readFileSync(join(out, '_quarantine', cause), 'utf8')).toContain(
      `${dayOf(2)} could not be fetched again`,
    );
    expect(lineAt(dayOf(1))).toMatchObject({ ...factsOf('2026-11.parquet'), fileRows: 72 });
    expect(lineAt(dayOf(1))).not.toHaveProperty('etag');
    expect(lineAt(dayOf(1))).not.toHaveProperty('lastModified');
  });
});

/** Of rows that are staged already, in a lake of one series. */
describe('a commit', () => {
  const exchange = loadBinance();
  const engine = createEngine({ threads: 1, memoryBytes: 100e6, tempFolder: scratch });
  afterAll(() => {
    engine.close();
  });
  let openSessions = 0;
  const connect: Engine['connect'] = async (work) => {
    const opened = await engine.connect(work);
    openSessions += 1;
    const close = (): void => {
      openSessions -= 1;
      opened.close();
    };
    return { ...opened, close };
  };
  afterEach(() => {
    if (openSessions !== 0) throw new Error(`${openSessions} sessions are open`);
  });
  const PLACE = 'binance/um/metrics/symbol=BTCUSDT';
  const MONTH = '2024-01.parquet';
  const plan: PartitionPlan = {
    series: { market: 'um', dataset: 'metrics', symbol: 'BTCUSDT' },
    label: '2024-01',
    settings: SETTINGS,
    tasks: [],
  };
  const keyOf = (label: string): string =>
    `data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-${label}.zip`;
  const restKey = (label: string): string => `rest/um/metrics/BTCUSDT/${label}`;

  const heldFromRest = (label: string): ObjectLine =>
    objectLine(label, { key: restKey(label), verified: 'rest' });

  function arrived(label: string): ReceivedObject {
    return { ...received(label, ''), object: { key: keyOf(label), period: period(label) } };
  }

  function arrivedFromRest(label: string, more: Partial<RestPeriod> = {}): ReceivedObject {
    const { from, to } = period(label);
    const rest = { from, to, reasonIfEmpty: 'hole', ...more } as const;
    return {
      ...received(label, ''),
      object: { key: restKey(label), period: period(label), rest },
      verified: 'rest',
    };
  }

  interface Scene {
    readonly held?: readonly ObjectLine[];
    readonly arrived: readonly ReceivedObject[];
    readonly dead?: readonly string[];
    /** Its new file. */
    readonly file?: string;
    readonly rebuild?: 'damaged';
    /** Periods of the existing file. */
    readonly lost?: readonly string[];
  }

  /** A lake that holds these lines, with their files and the dead ones. */
  async function lakeOf({ held = [], dead = [] }: Scene): Promise<{ paths: LakePaths; folder: string }> {
    const paths = lakePaths(await mkdtemp(join(scratch, 'commit-')));
    const folder = join(paths.root, PLACE);
    for (const made of [paths.staging, folder]) mkdirSync(made, { recursive: true });
    await appendManifest(folder, held);
    for (const file of [...held.map((line) => line.file), ...dead]) writeFileSync(join(folder, file), 'old');
    return { paths, folder };
  }

  /** `confirm`: when the lock of the lake is asked. Resolves with the place of a file in the quarantine. */
  async function commitTo(paths: LakePaths, scene: Scene, confirm?: () => void): Promise<string | undefined> {
    const context: WriterContext = {
      exchange,
      paths,
      manifests: new Manifests(ARCHIVE),
      engine: { ...engine, connect },
      tempFolder: scratch,
      serialize: createSerializer(),
      clock: systemClock,
      timed: (_, __, act) => act(),
      tool: 'test',
      acceptsShorter: false,
      countRows: () => Promise.resolve(0),
      ...(confirm === undefined ? {} : { lock: { confirm: () => Promise.resolve(confirm()) } }),
    };
    const staged = join(paths.staging, 'x.partial');
    writeFileSync(staged, 'new');
    const rows = { rows: 288, first: '2024-01-02T00:00:00Z', last: '2024-01-02T23:55:00Z', duplicates: 0 };
    const result = {
      written: new Map(scene.arrived.map(({ object }) => [object.key, rows])),
      failed: new Map(),
      rows: 288,
      duplicatesAcross: 0,
      lacked: new Map(),
    };
    const facts = { bytes: 3, sha256: sha256Of(staged), newlines: 0 };
    const { rebuild, lost = [] } = scene;
    const changed = rebuild === undefined ? plan : { ...plan, rebuild };
    const existing = await readExistingFile(context, changed);
    return commit(context, changed, {
      existing,
      made: scene.arrived.length === 0 ? [] : [{ staged, file: scene.file ?? MONTH, facts, result }],
      received: scene.arrived,
      dead: scene.dead ?? [],
      lost: existing.inFile.filter((line) => lost.includes(line.period)),
    });
  }

  it('that removes a file is finished by the next run when the manifest cannot be written', async () => {
    const scene: Scene = { arrived: [arrived('2024-01-02')], dead: ['2024-01-02.parquet'] };
    const { paths, folder } = await lakeOf(scene);
    const manifest = manifestOf(folder);
    // A folder cannot be added to.
    const ended = commitTo(paths, scene, () => {
      mkdirSync(manifest, { recursive: true });
    });
    await expect(ended).rejects.toMatchObject({ code: 'disk' });
    rmSync(manifest, { recursive: true });
    expect(await finishCommits(paths, exchange)).toEqual([]);
    expect(manifestLines(folder)).toHaveLength(1);
    expect([readFileSync(join(folder, MONTH), 'utf8'), filesBelow(paths.internal)]).toEqual(['new', []]);
  });

  const heldMonth: Scene = {
    held: [
      {
        ...heldFromRest('2024-01-01'),
        file: MONTH,
        fileBytes: 3,
        fileSha256: createHash('sha256').update('old').digest('hex'),
      },
    ],
    arrived: [arrived('2024-01-02'), arrivedFromRest('2024-01-03')],
  };

  it('that replaces a file names it in its lines, and they do not count until the file is replaced', async () => {
    const { paths, folder } = await lakeOf(heldMonth);
    await commitTo(paths, heldMonth);
    const [held, ...lines] = manifestLines(folder);
    const { fileBytes: bytes, fileSha256: sha256 } = held ?? {};
    expect(lines).toMatchObject([2, 3].map(() => ({ fileBefore: { bytes, sha256 } })));
    expect((await readManifest(folder, ARCHIVE)).parquet.size).toBe(3);
    writeFileSync(join(folder, MONTH), 'old');
    const { parquet } = await readManifest(folder, ARCHIVE);
    expect(parquet.lines().map(({ period: label }) => label)).toEqual(['2024-01-01']);
    expect(parquet.lastOfFile(MONTH)?.fileSha256).toBe(sha256);
  });

  it('leaves the file and the manifest as they were when the manifest cannot be written', async () => {
    const { paths, folder } = await lakeOf(heldMonth);
    const manifest = manifestOf(folder);
    const ended = commitTo(paths, heldMonth, () => {
      renameSync(manifest, `${manifest}.away`);
      mkdirSync(manifest);
    });
    await expect(ended).rejects.toMatchObject({ code: 'disk' });
    expect([readFileSync(join(folder, MONTH), 'utf8'), filesBelow(paths.internal)]).toEqual(['old', []]);
  });

  it('takes superseded files away, and no others', async () => {
    const file = '2024-01-03.parquet';
    const scene: Scene = { arrived: [arrived('2024-01-02')], file, dead: ['2024-01-02.parquet'] };
    const { paths, folder } = await lakeOf(scene);
    writeFileSync(join(folder, MONTH), 'other');
    expect(await commitTo(paths, scene)).toBeUndefined();
    expect(filesBelow(folder)).toEqual([file, MONTH]);
    expect([readFileSync(join(folder, MONTH), 'utf8'), filesBelow(paths.internal)]).toEqual(['other', []]);
  });

  it('that cannot publish its file leaves nothing staged', async () => {
    const scene: Scene = { arrived: [arrived('2024-01-02')] };
    const { paths, folder } = await lakeOf(scene);
    mkdirSync(join(folder, MONTH, 'inside'), { recursive: true });
    await expect(commitTo(paths, scene)).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(filesBelow(paths.internal)).toEqual([]);
  });

  /** `objects`: in its footer; without them, another program has written it. */
  async function parquetFile(path: string, rows: number, objects?: readonly object[]): Promise<void> {
    const writing = await connect('small');
    const entry = objects === undefined ? '' : `, KV_METADATA {cryptodl: '${JSON.stringify({ objects })}'}`;
    await writing.run(`COPY (FROM range(${rows})) TO '${path}' (FORMAT parquet${entry})`);
    writing.close();
  }

  const known = { key: keyOf('2024-01-02'), sha256: '0'.repeat(64) };
  const other = { key: keyOf('2024-01-03'), sha256: '0'.repeat(64) };
  const [committed = heldFromRest('2024-01-01')] = heldMonth.held ?? [];
  const held = [committed];
  const damaged = { held, rebuild: 'damaged' } as const;
  // Its object is in another file since.
  const moved = { held: [committed, { ...committed, file: '2024-01-01.parquet' }] };

  it.each<['takes away' | 'sets aside', string, (path: string) => unknown, Partial<Scene>]>([
    ['takes away', 'as many rows of the same object', (path) => parquetFile(path, 288, [known]), {}],
    ['takes away', 'the same bytes', (path) => writeFileSync(path, 'new'), {}],
    ['sets aside', 'more rows', (path) => parquetFile(path, 289, [known]), {}],
    ['sets aside', 'another object too', (path) => parquetFile(path, 1, [known, other]), {}],
    ['sets aside', 'another revision', (path) => parquetFile(path, 1, [{ ...known, sha256: 'f' }]), {}],
    ['sets aside', 'rows of another program', (path) => parquetFile(path, 1), {}],
    ['sets aside', 'other bytes of that number', (path) => writeFileSync(path, 'old'), {}],
    ['sets aside', 'lines that no longer count', (path) => writeFileSync(path, 'old'), moved],
    [
      'takes away',
      'damage but only known objects',
      (path) => parquetFile(path, 1, [committed, known]),
      damaged,
    ],
    ['sets aside', 'damage and another object', (path) => parquetFile(path, 1, [committed, other]), damaged],
    ['takes away', 'damage but no further byte', (path) => writeFileSync(path, 'old'), damaged],
    ['sets aside', 'damage and further bytes', (path) => writeFileSync(path, 'longer'), damaged],
    ['takes away', 'no damage', (path) => writeFileSync(path, 'longer'), { held }],
  ])('%s a file in its place that has %s', async (way, _, write, more) => {
    const scene: Scene = { arrived: [arrived('2024-01-02')], ...more };
    const { paths, folder } = await lakeOf(scene);
    await write(join(folder, MONTH));
    const before = readFileSync(join(folder, MONTH));
    const kept = await commitTo(paths, scene);
    const bytes = kept === undefined ? undefined : readFileSync(kept);
    expect(bytes).toEqual(way === 'sets aside' ? before : undefined);
    expect(readFileSync(join(folder, MONTH), 'utf8')).toBe('new');
  });

  it('that loses a file tells again which of its commits have happened', async () => {
    const { fileBytes: bytes, fileSha256: sha256 } = committed;
    const undone = { file: MONTH, fileSha256: 'c'.repeat(64), fileBefore: { bytes, sha256 } };
    const later = { ...undone, key: keyOf('2024-01-02'), at: '2024-02-03T00:00:00.000Z' };
    const scene: Scene = { held: [committed, objectLine('2024-01-02', later)], arrived: [] };
    const { paths, folder } = await lakeOf(scene);
    const kept = await commitTo(paths, { ...scene, lost: ['2024-01-01'] });
    expect(readFileSync(kept ?? '', 'utf8')).toBe('old');
    // Without its file, the last line of the manifest tells.
    expect((await readManifest(folder, ARCHIVE)).parquet.size).toBe(0);
  });

  it('records for rows from REST that their day is open, and which object they replace', async () => {
    const short = { bytes: 7, sha256: 'c'.repeat(64), at: '2024-01-09T00:00:00.000Z', rows: 1, gaps: [] };
    const scene: Scene = {
      held: [heldFromRest('2024-01-02'), objectLine('2024-01-03', { key: keyOf('2024-01-03') })],
      arrived: [
        arrivedFromRest('2024-01-02', { open: true }),
        arrivedFromRest('2024-01-03', { insteadOf: short, archiveFailed: 'connect-failed' }),
        arrived('2024-01-04'),
      ],
    };
    const { paths, folder } = await lakeOf(scene);
    await commitTo(paths, scene);
    const [, , open, instead, usual] = manifestLines(folder);
    expect(open).toMatchObject({ period: '2024-01-02', verified: 'rest', open: true });
    expect(instead).toMatchObject({
      period: '2024-01-03',
      verified: 'rest',
      insteadOf: short,
      archiveFailed: 'connect-failed',
    });
    for (const line of [open, usual]) expect(line).not.toHaveProperty('insteadOf');
    for (const line of [instead, usual]) expect(line).not.toHaveProperty('open');
    // Rows of REST are no revision of a published object for the same day, nor of others of REST.
    for (const line of [open, instead]) expect(line).not.toHaveProperty('replaces');
  });
});
