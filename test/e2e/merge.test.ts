/** `cryptodl merge`: lakes of shards become one lake. */
import { createHash } from 'node:crypto';
import {
  cpSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { acquireLock } from '../../src/lake/lock.js';
import { systemClock } from '../../src/model/clock.js';
import { cryptodl } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { lakeInBucket } from '../helpers/lake-kinds.js';
import type { TestLake } from '../helpers/lake-kinds.js';
import { S3Server } from '../helpers/s3-server.js';
import { useScene } from '../helpers/scene.js';

const days = { from: '2026-10-25', to: '2026-11-20' };
const symbols = ['BTCUSDT', 'ETHUSDT', 'SOLUSDT'];
const scene = useScene({
  archive: [
    { ...days, symbols },
    { ...days, symbols, dataset: 'metrics' },
  ],
});
const BARS = '--interval 1h --symbols all';
const SHARDS = ['0/2', '1/2'];

function merge(sources: readonly string[], out: string, ...flags: string[]): Promise<CliResult> {
  return cryptodl(['merge', ...sources, '--out', out, ...flags]);
}

/** Path, size and digest of each file that readers see, without notices, locks and records of runs. */
function contentOf(lake: string): Record<string, string> {
  const files = filesBelow(lake, '').filter((path) => /^(binance|data|_manifests)\//.test(path));
  return Object.fromEntries(
    files.map((path) => [
      path,
      createHash('sha256')
        .update(readFileSync(join(lake, path)))
        .digest('hex'),
    ]),
  );
}

/** Everything in a lake with its time of change. */
function stateOf(lake: string): string[] {
  return filesBelow(lake, '').map((path) => {
    const { mtimeMs, size, ino } = statSync(join(lake, path));
    return `${path} ${size} ${mtimeMs} ${ino}`;
  });
}

async function shards(flags: string): Promise<string[]> {
  const lakes: string[] = [];
  for (const shard of SHARDS) lakes.push((await scene.vision(`${flags} --shard ${shard}`)).lake);
  return lakes;
}

describe.each(['parquet', 'csv', 'zip'])('lakes of shards in the format %s', (format) => {
  it('become the lake of one run, which verify finds sound; a second merge skips all series', async () => {
    const flags = `${BARS} --dataset klines,metrics --days 2 --format ${format}`;
    const lakes = await shards(flags);
    const whole = await scene.vision(flags);
    const before = lakes.map(stateOf);
    scene.reset();
    const out = join(scene.newFolder(), 'joined');
    const first = await merge(lakes, out, '--json');
    expect([first.code, first.stderr]).toEqual([
      0,
      expect.stringMatching(/^6 series merged \(\d+ files, .*next {2}cryptodl coverage --out \S+\n$/s),
    ]);
    expect(first.events.at(-1)).toMatchObject({
      event: 'summary',
      merged: 6,
      skipped: 0,
      failed: 0,
      exitCode: 0,
    });
    expect(Object.keys(contentOf(out))).toEqual(Object.keys(contentOf(whole.lake)));
    const verified = await cryptodl(['verify', '--out', out, '--deep', '--json']);
    expect([verified.code, verified.events.at(-1)?.['series']]).toEqual([0, 6]);
    const state = stateOf(join(out, 'binance'));
    const second = await merge(lakes, out);
    expect([second.code, second.stdout, second.stderr]).toEqual([
      0,
      '',
      expect.stringMatching(/^6 series skipped: \S+ has them in \S+\n$/),
    ]);
    expect(stateOf(join(out, 'binance'))).toEqual(state);
    expect(lakes.map(stateOf)).toEqual(before);
    expect(scene.archive.requests).toEqual([]);
    // The joined lake continues like any other, and fetches nothing again.
    const again = await scene.vision(`${flags} --revisions ignore`, {
      lake: out.slice(scene.scratch.length + 1),
    });
    expect([again.code, again.summary]).toEqual([0, expect.anything()]);
    expect(scene.archive.objectRequests()).toEqual([]);
  });

  it('are merged again after a further day, and the files of the target are continued', async () => {
    const lakes = await shards(`${BARS} --to 2026-11-10 --from 2026-11-09 --format ${format}`);
    const out = join(scene.newFolder(), 'joined');
    await merge(lakes, out);
    for (const lake of lakes)
      await scene.vision(
        `${BARS} --from 2026-10-30 --to 2026-11-12 --format ${format} --shard ${SHARDS[lakes.indexOf(lake)] ?? ''}`,
        {
          lake: lake.slice(scene.scratch.length + 1),
        },
      );
    const again = await merge(lakes, out);
    expect([again.code, again.stdout]).toEqual([0, '']);
    const whole = await scene.vision(`${BARS} --from 2026-10-30 --to 2026-11-12 --format ${format}`);
    expect(Object.keys(contentOf(out))).toEqual(Object.keys(contentOf(whole.lake)));
    expect((await cryptodl(['verify', '--out', out])).code).toBe(0);
    const covered = await cryptodl([
      'coverage',
      '--out',
      out,
      '--from',
      '2026-10-30',
      '--to',
      '2026-11-12',
      '--min',
      '100',
    ]);
    expect(covered.code).toBe(0);
    expect((await merge(lakes, out)).stderr).toContain('3 series skipped');
  });
});

describe('a series that cannot be merged', () => {
  const BTC = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
  const MANIFEST = `_manifests/${BTC}.jsonl`;
  /** A lake with BTCUSDT and ETHUSDT of one day, and a target with BTCUSDT of the same day and the given flags. */
  async function lakes(flags = '', targetFlags = flags): Promise<{ lake: string; out: string }> {
    const { lake } = await scene.vision(`--interval 1h --symbols BTCUSDT,ETHUSDT --days 1 ${flags}`);
    const { lake: out } = await scene.vision(`--interval 1h --symbols BTCUSDT --days 1 ${targetFlags}`);
    return { lake, out };
  }
  /** Merges, and resolves with the lines on stdout and with what changed in the target besides the files of ETHUSDT. */
  async function refused(lake: string, out: string): Promise<{ lines: string[]; changed: string[] }> {
    const before = contentOf(out);
    const { code, stdout, stderr } = await merge([lake], out);
    expect([code, stderr]).toEqual([
      4,
      expect.stringMatching(
        /^1 series merged \(1 file, .*\); 1 series not merged in .*\na clash needs .* fetch what it lacks .*vision/,
      ),
    ]);
    const after = contentOf(out);
    const paths = new Set([...Object.keys(before), ...Object.keys(after)]);
    const changed = [...paths].filter((path) => before[path] !== after[path] && !path.includes('ETHUSDT'));
    const left = filesBelow(join(out, '.cryptodl'), '.partial');
    return { lines: stdout.trimEnd().split('\n'), changed: [...changed, ...left] };
  }
  function rewrite(lake: string, change: (line: Record<string, unknown>) => object): void {
    const path = join(lake, MANIFEST);
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    const changed = lines.map((line) => JSON.stringify(change(JSON.parse(line) as Record<string, unknown>)));
    writeFileSync(path, `${changed.join('\n')}\n`);
  }

  it('is a clash if both lakes have a period with different revisions', async () => {
    const { lake, out } = await lakes();
    rewrite(lake, (line) => ({ ...line, sha256: 'a'.repeat(64) }));
    const { lines, changed } = await refused(lake, out);
    expect([lines, changed]).toEqual([
      [
        expect.stringContaining(
          'clash\tum klines 1h BTCUSDT\t0\t0\t' +
            lake +
            '\tboth lakes have 2026-11-20 in parquet, with different objects or revisions',
        ),
      ],
      [],
    ]);
  });

  it('is a clash if each lake has a day of one month file that the other lacks', async () => {
    const { lake } = await scene.vision(
      '--interval 1h --symbols BTCUSDT,ETHUSDT --from 2026-11-18 --to 2026-11-19',
    );
    const { lake: out } = await scene.vision(
      '--interval 1h --symbols BTCUSDT --from 2026-11-19 --to 2026-11-20',
    );
    const { lines, changed } = await refused(lake, out);
    const why =
      'both lakes have 2026-11.parquet, and each has periods that the other lacks: only the target has 2026-11-20';
    expect([lines, changed]).toEqual([[expect.stringMatching(`clash\tum klines 1h BTCUSDT.*${why}`)], []]);
  });

  it('is refused if its settings differ', async () => {
    const { lake, out } = await lakes('', '--partition day');
    const { lines, changed } = await refused(lake, out);
    expect([lines, changed]).toEqual([
      [
        expect.stringContaining(
          'settings\tum klines 1h BTCUSDT\t0\t0\t' +
            lake +
            '\tparquet files have partition month here, and day in the target',
        ),
      ],
      [],
    ]);
  });

  it.each([
    [
      'another digest',
      (path: string) => {
        const bytes = readFileSync(path);
        bytes[40] = (bytes[40] ?? 0) ^ 1;
        writeFileSync(path, bytes);
      },
      'does not have the SHA-256 of its manifest line',
    ],
    [
      'another size',
      (path: string) => {
        writeFileSync(path, 'short');
      },
      'has 5 bytes, and its manifest line',
    ],
    [
      'been removed',
      (path: string) => {
        rmSync(path);
      },
      'no such file or folder',
    ],
    [
      'a link in its place',
      (path: string) => {
        rmSync(path);
        symlinkSync('/etc/hostname', path);
      },
      'is a symbolic link; links below the lake or the target are not followed',
    ],
  ])('is damaged if its file has %s', async (_what, damage, says) => {
    const { lake } = await scene.vision(
      '--interval 1h --symbols BTCUSDT,ETHUSDT --from 2026-10-31 --to 2026-11-01',
    );
    const out = join(scene.newFolder(), 'joined');
    damage(join(lake, BTC, '2026-11.parquet'));
    const { code, stdout } = await merge([lake], out);
    expect([code, stdout]).toEqual([4, expect.stringMatching(/^damaged\tum klines 1h BTCUSDT\t0\t0\t/)]);
    expect(stdout).toContain(says);
    expect(Object.keys(contentOf(out)).filter((path) => path.includes('BTCUSDT'))).toEqual([]);
    expect(Object.keys(contentOf(out))).toHaveLength(3);
    expect(filesBelow(join(out, '.cryptodl'), '.partial')).toEqual([]);
  });

  it.each([
    ['a path that leads out of the lake', { file: '../../../../../../outside.parquet' }],
    [
      'the object of another series',
      { key: 'data/futures/um/daily/klines/ETHUSDT/1h/ETHUSDT-1h-2026-11-20.zip' },
    ],
    ['a later version', { v: 2 }],
  ])('is damaged if a manifest line has %s', async (_what, change) => {
    const { lake, out } = await lakes();
    rewrite(lake, (line) => ({ ...line, ...change }));
    const { lines, changed } = await refused(lake, out);
    expect([lines, changed]).toEqual([[expect.stringContaining('damaged\tum klines 1h BTCUSDT')], []]);
  });

  it('is damaged if a zip has the place of another object', async () => {
    const { lake, out } = await lakes('--format zip');
    rewrite(lake, (line) => ({ ...line, sha256: 'b'.repeat(64), file: 'data/elsewhere/BTCUSDT.zip' }));
    const { code, stdout } = await merge([lake], join(out, '../fresh'));
    expect([code, stdout]).toEqual([4, expect.stringContaining('line 1 is damaged')]);
  });

  it('does not replace a file of the target that no manifest line describes', async () => {
    const { lake } = await scene.vision('--interval 1h --symbols BTCUSDT,ETHUSDT --days 1');
    const { lake: out } = await scene.vision('--interval 1h --symbols SOLUSDT --days 1');
    mkdirSync(join(out, BTC));
    writeFileSync(join(out, BTC, '2026-11.parquet'), 'own work');
    const { lines, changed } = await refused(lake, out);
    expect([lines, changed]).toEqual([
      [expect.stringContaining('in the target is not the file of its manifest')],
      [],
    ]);
  });

  it('is named if it has files but no manifest', async () => {
    const { lake } = await scene.vision('--interval 1h --symbols BTCUSDT,ETHUSDT --days 1');
    rmSync(join(lake, MANIFEST));
    const { code, stderr } = await merge([lake], join(scene.newFolder(), 'joined'));
    expect([code, stderr]).toEqual([4, expect.stringContaining(`${BTC} has files but no manifest`)]);
  });
});

it('keeps absent and lost objects of the lakes, and the newer of two absences', async () => {
  const { lake } = await scene.vision('--interval 1h --symbols BTCUSDT --from 2026-10-20 --to 2026-10-26');
  const folder = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
  const manifest = `_manifests/${folder}.jsonl`;
  const out = join(scene.newFolder(), 'joined');
  const absent = (line: string): boolean => line.includes('"absent"');
  await merge([lake], out);
  const first = readFileSync(join(out, manifest), 'utf8').trimEnd().split('\n');
  expect(first.filter(absent).length).toBeGreaterThan(0);
  expect(first.sort()).toEqual(readFileSync(join(lake, manifest), 'utf8').trimEnd().split('\n').sort());
  const [line = ''] = first.filter(absent);
  const fields = JSON.parse(line) as Record<string, unknown>;
  const older = { ...fields, at: '2026-01-01T00:00:00.000Z', asked: 7 };
  const newer = { ...fields, at: '2026-12-01T00:00:00.000Z', asked: 8 };
  const lost = {
    v: 1,
    kind: 'dropped',
    format: 'parquet',
    at: '2026-11-01T00:00:00.000Z',
    key: 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-01.zip',
  };
  const added = [older, newer, lost].map((each) => `${JSON.stringify(each)}\n`);
  writeFileSync(join(lake, manifest), added.join(''), { flag: 'a' });
  expect((await merge([lake], out)).code).toBe(0);
  const after = readFileSync(join(out, manifest), 'utf8');
  expect([0, 1, 2].map((at) => after.includes(added[at] ?? ''))).toEqual([false, true, true]);
  expect((await merge([lake], out)).stderr).toContain('1 series skipped');
});

it('--dry-run prints what would be merged, and makes no target', async () => {
  const { lake } = await scene.vision('--interval 1h --symbols BTCUSDT --days 1');
  const out = join(scene.newFolder(), 'joined');
  const { code, stdout, stderr } = await merge([lake], out, '-n');
  const size = statSync(join(lake, 'binance/um/klines/interval=1h/symbol=BTCUSDT/2026-11.parquet')).size;
  expect([code, stdout, stderr]).toEqual([
    0,
    `merge\tum klines 1h BTCUSDT\t1\t${size}\t${lake}\n`,
    expect.stringMatching(/^1 series to merge \(1 file, [^)]*\)\n$/),
  ]);
  expect(filesBelow(join(out, '..'))).toEqual([]);
});

describe('merge refuses', () => {
  async function refusal(sources: readonly string[], out: string): Promise<string> {
    const { code, stderr } = await merge(sources, out);
    expect(code).toBe(2);
    return stderr;
  }

  it('paths that are no lakes, and lakes that it cannot read', async () => {
    const folder = scene.newFolder();
    const out = join(folder, 'joined');
    writeFileSync(join(folder, 'file'), '');
    const empty = join(folder, 'empty');
    mkdirSync(empty);
    expect(await refusal([join(folder, 'none')], out)).toContain(
      `merge: ${join(folder, 'none')} cannot be read (ENOENT)`,
    );
    expect(await refusal([join(folder, 'file')], out)).toContain(`merge: ${join(folder, 'file')} is a file`);
    expect(await refusal([empty], out)).toContain(`merge: ${empty} is not a lake`);
    const { code, stderr } = await cryptodl(['merge', '--out', out]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('merge needs a lake\n')]);
    expect(filesBelow(folder)).toEqual(['file']);
  });

  it('a lake that is named twice, is also the target, or lies within another one', async () => {
    const { lake } = await scene.vision('--interval 1h --symbols BTCUSDT --days 1');
    const out = join(scene.newFolder(), 'joined');
    const link = join(scene.newFolder(), 'link');
    symlinkSync(lake, link);
    expect(await refusal([lake, link], out)).toContain(`merge: ${link} is named twice`);
    expect(await refusal([link], lake)).toContain(`merge: ${link} is also --out`);
    const inner = join(lake, 'inner');
    cpSync(lake, join(out, '../copy'), { recursive: true });
    cpSync(join(out, '../copy'), inner, { recursive: true });
    expect(await refusal([inner], lake)).toContain(`merge: ${inner} is within ${lake}`);
    expect(await refusal([lake], inner)).toContain(`merge: ${inner} is within ${lake}`);
  });

  it('a lake in which a run was killed during a commit', async () => {
    const { lake } = await scene.vision('--interval 1h --symbols BTCUSDT --days 1');
    writeFileSync(join(lake, '.cryptodl/commit-x.json'), '{}');
    expect(await refusal([lake], join(scene.newFolder(), 'joined'))).toContain(
      `merge: a run was killed during a commit in ${lake}\n  to finish the commit: cryptodl verify --fix --out ${lake}\n`,
    );
  });

  it('lakes to which another run writes', async () => {
    const { lake } = await scene.vision('--interval 1h --symbols BTCUSDT --days 1');
    const { lake: out } = await scene.vision('--interval 1h --symbols ETHUSDT --days 1');
    for (const locked of [lake, out]) {
      const lock = await acquireLock(join(locked, '.cryptodl'), {
        command: 'cryptodl vision',
        clock: systemClock,
        onLost: () => undefined,
      });
      try {
        const { code, stderr } = await merge([lake], out);
        expect([code, stderr]).toEqual([
          6,
          expect.stringContaining('another run is writing to this lake: pid'),
        ]);
      } finally {
        await lock.release();
      }
    }
    expect((await merge([lake], out)).code).toBe(0);
  });
});

describe('lakes in buckets', () => {
  let server: S3Server;
  beforeAll(async () => {
    server = await new S3Server().listen();
  });
  afterAll(() => server.close());
  beforeEach(() => {
    server.fault = undefined;
    server.requests.length = 0;
  });

  /** Copies a local lake into the bucket. */
  function stored(lake: string, prefix: string): TestLake {
    for (const path of filesBelow(lake, ''))
      server.store(`${prefix}/${path}`, readFileSync(join(lake, path)));
    return lakeInBucket(server, prefix, scene.newFolder());
  }

  const mergeThere = (sources: readonly string[], out: string, ...flags: string[]): Promise<CliResult> =>
    cryptodl(['merge', ...sources, '--out', out, ...flags], { env: server.environment });

  const gets = (): string[] =>
    server.requests
      .filter(({ method, key }) => method === 'GET' && key !== '')
      .map(({ key }) => key.replace(/^.*\//, ''));

  it.each(['parquet', 'zip'])(
    'are merged with folders, in a folder and in a bucket, as one run would write them (%s)',
    async (format) => {
      const flags = `${BARS} --days 2 --format ${format}`;
      const [local = '', other = ''] = await shards(flags);
      const whole = await scene.vision(flags);
      const remote = stored(other, `${format}/one`);
      const before = [...server.objects];
      scene.reset();
      const folder = join(scene.newFolder(), 'joined');
      const first = await mergeThere([remote.out, local], folder, '--json');
      expect([first.code, first.events.at(-1)]).toEqual([
        0,
        expect.objectContaining({ merged: 3, failed: 0 }),
      ]);
      expect(new Set(first.events.slice(0, -1).map(({ lake }) => lake))).toEqual(
        new Set([remote.out, local]),
      );
      expect(Object.keys(contentOf(folder))).toEqual(Object.keys(contentOf(whole.lake)));
      expect([...server.objects]).toEqual(before);
      const joined = lakeInBucket(server, `${format}/joined`, scene.newFolder());
      expect((await mergeThere([local, remote.out], joined.out)).code).toBe(0);
      expect(contentOf(joined.content())).toEqual(contentOf(folder));
      expect(scene.archive.requests).toEqual([]);
      server.requests.length = 0;
      const second = await mergeThere([local, remote.out], joined.out);
      expect([second.code, second.stderr]).toEqual([0, expect.stringContaining('3 series skipped')]);
      expect(gets().filter((name) => !name.endsWith('.jsonl'))).toEqual([]);
      expect(server.requests.filter(({ method }) => method === 'PUT')).toEqual([]);
    },
  );

  it('are completed by the same command after a merge that the server has ended', async () => {
    const { lake } = await scene.vision(`${BARS} --days 2`);
    const source = stored(lake, 'ended/one');
    const target = lakeInBucket(server, 'ended/joined', scene.newFolder());
    let puts = 0;
    server.fault = ({ method }) => {
      puts += method === 'PUT' ? 1 : 0;
      return method === 'PUT' && puts > 3 ? { status: 403, code: 'AccessDenied' } : undefined;
    };
    expect((await mergeThere([source.out], target.out)).code).toBe(1);
    server.fault = ({ method, key }) =>
      method === 'GET' && key.startsWith('ended/one/binance/')
        ? { status: 403, code: 'AccessDenied' }
        : undefined;
    const refused = await mergeThere([source.out], target.out);
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    server.fault = undefined;
    expect((await mergeThere([source.out], target.out)).code).toBe(0);
    expect(contentOf(target.content())).toEqual(contentOf(lake));
  });

  it('take space on the machine for the files of one series at a time', async () => {
    const { lake } = await scene.vision(`${BARS} --days 2`);
    const source = stored(lake, 'space/one');
    const temp = scene.newFolder();
    let blocks: number[] = [];
    server.fault = ({ method, key }) => {
      if (method === 'GET' && /one\/binance.*SOLUSDT/.test(key))
        blocks = filesBelow(temp, '.parquet').map((file) => lstatSync(join(temp, file)).blocks);
      return undefined;
    };
    const out = join(scene.newFolder(), 'joined');
    const merged = await cryptodl(['merge', source.out, '--out', out], {
      env: { ...server.environment, TMPDIR: temp },
    });
    expect([merged.code, blocks]).toEqual([0, [0, 0, 0]]);
    expect(filesBelow(temp, '')).toEqual([]);
  });

  it('lose no file whose bytes differ from its manifest line', async () => {
    const { lake } = await scene.vision(`${BARS} --days 2`);
    const source = stored(lake, 'damaged/one');
    const path = 'binance/um/klines/interval=1h/symbol=BTCUSDT/2026-11.parquet';
    const bytes = Buffer.from(source.read(path));
    bytes[bytes.length - 20] = (bytes[bytes.length - 20] ?? 0) ^ 1;
    source.change(path, bytes);
    const folder = join(scene.newFolder(), 'joined');
    const merged = await mergeThere([source.out], folder);
    expect([merged.code, merged.stdout]).toEqual([
      4,
      expect.stringMatching(
        /^damaged\tum klines 1h BTCUSDT\t.*s3:\/\/lake\/damaged\/one\/binance\S+ does not have the SHA-256 of its manifest line\n$/,
      ),
    ]);
    expect(Object.keys(contentOf(folder)).filter((name) => name.includes('BTCUSDT'))).toEqual([]);
  });

  it('are refused if there is no lake, if one is named twice, and if one lies within another', async () => {
    const { lake } = await scene.vision('--interval 1h --symbols BTCUSDT --days 1');
    const { out } = stored(lake, 'refused/one');
    const folder = join(scene.newFolder(), 'joined');
    const refusal = async (sources: readonly string[], target: string): Promise<string> => {
      const { code, stderr } = await mergeThere(sources, target);
      expect(code).toBe(2);
      return stderr;
    };
    expect(await refusal(['s3://lake/refused/none'], folder)).toContain(
      'merge: s3://lake/refused/none is not a lake',
    );
    expect(await refusal([out, `${out}/`], folder)).toContain(`merge: ${out} is named twice`);
    expect(await refusal([out], out)).toContain(`merge: ${out} is also --out`);
    expect(await refusal([out], 's3://lake/refused')).toContain(`merge: ${out} is within s3://lake/refused`);
    expect(await refusal(['s3://'], folder)).toContain('merge: "s3://" has no valid name of a bucket');
    const puts = server.requests.filter(({ method }) => method === 'PUT');
    expect(puts).toEqual([]);
  });
});
