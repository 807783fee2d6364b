/** Parquet files without manifest lines, for example in a copied folder of a series, are adopted with the objects of their footers. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { Adoption } from '../../src/download/adopt-series.js';
import type { Lock } from '../../src/lake/lock.js';
import { Manifests } from '../../src/lake/manifests.js';
import type { Series } from '../../src/model/task.js';
import { loadBinance } from '../../src/source/binance/binance.js';
import { cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow, manifestLines, manifestOf } from '../helpers/lake.js';
import { preload } from '../helpers/preload.js';
import { useScene } from '../helpers/scene.js';

const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const OTHER = 'binance/um/klines/interval=1h/symbol=ETHUSDT';
const FILE = `${SERIES}/2026-10.parquet`;

const scene = useScene({
  archive: [
    {
      dataset: 'klines',
      interval: '1h',
      symbols: ['BTCUSDT', 'ETHUSDT'],
      from: '2026-10-01',
      to: '2026-10-06',
    },
  ],
});
const sound = join(scene.scratch, 'sound');
const NOW = ['--now', '2026-10-06T08:00:00Z'];
const places = (lake: string): string[] => [
  '--out',
  lake,
  '--archive-url',
  scene.archive.url,
  ...NOW,
  ...FAST,
];

beforeAll(() =>
  cryptodlOk([
    'vision',
    '--symbols',
    'BTCUSDT,ETHUSDT',
    '--interval',
    '1h',
    '--from',
    '2026-10-01',
    '--to',
    '2026-10-04',
    ...places(sound),
  ]),
);

/** A lake that has only the copied folder of a series. */
function copied(): string {
  const lake = scene.newFolder();
  cpSync(join(sound, SERIES), join(lake, SERIES), { recursive: true });
  return lake;
}

const verify = (lake: string, ...flags: string[]): Promise<CliResult> =>
  cryptodl(['verify', '--out', lake, ...NOW, '--json', ...flags]);
const repair = (lake: string, ...flags: string[]): Promise<CliResult> =>
  cryptodl(['repair', ...places(lake), '--json', ...flags]);

describe('a copied folder of a series', () => {
  it('is adopted by repair, which fetches nothing', async () => {
    const lake = copied();
    const before = readFileSync(join(lake, FILE));
    expect((await verify(lake)).code).toBe(4);
    const from = scene.archive.requests.length;
    const { code, stderr } = await repair(lake);
    expect([code, scene.archive.requests.slice(from).filter((path) => path.endsWith('.zip'))]).toEqual([
      0,
      [],
    ]);
    expect(stderr).not.toContain('quarantine');
    expect(readFileSync(join(lake, FILE))).toEqual(before);
    // The time of the commit is another, and a footer does not tell of dropped duplicates.
    const { at, tool } = manifestLines(join(lake, SERIES))[0] ?? {};
    const lines = manifestLines(join(sound, SERIES)).map((line) => ({
      ...line,
      at,
      tool,
      duplicates: undefined,
    }));
    expect(manifestLines(join(lake, SERIES))).toEqual(lines);
    expect((await verify(lake, '--deep')).code).toBe(0);
    const since = scene.archive.requests.length;
    const next = await cryptodl(['vision', ...places(lake), '--json']);
    expect([next.code, next.events.at(-1)]).toEqual([0, expect.objectContaining({ event: 'summary' })]);
    // The held days are not revisions.
    expect(scene.archive.requests.slice(since).filter((path) => /2026-10-0[1-4]\.zip$/.test(path))).toEqual(
      [],
    );
  });

  it('is adopted by verify --fix, and a dry run of repair changes nothing', async () => {
    const lake = copied();
    const dry = await repair(lake, '--dry-run');
    expect([dry.code, existsSync(manifestOf(join(lake, SERIES)))]).toEqual([0, false]);
    expect(dry.stdout).not.toContain('.zip');
    const fixed = await verify(lake, '--fix');
    expect([fixed.code, fixed.stdout]).toEqual([0, expect.stringContaining('adopted')]);
    expect((await verify(lake, '--deep')).code).toBe(0);
  });
});

describe('a run that writes a series whose copied files have no manifest', () => {
  const RUN = ['vision', '--symbols', 'BTCUSDT', '--interval', '1h', '--from', '2026-10-01'];
  const run = (lake: string, ...flags: string[]): Promise<CliResult> =>
    cryptodl([...RUN, ...places(lake), '--json', ...flags]);
  /** The days of the objects that were fetched since the `from`-th request. */
  const fetchedSince = (from: number): string[] =>
    scene.archive.requests
      .slice(from)
      .flatMap((path) => /2026-1?\d-\d\d(?=\.zip$)/.exec(path)?.[0] ?? [])
      .sort();

  it('adopts them and fetches only the days that they lack', async () => {
    const lake = copied();
    const dry = await run(lake, '--to', '2026-10-05', '--dry-run');
    const planned = dry.events.filter(({ event }) => event === 'planned');
    expect(planned.map(({ action }) => action)).toEqual(['skip', 'skip', 'skip', 'skip', 'fetch']);
    expect(dry.stderr).toContain('the run would adopt 1 Parquet file with 4 objects in 1 series');
    expect(existsSync(manifestOf(join(lake, SERIES)))).toBe(false);
    const from = scene.archive.requests.length;
    const { code, stderr } = await run(lake, '--to', '2026-10-05');
    expect([code, fetchedSince(from)]).toEqual([0, ['2026-10-05']]);
    expect(stderr).toContain('adopted 1 Parquet file with 4 objects in 1 series without a manifest');
    expect(existsSync(join(lake, '_quarantine'))).toBe(false);
    expect(manifestLines(join(lake, SERIES)).map(({ period }) => period)).toEqual(
      ['01', '02', '03', '04', '05'].map((day) => `2026-10-${day}`),
    );
    expect((await verify(lake, '--deep')).code).toBe(0);
  });

  it('adopts them also if the manifest lists only files of another format', async () => {
    const lake = scene.newFolder();
    expect((await run(lake, '--to', '2026-10-01', '--format', 'csv')).code).toBe(0);
    cpSync(join(sound, FILE), join(lake, FILE));
    const from = scene.archive.requests.length;
    expect([(await run(lake, '--to', '2026-10-05')).code, fetchedSince(from)]).toEqual([0, ['2026-10-05']]);
  });

  it('moves a file that proves nothing to the quarantine, and fetches its days', async () => {
    const lake = copied();
    edit(lake, '"symbol":"BTCUSDT"', '"symbol":"ETHUSDT"');
    const from = scene.archive.requests.length;
    expect((await run(lake, '--to', '2026-10-02')).code).toBe(0);
    expect(fetchedSince(from)).toEqual(['2026-10-01', '2026-10-02']);
    expect(filesBelow(join(lake, '_quarantine'), '.parquet')).toHaveLength(1);
  });

  it('adopts neither of two files with the same days, and names the one that it leaves', async () => {
    const lake = scene.newFolder();
    const ofDay = [...RUN.slice(0, -1), '2026-10-03', '--to', '2026-10-03', '--partition', 'day'];
    await cryptodlOk([...ofDay, ...places(lake)]);
    rmSync(join(lake, '_manifests'), { recursive: true });
    cpSync(join(sound, FILE), join(lake, FILE));
    const { code, stderr } = await run(lake, '--to', '2026-10-04');
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(
        `no manifest line names ${SERIES}/2026-10-03.parquet and 1 more file: readers of the folder may count rows twice; cryptodl verify --fix --out `,
      ),
    ]);
    expect(stderr).not.toContain('adopted');
    const fixed = await verify(lake, '--fix');
    expect([fixed.stdout.includes('adopted'), filesBelow(join(lake, SERIES))]).toEqual([
      false,
      ['2026-10.parquet'],
    ]);
    expect((await run(lake, '--to', '2026-10-04')).stderr).not.toContain('no manifest line');
  });

  it('verify --fix adopts neither of them', async () => {
    const lake = copied();
    cpSync(join(lake, FILE), join(lake, `${SERIES}/2026-10-03.parquet`));
    expect((await verify(lake, '--fix')).stdout).not.toContain('adopted');
    expect(filesBelow(join(lake, '_quarantine'), '.parquet')).toHaveLength(2);
  });

  it('plans the days of a file that it may not read', async () => {
    const lake = copied();
    const args = [...RUN, ...places(lake), '--to', '2026-10-02', '--json', '--dry-run'];
    const { code, events } = await cryptodl(args, { env: refusedReads() });
    const planned = events.filter(({ event }) => event === 'planned');
    expect([code, planned.map(({ action }) => action)]).toEqual([0, ['fetch', 'fetch']]);
  });

  it('refuses other settings than those of the adopted files', async () => {
    const lake = copied();
    const { code, stderr } = await run(lake, '--to', '2026-10-04', '--numbers', 'string');
    expect([code, stderr]).toEqual([2, expect.stringContaining('numbers')]);
  });
});

it('a missing file is listed with the ways to get it back and to give it up', async () => {
  const lake = scene.newFolder();
  cpSync(sound, lake, { recursive: true });
  rmSync(join(lake, FILE));
  const { code, stdout, stderr } = await verify(lake);
  expect([code, stdout]).toEqual([4, expect.stringContaining('"kind":"missing"')]);
  expect(stderr).toContain(
    'missing files: cryptodl repair fetches their objects again; to give them up, delete',
  );
});

it('a file that the file system refuses to read is neither adopted nor moved', async () => {
  const lake = copied();
  const fixed = await cryptodl(['verify', '--out', lake, ...NOW, '--json', '--fix'], {
    env: refusedReads(),
  });
  expect([fixed.code, fixed.stdout]).toEqual([1, expect.stringContaining('cannot be read (EACCES)')]);
  expect(existsSync(join(lake, FILE))).toBe(true);
});

it('a pipe in place of a file is neither opened nor replaced', async () => {
  const lake = copied();
  const pipe = join(lake, FILE);
  rmSync(pipe);
  execFileSync('mkfifo', [pipe]);
  const fixed = await verify(lake, '--fix');
  expect([fixed.code, fixed.stdout]).toEqual([1, expect.stringContaining('it is a named pipe')]);
  const repaired = await repair(lake);
  expect([repaired.code, repaired.stderr]).toEqual([
    4,
    expect.stringContaining('it is a named pipe, not a regular file; make it readable or move it away'),
  ]);
  const run = ['vision', '--symbols', 'BTCUSDT', '--interval', '1h', '--from', '2026-10-01'];
  const { code, stderr } = await cryptodl([...run, '--to', '2026-10-01', ...places(lake)]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('it is a named pipe')]);
  expect(lstatSync(pipe).isFIFO()).toBe(true);
});

describe('a file is not adopted, and its objects are fetched again,', () => {
  it.each<[string, (lake: string) => void]>([
    [
      'of another series',
      (lake) => {
        rmSync(join(lake, SERIES), { recursive: true });
        cpSync(join(sound, OTHER), join(lake, SERIES), { recursive: true });
      },
    ],
    [
      'with the name of another month',
      (lake) => {
        renameSync(join(lake, FILE), join(lake, `${SERIES}/2026-09.parquet`));
      },
    ],
    [
      'with damaged rows',
      (lake) => {
        const bytes = readFileSync(join(lake, FILE));
        bytes.fill(0xff, 8, 200);
        writeFileSync(join(lake, FILE), bytes);
      },
    ],
    [
      'without an end',
      (lake) => {
        writeFileSync(join(lake, FILE), readFileSync(join(lake, FILE)).subarray(0, 500));
      },
    ],
    [
      'whose footer lacks an object',
      (lake) => {
        edit(lake, '2026-10-02.zip","sha256', '2026-10-02.zip","sha255');
      },
    ],
    [
      'whose footer names an object of another series',
      (lake) => {
        edit(lake, 'BTCUSDT-1h-2026-10-02.zip', 'ETHUSDT-1h-2026-10-02.zip');
      },
    ],
  ])('%s', async (_, harm) => {
    const lake = copied();
    harm(lake);
    const fixed = await verify(lake, '--fix');
    expect(fixed.stdout).not.toContain('adopted');
    expect(filesBelow(join(lake, '_quarantine'), '.parquet')).toHaveLength(1);
    await repair(lake);
    expect((await verify(lake, '--deep')).code).toBe(0);
  });
});

/** Replaces a text of the footer by one of the same length. */
function edit(lake: string, from: string, to: string): void {
  const text = readFileSync(join(lake, FILE), 'latin1');
  expect([text.includes(from), from.length]).toEqual([true, to.length]);
  writeFileSync(join(lake, FILE), text.replace(from, to), 'latin1');
}

/** The environment of a process that may not read Parquet files. */
function refusedReads(): Record<string, string> {
  return preload(
    scene.scratch,
    `import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
const { open } = fs;
fs.open = (path, ...how) => {
  if (String(path).endsWith('.parquet')) throw Object.assign(new Error('refused'), { code: 'EACCES' });
  return open(path, ...how);
};
syncBuiltinESMExports();`,
  );
}

describe('the adoption of a run', () => {
  const series: Series = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' };
  const venue = loadBinance();
  const adoptionOf = (confirm: () => Promise<void>): Adoption =>
    new Adoption({
      nowMs: Date.parse('2026-10-06T08:00:00Z'),
      stop: new AbortController(),
      venue,
      lock: { confirm, release: () => Promise.resolve() } as Lock,
      manifests: new Manifests(venue.archive),
      runFolder: scene.newFolder(),
    });

  it('writes the lines of a folder once, also if two plans ask for it', async () => {
    const folder = join(copied(), SERIES);
    const adoption = adoptionOf(() => Promise.resolve());
    expect(await Promise.all([adoption.adopt(series, folder), adoption.adopt(series, folder)])).toEqual([
      true,
      true,
    ]);
    expect(adoption.text()).toContain('adopted 1 Parquet file with 4 objects in 1 series');
    adoption.close();
    expect(manifestLines(folder)).toHaveLength(4);
  });

  it('writes nothing after another run has taken the lock', async () => {
    const folder = join(copied(), SERIES);
    const adoption = adoptionOf(() => Promise.reject(new Error('the lock is lost')));
    await expect(adoption.adopt(series, folder)).rejects.toThrow('the lock is lost');
    adoption.close();
    expect(existsSync(manifestOf(folder))).toBe(false);
  });
});
