/** The notice of a lake appears complete or not at all. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { noticePath, writeNotice } from '../../src/lake/notice.js';
import { scratchFolder } from '../helpers/folders.js';

const scratch = scratchFolder();
const LINES = ['# Terms', 'one', ''];

function newLake(): { root: string; staging: string } {
  const root = mkdtempSync(join(scratch, 'lake-'));
  const staging = join(root, 'tmp');
  mkdirSync(staging);
  return { root, staging };
}

it('is staged before it appears, and leaves nothing staged', async () => {
  const { root, staging } = newLake();
  expect(await writeNotice({ root, staging }, LINES)).toBe(true);
  expect(readFileSync(noticePath({ root }), 'utf8')).toBe('# Terms\none\n');
  expect(readdirSync(staging)).toEqual([]);
  expect(await writeNotice({ root, staging }, ['other'])).toBe(false);
  expect(readFileSync(noticePath({ root }), 'utf8')).toBe('# Terms\none\n');
});

it('does not appear if it cannot be staged', async () => {
  const { root } = newLake();
  await expect(writeNotice({ root, staging: join(root, 'none') }, LINES)).rejects.toThrow('ENOENT');
  expect(readdirSync(root)).toEqual(['tmp']);
});

it('that cannot appear leaves nothing staged', async () => {
  const { staging } = newLake();
  const root = join(staging, '..', 'file');
  writeFileSync(root, '');
  await expect(writeNotice({ root, staging }, LINES)).rejects.toThrow('EEXIST');
  expect(readdirSync(staging)).toEqual([]);
});
