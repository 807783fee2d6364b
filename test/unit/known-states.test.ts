import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { KnownStates } from '../../src/lake/catalogue/known-states.js';
import { scratchFolder } from '../helpers/folders.js';

const root = scratchFolder();
const folder = join(root, '.cryptodl');

/** Writes a file and begins a reading at once: whether its states are kept, and the time from the write to the reading. */
async function keep(path: string): Promise<{ readonly isKept: boolean; readonly betweenMs: number }> {
  writeFileSync(path, '');
  const states = await KnownStates.open(root);
  await states?.begin();
  const betweenMs = statSync(join(folder, 'states.json.partial')).mtimeMs - statSync(path).ctimeMs;
  await states?.add('a series', 'terms', { paths: [path], states: [] });
  await states?.save();
  const again = await KnownStates.open(root);
  return { isKept: again?.of('a series', 'terms') !== undefined, betweenMs };
}

it('keeps no states of a file that was changed less than a tenth of a second before the reading', async () => {
  mkdirSync(folder);
  let tried = await keep(join(root, 'manifest'));
  while (tried.betweenMs > 90) tried = await keep(join(root, 'manifest'));
  expect(tried.isKept).toBe(false);
});
