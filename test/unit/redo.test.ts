import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lakePaths } from '../../src/lake/layout.js';
import type { LakePaths } from '../../src/lake/layout.js';
import { readManifest } from '../../src/lake/manifest.js';
import { commitWithRedo, finishCommits } from '../../src/lake/redo.js';
import { loadVenue } from '../../src/venue/venue.js';
import { objectLine } from '../helpers/conversion.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';

const scratch = scratchFolder();
const venue = loadVenue();
const SERIES = 'binance/um/metrics/symbol=BTCUSDT';
const KEY = 'data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-2024-01-01.zip';
const DEAD = `${SERIES}/2024-01-01.parquet`;
const MADE = `${SERIES}/2024-01.parquet`;

/** A lake whose commit ended in the middle: the old file is gone, the new one could not take its place yet. */
async function interrupted(): Promise<LakePaths> {
  const paths = lakePaths(join(await mkdtemp(join(scratch, 'redo-')), 'lake'));
  mkdirSync(paths.staging, { recursive: true });
  // A folder cannot be replaced by a file.
  mkdirSync(join(paths.root, MADE), { recursive: true });
  writeFileSync(join(paths.root, DEAD), 'day');
  const staged = join(paths.staging, 'x.partial');
  writeFileSync(staged, 'month');
  const commit = commitWithRedo(paths, {
    seriesFolder: join(paths.root, SERIES),
    publications: [{ staged, target: join(paths.root, MADE) }],
    dead: [join(paths.root, DEAD)],
    lines: [objectLine('2024-01-01', { key: KEY })],
  });
  await expect(commit).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  rmSync(join(paths.root, MADE), { recursive: true });
  return paths;
}

async function finished(paths: LakePaths): Promise<boolean> {
  const refused = await finishCommits(paths, venue);
  const { parquet } = await readManifest(join(paths.root, SERIES));
  const made = readFileSync(join(paths.root, MADE), 'utf8');
  return refused.length === 0 && made === 'month' && parquet.size === 1 && filesBelow(paths.own).length === 0;
}

it('a commit that was interrupted is finished', async () => {
  expect(await finished(await interrupted())).toBe(true);
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
  const paths = lakePaths(join(await mkdtemp(join(scratch, 'redo-')), 'lake'));
  mkdirSync(paths.staging, { recursive: true });
  // A manifest that is a folder cannot be added to.
  mkdirSync(join(paths.root, SERIES, '_manifest.jsonl'), { recursive: true });
  writeFileSync(join(paths.root, MADE), 'old month');
  const staged = join(paths.staging, 'x.partial');
  writeFileSync(staged, 'month');
  const commit = commitWithRedo(paths, {
    seriesFolder: join(paths.root, SERIES),
    publications: [{ staged, target: join(paths.root, MADE) }],
    dead: [join(paths.root, MADE)],
    lines: [objectLine('2024-01-01', { key: KEY })],
  });
  await expect(commit).rejects.toThrow('_manifest.jsonl is no regular file');
  rmSync(join(paths.root, SERIES, '_manifest.jsonl'), { recursive: true });
  expect(await finished(paths)).toBe(true);
});

it('a journal that was not written to its end is removed, and nothing of it is applied', async () => {
  const paths = await interrupted();
  const [journal = ''] = filesBelow(paths.own, '.json');
  renameSync(join(paths.own, journal), join(paths.own, `${journal}.partial`));
  writeFileSync(join(paths.root, DEAD), 'day');
  expect(await finishCommits(paths, venue)).toEqual([]);
  expect(filesBelow(join(paths.root, SERIES))).toEqual(['2024-01-01.parquet']);
  expect(filesBelow(paths.own)).toEqual(['tmp/x.partial']);
});

it('a commit that cannot be written down removes nothing but what it staged', async () => {
  const paths = lakePaths(join(await mkdtemp(join(scratch, 'redo-')), 'lake'));
  mkdirSync(paths.staging, { recursive: true });
  mkdirSync(join(paths.root, SERIES), { recursive: true });
  writeFileSync(join(paths.root, DEAD), 'day');
  const staged = ['x.partial', 'gone.partial'].map((name) => join(paths.staging, name));
  writeFileSync(staged[0] ?? '', 'month');
  const commit = commitWithRedo(paths, {
    seriesFolder: join(paths.root, SERIES),
    publications: staged.map((path) => ({ staged: path, target: join(paths.root, MADE) })),
    dead: [join(paths.root, DEAD)],
    lines: [objectLine('2024-01-01', { key: KEY })],
  });
  await expect(commit).rejects.toThrow('ENOENT');
  expect([filesBelow(paths.own), filesBelow(join(paths.root, SERIES))]).toEqual([[], ['2024-01-01.parquet']]);
});

it('in a lake with the same inode on another device and at another path, the journal is not applied', async () => {
  const paths = await interrupted();
  changeJournal(paths, ({ lake }) => Object.assign(lake, { device: '0', path: '/elsewhere' }));
  expect(await finishCommits(paths, venue)).toMatchObject([
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
  const [refused, ...others] = await finishCommits(copy, venue);
  expect([others, refused?.why]).toEqual([[], expect.stringContaining('another lake')]);
  expect(filesBelow(refused?.kept ?? '')).toEqual([refused?.name, 'tmp/x.partial']);
  expect(existsSync(join(copy.root, MADE))).toBe(false);
  expect(await finishCommits(copy, venue)).toEqual([]);
});

it.each<[string, (journal: Journal) => unknown]>([
  ['its series', (journal) => Object.assign(journal, { series: '../other/symbol=BTCUSDT' })],
  ['its series, the own folder', (journal) => Object.assign(journal, { series: '.cryptodl/symbol=BTCUSDT' })],
  ['a folder that is no series', (journal) => Object.assign(journal, { series: 'binance/um' })],
  [
    'a folder of no market',
    (journal) => Object.assign(journal, { series: 'binance/x/metrics/symbol=BTCUSDT' }),
  ],
  ['a folder of no venue', (journal) => Object.assign(journal, { series: 'mine/um/metrics/symbol=BTCUSDT' })],
  [
    'a folder too deep',
    (journal) => Object.assign(journal, { series: 'binance/um/metrics/a/symbol=BTCUSDT' }),
  ],
  ['a target', ({ publications: [first] }) => Object.assign(first ?? {}, { target: '../2024-01.parquet' })],
  ['a staged file', ({ publications: [first] }) => Object.assign(first ?? {}, { staged: '../x.partial' })],
  ['a file to be removed', (journal) => Object.assign(journal, { dead: ['../../2024-01-01.parquet'] })],
  ['the manifest', (journal) => Object.assign(journal, { dead: ['_manifest.jsonl'] })],
  ['a line', ({ lines: [line] }) => Object.assign(line ?? {}, { file: '../2024-01.parquet' })],
])('a journal is not applied when %s leads out of the folder of its series', async (_, edit) => {
  const paths = await interrupted();
  writeFileSync(join(paths.root, DEAD), 'day');
  changeJournal(paths, edit);
  expect(await finishCommits(paths, venue)).toHaveLength(1);
  expect(filesBelow(join(paths.root, 'binance'))).toEqual([DEAD.slice('binance/'.length)]);
});

interface Journal {
  readonly lake: object;
  readonly publications: object[];
  readonly lines: object[];
}

function changeJournal({ own }: LakePaths, edit: (journal: Journal) => unknown): void {
  const path = join(own, filesBelow(own, '.json')[0] ?? '');
  const journal = JSON.parse(readFileSync(path, 'utf8')) as Journal;
  edit(journal);
  writeFileSync(path, JSON.stringify(journal));
}
