import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { lakePaths } from '../../../src/lake/layout.js';
import type { LakePaths } from '../../../src/lake/layout.js';
import type { ObjectLine } from '../../../src/model/manifest-line.js';
import { readManifest } from '../../../src/lake/manifest.js';
import { Manifests } from '../../../src/lake/manifests.js';
import { commitFiles } from '../../../src/lake/commit-files.js';
import { finishCommits } from '../../../src/lake/commit-files.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { objectLine } from '../../helpers/conversion.js';
import { refuse, syncsOf, withCalls, withRenames } from '../../helpers/file-handles.js';
import { scratchFolder } from '../../helpers/folders.js';
import { manifestLines, manifestOf, filesBelow } from '../../helpers/lake.js';

const ARCHIVE = loadBinance().archive;

const scratch = scratchFolder();
const exchange = loadBinance();
const SERIES = 'binance/um/metrics/symbol=BTCUSDT';
const KEY = 'data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-2024-01-01.zip';
const DEAD = `${SERIES}/2024-01-01.parquet`;
const MADE = `${SERIES}/2024-01.parquet`;
const MONTH = {
  key: KEY,
  file: '2024-01.parquet',
  fileBytes: 'month'.length,
  fileSha256: createHash('sha256').update('month').digest('hex'),
};
/** A committed file of three bytes. */
const OLD = { bytes: 3, sha256: 'a'.repeat(64) };

/** A new lake with an old file of one day. */
async function newLake(): Promise<LakePaths> {
  const paths = lakePaths(join(await mkdtemp(join(scratch, 'redo-')), 'lake'));
  mkdirSync(paths.staging, { recursive: true });
  mkdirSync(join(paths.root, SERIES), { recursive: true });
  writeFileSync(join(paths.root, DEAD), 'day');
  return paths;
}

/** Commits a month file in place of `dead`. `staged`: names in the staging folder. */
function commitMonth(
  paths: LakePaths,
  {
    dead = DEAD,
    staged = ['x.partial'],
    line = {},
    manifests = new Manifests(ARCHIVE),
  }: {
    dead?: string;
    staged?: readonly string[];
    line?: Partial<ObjectLine>;
    manifests?: Pick<Manifests, 'append'>;
  } = {},
): Promise<void> {
  writeFileSync(join(paths.staging, 'x.partial'), 'month');
  return commitFiles(
    { paths, manifests },
    {
      seriesFolder: join(paths.root, SERIES),
      publications: staged.map((name) => ({
        staged: join(paths.staging, name),
        target: join(paths.root, MADE),
      })),
      dead: [join(paths.root, dead)],
      lines: [objectLine('2024-01-01', { ...MONTH, ...line })],
    },
  );
}

/** A lake whose commit ended in the middle: the new file could not take its place, no line is written, and the old file is there. */
async function interrupted(): Promise<LakePaths> {
  const paths = await newLake();
  // A folder cannot be replaced by a file.
  mkdirSync(join(paths.root, MADE));
  await expect(commitMonth(paths)).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  rmSync(join(paths.root, MADE), { recursive: true });
  return paths;
}

async function finished(paths: LakePaths): Promise<boolean> {
  const refused = await finishCommits(paths, exchange);
  const { parquet } = await readManifest(join(paths.root, SERIES), ARCHIVE);
  const made = readFileSync(join(paths.root, MADE), 'utf8');
  const lines = manifestLines(join(paths.root, SERIES)).length;
  const isDone = refused.length === 0 && made === 'month' && parquet.size === 1 && lines === 1;
  return isDone && !existsSync(join(paths.root, DEAD)) && filesBelow(paths.internal).length === 0;
}

it('a commit that was interrupted is finished', async () => {
  expect(await finished(await interrupted())).toBe(true);
});

it('a journal that was applied may be applied again', async () => {
  const paths = await interrupted();
  const [journal = ''] = filesBelow(paths.internal, '.json');
  const text = readFileSync(join(paths.internal, journal));
  expect(await finished(paths)).toBe(true);
  writeFileSync(join(paths.internal, journal), text);
  expect(await finished(paths)).toBe(true);
});

it('a commit that also drops an object is finished', async () => {
  const paths = await interrupted();
  const dropped = { v: 1, kind: 'dropped', key: KEY.replace('-01.zip', '-02.zip'), format: 'parquet' };
  changeJournal(paths, ({ lines }) => lines.push({ ...dropped, at: '2024-02-02T00:00:00.000Z' }));
  expect(await finishCommits(paths, exchange)).toEqual([]);
  expect(manifestLines(join(paths.root, SERIES)).map(({ kind }) => kind)).toEqual(['object', 'dropped']);
});

it.each<[string, string, Partial<ObjectLine>, string]>([
  ['takes the place of an unknown one before the lines', 'old', {}, 'month'],
  ['takes the place of a damaged one before the lines', 'damaged', { fileBefore: OLD }, 'month'],
  ['takes the place of a committed one after the lines', 'old', { fileBefore: OLD }, 'old'],
])('a file %s', async (_, before, line, after) => {
  const paths = await newLake();
  writeFileSync(join(paths.root, MADE), before);
  // A manifest that is a folder cannot be added to.
  mkdirSync(manifestOf(join(paths.root, SERIES)), { recursive: true });
  await expect(commitMonth(paths, { line })).rejects.toThrow('is not a regular file');
  expect(readFileSync(join(paths.root, MADE), 'utf8')).toBe(after);
  rmSync(manifestOf(join(paths.root, SERIES)), { recursive: true });
  expect(await finished(paths)).toBe(true);
});

it('a commit is also finished when the lake was renamed since', async () => {
  const { root } = await interrupted();
  renameSync(root, `${root}-renamed`);
  expect(await finished(lakePaths(`${root}-renamed`))).toBe(true);
});

it('a commit is also finished when the device got another number, as after a boot', async () => {
  const paths = await interrupted();
  changeJournal(paths, ({ lake }) => Object.assign(lake, { device: '0' }));
  expect(await finished(paths)).toBe(true);
});

it('a commit that was interrupted before its manifest lines keeps a new file in place of an old one', async () => {
  const paths = await newLake();
  rmSync(join(paths.root, DEAD));
  // A manifest that is a folder cannot be added to.
  mkdirSync(manifestOf(join(paths.root, SERIES)), { recursive: true });
  writeFileSync(join(paths.root, MADE), 'old month');
  await expect(commitMonth(paths, { dead: MADE })).rejects.toThrow(
    'symbol=BTCUSDT.jsonl is not a regular file',
  );
  rmSync(manifestOf(join(paths.root, SERIES)), { recursive: true });
  expect(await finished(paths)).toBe(true);
});

it('a journal that was not written to its end is removed, and nothing of it is applied', async () => {
  const paths = await interrupted();
  const [journal = ''] = filesBelow(paths.internal, '.json');
  renameSync(join(paths.internal, journal), join(paths.internal, `${journal}.partial`));
  writeFileSync(join(paths.root, DEAD), 'day');
  expect(await finishCommits(paths, exchange)).toEqual([]);
  expect(filesBelow(join(paths.root, SERIES))).toEqual(['2024-01-01.parquet']);
  expect(filesBelow(paths.internal)).toEqual(['tmp/x.partial']);
});

it('a commit whose journal cannot be written removes only its staged files', async () => {
  const paths = await newLake();
  await expect(commitMonth(paths, { staged: ['x.partial', 'gone.partial'] })).rejects.toThrow('ENOENT');
  expect([filesBelow(paths.internal), filesBelow(join(paths.root, SERIES))]).toEqual([
    [],
    ['2024-01-01.parquet'],
  ]);
});

it('in a lake with the same inode on another device and at another path, the journal is not applied', async () => {
  const paths = await interrupted();
  changeJournal(paths, ({ lake }) => Object.assign(lake, { device: '0', path: '/elsewhere' }));
  expect(await finishCommits(paths, exchange)).toMatchObject([
    { why: expect.stringContaining('another lake') as unknown },
  ]);
  expect(existsSync(join(paths.root, MADE))).toBe(false);
});

it.each<[string, (lake: string, root: string) => void]>([
  [
    'beside the original',
    (copy, root) => {
      cpSync(root, copy, { recursive: true });
    },
  ],
  [
    'and took the place of the original',
    (copy, root) => {
      cpSync(root, `${root}-2`, { recursive: true });
      renameSync(root, `${root}-1`);
      renameSync(`${root}-2`, copy);
    },
  ],
])('in a lake that was copied, %s, the journal is kept and nothing is applied', async (what, copyTo) => {
  const original = await interrupted();
  const root = what.startsWith('beside') ? `${original.root}-copy` : original.root;
  copyTo(root, original.root);
  const copy = lakePaths(root);
  const [refused, ...others] = await finishCommits(copy, exchange);
  expect([others, refused?.why]).toEqual([[], expect.stringContaining('another lake')]);
  expect(filesBelow(refused?.kept ?? '')).toEqual([refused?.name, 'tmp/x.partial']);
  expect(existsSync(join(copy.root, MADE))).toBe(false);
  expect(await finishCommits(copy, exchange)).toEqual([]);
});

it.each<[string, (journal: Journal) => unknown]>([
  ...[
    '../other/symbol=BTCUSDT',
    '.cryptodl/symbol=BTCUSDT',
    'binance/um',
    'binance/x/metrics/symbol=BTCUSDT',
    'mine/um/metrics/symbol=BTCUSDT',
    'binance/um/metrics/a/symbol=BTCUSDT',
  ].map((series): [string, (journal: Journal) => unknown] => [
    series,
    (journal) => Object.assign(journal, { series }),
  ]),
  ['a target', ({ publications: [first] }) => Object.assign(first ?? {}, { target: '../2024-01.parquet' })],
  ['a staged file', ({ publications: [first] }) => Object.assign(first ?? {}, { staged: '../x.partial' })],
  ['a file to be removed', (journal) => Object.assign(journal, { dead: ['../../2024-01-01.parquet'] })],
  ['the manifest', (journal) => Object.assign(journal, { dead: ['_manifest.jsonl'] })],
  ['a line', ({ lines: [line] }) => Object.assign(line ?? {}, { file: '../2024-01.parquet' })],
  [
    'one of two targets',
    ({ publications }) => publications.push({ staged: 'y.partial', target: '../2024-02.parquet' }),
  ],
  [
    'one of two staged files',
    ({ publications }) => publications.push({ staged: '../y.partial', target: '2024-02.parquet' }),
  ],
  ['one of two files to be removed', ({ dead }) => dead.push('../2024-02.parquet')],
])('a journal is not applied when %s leads out of the folder of its series', async (_, edit) => {
  const paths = await interrupted();
  writeFileSync(join(paths.root, DEAD), 'day');
  changeJournal(paths, edit);
  const [refused, ...others] = await finishCommits(paths, exchange);
  expect([others, refused?.why]).toEqual([[], expect.not.stringContaining('missing or damaged')]);
  expect(filesBelow(join(paths.root, 'binance'))).toEqual([DEAD.slice('binance/'.length)]);
});

it.each<[string, string, (journal: string, root: string) => unknown]>([
  ['is cut', 'it is damaged', (journal) => truncateSync(journal, 100)],
  [
    'has a line of no day',
    'it is damaged',
    (journal) => {
      writeFileSync(journal, readFileSync(journal, 'utf8').replaceAll('2024-01-01', '2024-02-30'));
    },
  ],
  ['has lost its new file', 'is missing or damaged', (_, root) => rmSync(newFileIn(root))],
  ['has a damaged new file', 'is missing or damaged', (_, root) => writeFileSync(newFileIn(root), 'mouth')],
  [
    'has no line of its new file',
    'is missing or damaged',
    (journal) => {
      writeFileSync(journal, readFileSync(journal, 'utf8').replace('"target":"2024-01', '"target":"2024-02'));
    },
  ],
  [
    'has no lines',
    'it has no lines',
    (journal) => writeFileSync(journal, readFileSync(journal, 'utf8').replace(/"lines":.*/, '"lines":[]}')),
  ],
  [
    'is a link',
    'it is not a regular file',
    (journal) => {
      renameSync(journal, `${journal}.elsewhere`);
      symlinkSync(`${journal}.elsewhere`, journal);
    },
  ],
  [
    'is about a series behind a link',
    'is a symbolic link',
    (_, root) => {
      renameSync(join(root, 'binance'), join(root, 'elsewhere'));
      symlinkSync(join(root, 'elsewhere'), join(root, 'binance'));
    },
  ],
])('a journal that %s is not applied, and the reason is "%s"', async (_, why, edit) => {
  const paths = await interrupted();
  edit(join(paths.internal, filesBelow(paths.internal, '.json')[0] ?? ''), paths.root);
  const refused = await finishCommits(paths, exchange);
  expect(refused.map((commit) => commit.why)).toEqual([expect.stringContaining(why)]);
  expect([MADE, DEAD].map((file) => existsSync(join(paths.root, file)))).toEqual([false, true]);
});

it('a journal that is refused is set aside also when nothing is staged any more', async () => {
  const paths = await interrupted();
  changeJournal(paths, (journal) => Object.assign(journal, { series: 'binance/um' }));
  rmSync(paths.staging, { recursive: true });
  const [refused] = await finishCommits(paths, exchange);
  expect(filesBelow(refused?.kept ?? '')).toEqual([refused?.name]);
});

it('a journal that is refused stays in its place while its staged files cannot be moved', async () => {
  const paths = await interrupted();
  changeJournal(paths, (journal) => Object.assign(journal, { series: 'binance/um' }));
  const before = filesBelow(paths.internal);
  const moving = withRenames(
    () => finishCommits(paths, exchange),
    (path) => (path === paths.staging ? refuse('EACCES') : undefined),
  );
  await expect(moving).rejects.toThrow('EACCES');
  expect(filesBelow(paths.internal)).toEqual(before);
});

it('a file that is no journal stays in its place', async () => {
  const paths = await interrupted();
  const others = ['lake.json', 'lock', 'commit-x.json.bak'];
  for (const name of others) writeFileSync(join(paths.internal, name), '{}');
  mkdirSync(join(paths.internal, 'commit-folder.json'));
  expect(await finishCommits(paths, exchange)).toEqual([]);
  expect(filesBelow(paths.internal)).toEqual(others.sort());
  expect(existsSync(join(paths.internal, 'commit-folder.json'))).toBe(true);
});

it('a commit that cannot be finished now is finished by a later run', async () => {
  const paths = await interrupted();
  mkdirSync(join(paths.root, MADE));
  await expect(finishCommits(paths, exchange)).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  rmSync(join(paths.root, MADE), { recursive: true });
  expect(await finished(paths)).toBe(true);
});

it('a journal that cannot be read now is left to a later run', async () => {
  const paths = await interrupted();
  const reading = withCalls(
    'readFile',
    () => finishCommits(paths, exchange),
    () => refuse('EIO'),
  );
  await expect(reading).rejects.toThrow('EIO');
  expect(await finished(paths)).toBe(true);
});

it('a journal that may not survive a power failure is removed with the files that it names', async () => {
  const paths = await newLake();
  const committing = syncsOf(
    () => commitMonth(paths),
    (path) => (path === paths.internal ? refuse('EIO') : undefined),
  );
  await expect(committing).rejects.toThrow('EIO');
  expect([filesBelow(paths.internal), filesBelow(join(paths.root, SERIES))]).toEqual([
    [],
    ['2024-01-01.parquet'],
  ]);
});

it('a new file has its name before its lines, and a commit that was interrupted after them writes them once', async () => {
  const paths = await newLake();
  const folder = join(paths.root, SERIES);
  let before: readonly string[] = [];
  const append: Manifests['append'] = (...[series, lines]) => {
    before = filesBelow(folder);
    return new Manifests(ARCHIVE).append(series, lines, () => Promise.reject(new Error('ended')));
  };
  await expect(commitMonth(paths, { manifests: { append } })).rejects.toThrow('ended');
  expect([before, manifestLines(folder).length]).toEqual([[basename(DEAD), basename(MADE)], 1]);
  expect(await finished(paths)).toBe(true);
});

it('an old file stays until all new ones have their names', async () => {
  const paths = await newLake();
  mkdirSync(join(paths.root, MADE));
  const publications = [`${SERIES}/2024-01-02.parquet`, MADE].map((target) => ({
    staged: join(paths.staging, `${basename(target)}.partial`),
    target: join(paths.root, target),
  }));
  for (const { staged } of publications) writeFileSync(staged, 'new');
  const dead = [join(paths.root, DEAD)];
  const commit = commitFiles(
    { paths, manifests: new Manifests(ARCHIVE) },
    {
      seriesFolder: join(paths.root, SERIES),
      publications,
      dead,
      lines: [],
    },
  );
  await expect(commit).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  expect(filesBelow(join(paths.root, SERIES))).toEqual(['2024-01-01.parquet', '2024-01-02.parquet']);
});

function newFileIn(root: string): string {
  return join(lakePaths(root).staging, 'x.partial');
}

interface Journal {
  readonly lake: object;
  readonly publications: object[];
  readonly dead: string[];
  readonly lines: object[];
}

function changeJournal({ internal }: LakePaths, edit: (journal: Journal) => unknown): void {
  const path = join(internal, filesBelow(internal, '.json')[0] ?? '');
  const journal = JSON.parse(readFileSync(path, 'utf8')) as Journal;
  edit(journal);
  writeFileSync(path, JSON.stringify(journal));
}
