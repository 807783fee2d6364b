import { closeSync, ftruncateSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { archivedColumns } from '../../src/venue/venue.js';
import { firstWrongLine } from '../../src/write/check-rows.js';
import { rowLines } from '../../src/write/csv-input.js';
import { received, specOf } from '../helpers/conversion.js';
import { scratchFolder } from '../helpers/folders.js';

const folder = scratchFolder();

it('a huge file without any line end is a wrong first line, and never one text in memory', async () => {
  const path = join(folder, 'zeros.csv');
  const file = openSync(path, 'w');
  // Longer than a string can be; without blocks on disk.
  ftruncateSync(file, 2 ** 30);
  closeSync(file);
  const { size } = statSync(path);
  const object = { ...received('2024-01-15', ''), csv: { kind: 'file' as const, path, size } };
  const checked = { name: object.name, symbol: 'BTCUSDT', headerLines: 0 };
  const columns = archivedColumns(specOf('um', 'fundingRate'));
  const wrong = await firstWrongLine(columns, checked, rowLines(object, 0));
  expect(wrong?.code).toBe('row-malformed');
  expect(wrong?.message).toMatch(/^2024-01-15\.csv line 1: /);
});
