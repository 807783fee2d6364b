/** The move of a lake of an earlier version: names that it knows, and files that exist at both places. */
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { lakePaths } from '../../src/lake/layout.js';
import { hasManifest, manifestPlace } from '../../src/lake/manifest-place.js';
import { upgradeLake } from '../../src/lake/upgrade.js';
import { loadBinance } from '../../src/source/binance/binance.js';
import { scratchFolder } from '../helpers/folders.js';

const venue = loadBinance();
const scratch = scratchFolder();
const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const REPORT = 'vision-20261121T070000Z.jsonl';

/** A lake with these files, by path relative to its root. */
function lakeWith(name: string, files: Readonly<Record<string, string>>): string {
  const root = join(scratch, name);
  mkdirSync(join(root, '.cryptodl'), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}
const move = (root: string): Promise<string | undefined> => upgradeLake(lakePaths(root), venue);
const textAt = (root: string, path: string): string => readFileSync(join(root, path), 'utf8');

it('moves the reports of each verb, also numbered ones, and no other file', async () => {
  const stamp = '20261121T070000Z';
  const ours = ['metrics', 'repair', 'retry', 'run', 'vision'].flatMap((verb) => [
    `${verb}-${stamp}-2.jsonl`,
    `${verb}-${stamp}.jsonl`,
  ]);
  const others = ['mine.jsonl', `audit-${stamp}.jsonl`, `run-${stamp}.txt`, `x-run-${stamp}.jsonl`];
  const names = [...ours, ...others];
  const root = lakeWith('names', Object.fromEntries(names.map((name) => [`failures/${name}`, name])));
  expect(await move(root)).toContain(`${ours.length} failure reports`);
  expect(readdirSync(join(root, '_failures')).sort()).toEqual([...ours].sort());
  expect(readdirSync(join(root, 'failures')).sort()).toEqual([...others].sort());
});

it('removes a report whose copy is at the new place, and keeps one with other bytes', async () => {
  const same = lakeWith('same', { [`failures/${REPORT}`]: 'a', [`_failures/${REPORT}`]: 'a' });
  await move(same);
  expect([existsSync(join(same, 'failures')), textAt(same, `_failures/${REPORT}`)]).toEqual([false, 'a']);
  const other = lakeWith('other', { [`failures/${REPORT}`]: 'a', [`_failures/${REPORT}`]: 'b' });
  await move(other);
  expect([textAt(other, `failures/${REPORT}`), textAt(other, `_failures/${REPORT}`)]).toEqual(['a', 'b']);
});

it('keeps a file that is a hard link of the one at the new place', async () => {
  const root = lakeWith('linked', { [`failures/${REPORT}`]: 'a' });
  mkdirSync(join(root, '_failures'));
  linkSync(join(root, 'failures', REPORT), join(root, '_failures', REPORT));
  await move(root);
  expect([textAt(root, `failures/${REPORT}`), textAt(root, `_failures/${REPORT}`)]).toEqual(['a', 'a']);
});

it('finds a manifest at its present place, else at that of an earlier version', async () => {
  const root = lakeWith('manifests', { [`${SERIES}/_manifest.jsonl`]: '' });
  const folder = join(root, SERIES);
  expect(await hasManifest(folder)).toBe(true);
  await move(root);
  expect(existsSync(manifestPlace(folder).path)).toBe(true);
  expect(await hasManifest(folder)).toBe(true);
  rmSync(manifestPlace(folder).path);
  expect(await hasManifest(folder)).toBe(false);
});
