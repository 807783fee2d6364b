/** Where a writer meets a link that was not there when its run was planned. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cachedFolderCheck, firstSymlink } from '../../../src/files/path-checks.js';
import { lakePaths } from '../../../src/lake/layout.js';
import { Manifests } from '../../../src/lake/manifests.js';
import { createSerializer } from '../../../src/model/in-order.js';
import { createEngine } from '../../../src/convert/duckdb.js';
import { quarantine } from '../../../src/lake/quarantine.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { systemClock } from '../../../src/model/clock.js';
import { commit } from '../../../src/lake/write/commit.js';
import { readExistingFile } from '../../../src/lake/write/existing-file.js';
import { objectLine, SETTINGS } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';

const ARCHIVE = loadBinance().archive;

const scratch = scratchFolder();
const CONTEXT = {
  exchange: loadBinance(),
  manifests: new Manifests(ARCHIVE),
  tempFolder: scratch,
  engine: createEngine({ threads: 1, memoryBytes: 100e6, tempFolder: scratch }),
  serialize: createSerializer(),
  clock: systemClock,
  timed: <T>(_: unknown, __: unknown, act: () => Promise<T>) => act(),
  tool: 'test',
  acceptsShorter: false,
  countRows: () => Promise.resolve(0),
};
const KEY = 'data/spot/daily/klines/BTCUSDT/1m/BTCUSDT-1m-2024-01-15.zip';
const BODY = { kind: 'memory', bytes: Buffer.from('evidence') } as const;

/** A lake with a link at this place, and what the link leads to. */
async function linked(place: string): Promise<{ root: string; target: string }> {
  const folder = await mkdtemp(join(scratch, 'inside-'));
  const [root, target] = [join(folder, 'lake'), join(folder, 'target')];
  mkdirSync(dirname(join(root, place)), { recursive: true });
  symlinkSync(target, join(root, place));
  return { root, target };
}

describe('a link', () => {
  it('in the way of a partition stops its writer', async () => {
    const { root } = await linked('binance/um');
    const series = { market: 'um', dataset: 'metrics', symbol: 'BTCUSDT' } as const;
    const plan = { series, label: '2024-01', settings: SETTINGS, tasks: [] };
    const reading = readExistingFile({ ...CONTEXT, paths: lakePaths(root) }, plan);
    await expect(reading).rejects.toThrow(/binance\/um is a symbolic link/);
  });

  it('that appears after the rows were read stops the commit', async () => {
    const { root, target } = await linked('binance/spot');
    mkdirSync(target);
    const series = { market: 'um', dataset: 'metrics', symbol: 'BTCUSDT' } as const;
    const plan = { series, label: '2024-01', settings: SETTINGS, tasks: [] };
    const context = { ...CONTEXT, paths: lakePaths(root), lock: { confirm: takesPlace } };
    function takesPlace(): Promise<void> {
      symlinkSync(target, join(root, 'binance/um'));
      return Promise.resolve();
    }
    const existing = await readExistingFile(context, plan);
    const commitment = { existing, made: [], received: [], dead: [], lost: [objectLine('2024-01-01')] };
    await expect(commit(context, plan, commitment)).rejects.toThrow(/binance\/um is a symbolic link/);
    expect(readdirSync(target)).toEqual([]);
  });

  it('in the way of evidence keeps it from being written elsewhere', async () => {
    const { root, target } = await linked(`_quarantine/${dirname(KEY)}`);
    mkdirSync(target);
    await expect(quarantine(lakePaths(root), KEY, BODY, 'why')).rejects.toThrow('is a symbolic link');
    expect(existsSync(join(target, 'BTCUSDT-1m-2024-01-15.zip'))).toBe(false);
  });

  it.each(['', '.cause'])('in place of evidence%s is replaced', async (ending) => {
    const { root, target } = await linked(`_quarantine/${KEY}${ending}`);
    writeFileSync(target, 'precious');
    const path = await quarantine(lakePaths(root), KEY, BODY, 'why');
    expect(readFileSync(target, 'utf8')).toBe('precious');
    expect([readFileSync(path, 'utf8'), readFileSync(`${path}.cause`, 'utf8')]).toEqual([
      'evidence',
      'why\n',
    ]);
  });

  it('is told by the first place on the way that is one', async () => {
    const { root } = await linked('a/b');
    const found = ['a/b/c/d', 'a/b', 'a', 'a/c', 'x/y'].map((place) => firstSymlink(root, place));
    expect(found).toEqual(['a/b', 'a/b', undefined, undefined, undefined]);
  });

  it('is looked for once per folder within a commit, and again in the next one', async () => {
    const { root } = await linked('a/b');
    const folder = cachedFolderCheck(root);
    await expect(folder('a/c')).resolves.toBe(join(root, 'a/c'));
    symlinkSync(scratch, join(root, 'a/c'));
    await expect(folder('a/c')).resolves.toBe(join(root, 'a/c'));
    await expect(cachedFolderCheck(root)('a/c')).rejects.toThrow('a/c is a symbolic link');
    await expect(lakePaths(root).folder('a/c')).rejects.toThrow('a/c is a symbolic link');
  });
});
