import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lakePaths } from '../../../src/lake/layout.js';
import { quarantine } from '../../../src/lake/quarantine.js';
import { scratchFolder } from '../../helpers/folders.js';
import { filesBelow } from '../../helpers/lake.js';

const KEY = 'data/spot/daily/klines/BTCUSDT/1m/BTCUSDT-1m-2024-01-15.zip';

it('refused bytes are kept below their key, with the cause on one line', async () => {
  const paths = lakePaths(scratchFolder());
  const body = { kind: 'memory', bytes: Buffer.from('broken') } as const;
  const path = await quarantine(paths, KEY, body, 'checksum-mismatch:\nexpected a,\r\n  got b');
  expect(path).toBe(join(paths.root, '_quarantine', KEY));
  expect(readFileSync(path, 'utf8')).toBe('broken');
  expect(readFileSync(`${path}.cause`, 'utf8')).toBe('checksum-mismatch: expected a, got b\n');
});

it('a spooled body is moved there', async () => {
  const root = scratchFolder();
  const spooled = join(root, 'spool');
  writeFileSync(spooled, 'large');
  const path = await quarantine(lakePaths(root), KEY, { kind: 'file', path: spooled, size: 5 }, 'why');
  expect(readFileSync(path, 'utf8')).toBe('large');
  expect(existsSync(spooled)).toBe(false);
});

it('a later refusal of the same key replaces the first', async () => {
  const paths = lakePaths(scratchFolder());
  await quarantine(paths, KEY, { kind: 'memory', bytes: Buffer.from('first, longer') }, 'one');
  const path = await quarantine(paths, KEY, { kind: 'memory', bytes: Buffer.from('second') }, 'two');
  expect(readFileSync(path, 'utf8')).toBe('second');
  expect(readFileSync(`${path}.cause`, 'utf8')).toBe('two\n');
  expect(filesBelow(paths.quarantine)).toEqual([KEY, `${KEY}.cause`]);
});

it('a key that climbs stays in the quarantine', async () => {
  const paths = lakePaths(scratchFolder());
  const path = await quarantine(paths, '../../x.zip', { kind: 'memory', bytes: Buffer.from('x') }, 'why');
  expect(path.startsWith(join(paths.quarantine, '%2E'))).toBe(true);
  expect(existsSync(path)).toBe(true);
});
