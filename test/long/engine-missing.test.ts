/** DuckDB's binary is an optional package of each platform, which an installation may lack. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-11-18', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT --days 3',
});

const HERE = `${process.platform} ${process.arch}`;

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
  const told = `the DuckDB binary for ${HERE} is not installed\n`;
  expect(result.stderr.includes(told)).toBe(code === 1);
  expect(result.stderr.includes('npm install --include=optional')).toBe(code === 1);
  expect(result.stderr).not.toContain('unexpected');
  // It is said before anything is fetched.
  expect(scene.archive.objectRequests().length > 0).toBe(code === 0);
});

/** As with a C library that is older than the binary needs. */
const OLD_LIBRARY = `
  import Module from 'node:module';
  Module._extensions['.node'] = (module, path) => {
    const text = "/lib/libm.so.6: version 'GLIBC_2.99' not found (required by " + path + ")";
    throw Object.assign(new Error(text), { code: 'ERR_DLOPEN_FAILED' });
  };
`;

describe.each([
  [
    'is not installed',
    WITHOUT_BINARY,
    `the DuckDB binary for ${HERE} is not installed`,
    'npm install --include=optional',
  ],
  [
    'cannot be loaded',
    OLD_LIBRARY,
    `the DuckDB binary for ${HERE} cannot be loaded: /lib/libm.so.6: version`,
    'install cryptodl',
  ],
])('when the binary of DuckDB %s', (_, preload, message, hint) => {
  it.each(['vision', 'sql', 'doctor'])('%s ends with 1 and says what to do', async (verb) => {
    const script = join(scene.scratch, 'preload.mjs');
    writeFileSync(script, preload);
    const env = { NODE_OPTIONS: `--import ${script}` };
    const { code, stdout, stderr } = await (verb === 'vision'
      ? scene.vision('--days 3', { env })
      : cryptodl(
          verb === 'sql' ? ['sql', 'SELECT 1', '--out', scene.scratch] : ['doctor', '--out', scene.scratch],
          { env, cwd: scene.scratch },
        ));
    const text = stdout + stderr;
    expect(code).toBe(1);
    expect(text).toContain(message);
    expect(text).toContain(hint);
    expect(text).not.toContain('unexpected');
    expect(text).not.toMatch(/^ +at /m);
  });
});
