/** DuckDB's binary is an optional package of each platform, which an installation may lack. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const scratch = scratchFolder();
let archive: TestArchive;

beforeAll(async () => {
  makeArchive(join(scratch, 'archive'), {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: ['BTCUSDT'],
    from: '2026-11-18',
    to: '2026-11-20',
    cadence: 'daily',
  });
  archive = await startArchive(join(scratch, 'archive'));
});
afterAll(() => archive.close());

/** As if the package of the platform were not there. */
const WITHOUT_BINARY = `
  import Module from 'node:module';
  const usual = Module._resolveFilename;
  Module._resolveFilename = (name, ...rest) => {
    if (/^@duckdb\\/node-bindings-/.test(name))
      throw Object.assign(new Error("Cannot find module '" + name + "'"), { code: 'MODULE_NOT_FOUND' });
    return usual(name, ...rest);
  };
`;

it.each([
  ['parquet', 1],
  ['zip', 0],
])('a run without the binary of DuckDB, as %s, ends with %i', async (format, code) => {
  const script = join(scratch, 'without-binary.mjs');
  writeFileSync(script, WITHOUT_BINARY);
  const what = ['--interval', '1h', '--symbols', 'BTCUSDT', '--days', '3', '--now', '2026-11-21T12:00:00Z'];
  const where = ['--archive-url', archive.url, '--out', join(scratch, format), '--format', format];
  archive.requests.length = 0;
  const result = await cryptodl(['vision', ...what, ...where, ...FAST], {
    env: { NODE_OPTIONS: `--import ${script}` },
  });
  expect(result.code).toBe(code);
  const told = `the DuckDB binary for ${process.platform} ${process.arch} is not installed\n`;
  expect(result.stderr.includes(told)).toBe(code === 1);
  expect(result.stderr.includes('npm install --include=optional')).toBe(code === 1);
  expect(result.stderr).not.toContain('unexpected');
  // It is said before anything is fetched.
  expect(archive.objectRequests().length > 0).toBe(code === 0);
});
