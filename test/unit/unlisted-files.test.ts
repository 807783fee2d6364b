import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { klinesLine } from '../../scripts/synthetic-lake.js';
import { UnlistedFiles } from '../../src/download/unlisted-files.js';
import { emptyManifest } from '../../src/lake/manifest.js';
import type { ObjectLine } from '../../src/lake/manifest-line.js';
import { scratchFolder } from '../helpers/folders.js';

const folder = scratchFolder();

it('only partition files that no line of any format names are told', async () => {
  const series = join(folder, 'series');
  mkdirSync(series);
  const line = klinesLine('BTCUSDT', '2026-11-20') as ObjectLine;
  const manifest = emptyManifest();
  manifest.parquet.add(line);
  for (const name of [line.file, 'README.md', 'notes.parquet', '.2026-11.parquet'])
    writeFileSync(join(series, name), '');
  const unlisted = new UnlistedFiles(folder);
  await unlisted.look(series, manifest);
  expect(unlisted.text()).toBeUndefined();
  for (const name of ['2020-01.parquet', '2020-02.csv']) writeFileSync(join(series, name), '');
  await unlisted.look(series, manifest);
  expect(unlisted.text()).toContain('no manifest line names series/2020-0');
  expect(unlisted.text()).toContain(' and 1 more file: ');
});
