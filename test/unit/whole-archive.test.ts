import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { wholeArchive } from '../../bench/whole-archive.js';

/** Prettier pads the cells of tables. */
const cells = (text: string): string =>
  text
    .replaceAll(/ *\| */g, '|')
    .replaceAll(/^\|(?:-+\|)+$/gm, '')
    .replaceAll(/\n+/g, '\n');

it('docs/scale.md has the tables that bench/whole-archive.js computes', () => {
  const document = readFileSync(new URL('../../docs/scale.md', import.meta.url), 'utf8');
  for (const table of wholeArchive().split('\n\n')) expect(cells(document)).toContain(cells(table));
});
