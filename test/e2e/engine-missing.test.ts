/** DuckDB's binary is an optional package of each platform, which an installation may lack. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-11-18', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT --days 3',
});

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
  const script = join(scene.scratch, 'without-binary.mjs');
  writeFileSync(script, WITHOUT_BINARY);
  const env = { NODE_OPTIONS: `--import ${script}` };
  const result = await scene.vision(`--format ${format}`, { env });
  expect(result.code).toBe(code);
  const told = `the DuckDB binary for ${process.platform} ${process.arch} is not installed\n`;
  expect(result.stderr.includes(told)).toBe(code === 1);
  expect(result.stderr.includes('npm install --include=optional')).toBe(code === 1);
  expect(result.stderr).not.toContain('unexpected');
  // It is said before anything is fetched.
  expect(scene.archive.objectRequests().length > 0).toBe(code === 0);
});
