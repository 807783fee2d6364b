/** The files that `npm run build` joins, and their code caches, as the entry of the program loads them. */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Script } from 'node:vm';
import { beforeEach, describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const folder = scratchFolder();

interface Loader {
  readonly createLoader: (
    bundle: string,
    onLoaded: (cachePath: string, script: Script, isCached: boolean) => void,
  ) => (name: string) => unknown;
}
const { createLoader } = createRequire(import.meta.url)('../../bin/load-bundle.js') as Loader;

/** Whether V8 took the cache of each file of a bundle. */
function cachedFiles(bundle: string): boolean[] {
  const found: boolean[] = [];
  const load = createLoader(bundle, (_, __, isCached) => {
    found.push(isCached);
  });
  load('rest.cjs');
  return found;
}

/** The installed program in a folder of its own, with the packages of the project. */
function install(): string {
  const installed = join(folder, 'installed');
  rmSync(installed, { recursive: true, force: true });
  mkdirSync(installed);
  for (const name of ['bin', 'config', 'package.json', 'dist'])
    cpSync(join(ROOT, name), join(installed, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(installed, 'node_modules'));
  return installed;
}

function run(
  installed: string,
  words: readonly string[],
  options: readonly string[] = [],
): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [...options, join(installed, 'bin/cryptodl.js'), ...words], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: folder },
  });
}

function caches(installed: string): string[] {
  const bundle = join(installed, 'dist/bundle');
  return readdirSync(bundle)
    .filter((name) => name.endsWith('.cache'))
    .map((name) => join(bundle, name));
}

describe('the code caches of the build', () => {
  let installed: string;
  let help: string;
  beforeEach(() => {
    installed = install();
    help = run(installed, ['--help']).stdout;
  });

  it('are used by this version of Node', () => {
    expect(cachedFiles(join(installed, 'dist/bundle'))).toEqual([true, true, true]);
  });

  it('are named after the build of Node that made them, because V8 takes those of another release and crashes', () => {
    const build = `${process.version}-${process.platform}-${process.arch}-${statSync(process.execPath).size}`;
    const names = caches(installed).map((path) => basename(path));
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) expect(name).toContain(`.cjs.${build}.cache`);
  });

  it.each([
    ['another release', `Object.defineProperty(process, 'version', { value: 'v20.18.1' });`],
    ['another machine', `Object.defineProperty(process, 'arch', { value: 'arm64' });`],
    [
      'another build',
      `const fs = require('node:fs'); const { statSync } = fs;
       fs.statSync = (path) => path === process.execPath ? { size: 1 } : statSync(path);`,
    ],
  ])('are not opened by %s of Node', (...[, change]) => {
    const script = join(folder, 'other-build.cjs');
    const opened = join(folder, 'opened.txt');
    writeFileSync(
      script,
      `{ ${change} }
       { const fs = require('node:fs'); const { readFileSync } = fs;
         fs.readFileSync = (path, ...options) => {
           if (String(path).endsWith('.cache')) fs.appendFileSync(${JSON.stringify(opened)}, path + '\\n');
           return readFileSync(path, ...options);
         }; }`,
    );
    writeFileSync(opened, '');
    expect(run(installed, ['--help'], ['--require', script])).toMatchObject({ status: 0, stdout: help });
    const paths = readFileSync(opened, 'utf8').trim().split('\n');
    expect(paths[0]).toContain('.cache');
    expect(paths.filter((path) => existsSync(path))).toEqual([]);
  });

  it.each<readonly [string, (path: string) => void]>([
    ['that are missing', (path) => rmSync(path)],
    ['that are empty', (path) => truncateSync(path)],
    ['that are cut', (path) => truncateSync(path, 1000)],
    ['with other bytes', (path) => writeFileSync(path, Buffer.alloc(5000, 7))],
    [
      'that cannot be read',
      (path) => {
        rmSync(path);
        // Unlike permissions, a folder in its place stops root too.
        mkdirSync(path);
      },
    ],
  ])('%s change nothing for users', (...[, damage]) => {
    for (const path of caches(installed)) damage(path);
    const { status, stdout, stderr } = run(installed, ['--help']);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: help, stderr: '' });
  });

  it('of a bundle with another length are not used', () => {
    const path = join(installed, 'dist/bundle/rest.cjs');
    writeFileSync(path, `${readFileSync(path, 'utf8')}\n;`);
    expect(cachedFiles(join(installed, 'dist/bundle'))).toContain(false);
    expect(run(installed, ['list', 'markets']).status).toBe(0);
  });

  it('are not written at run time', () => {
    for (const path of caches(installed)) rmSync(path);
    run(installed, ['list', 'markets']);
    expect(caches(installed)).toEqual([]);
  });
});

describe('the bundle', () => {
  it('loads no compiled file of the program beside it', () => {
    const installed = install();
    for (const name of readdirSync(join(installed, 'dist')))
      if (!name.endsWith('-page') && name !== 'bundle')
        rmSync(join(installed, 'dist', name), { recursive: true });
    expect(run(installed, ['--help'])).toMatchObject({ status: 0, stderr: '' });
    expect(run(installed, ['list', 'markets'])).toMatchObject({ status: 0, stderr: '4 markets\n' });
    expect(
      run(installed, ['vision', '--symbols', 'BTCUSDT', '--days', '1', '--print-options']),
    ).toMatchObject({ status: 0, stderr: '' });
  });

  it('names the licence of each package that it contains', () => {
    const licences = readFileSync(join(ROOT, 'dist/bundle/LICENSES.txt'), 'utf8');
    for (const name of 'commander undici p-queue pino cli-progress valibot yaml hyparquet'.split(' '))
      expect(licences).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\((MIT|ISC)\\)$`, 'm'));
  });

  it('prints the stack of a bug with the files that it was made from', () => {
    const script = join(folder, 'break.cjs');
    writeFileSync(
      script,
      `const { Writable } = require('node:stream');
      const { write } = process.stdout;
      Object.defineProperty(process.stdout, 'write', { value: () => { throw new TypeError('broken'); } });`,
    );
    // Not the folder in which the caches were made: V8 takes the names of files from a cache.
    const installed = install();
    const { status, stderr } = run(installed, ['list', 'markets'], ['--require', script]);
    expect(status).toBe(1);
    expect(stderr).toContain('broken');
    expect(stderr).toContain(`${installed}/dist/verbs/list/`);
    expect(stderr).toMatch(/dist\/verbs\/list\/[a-z-]+\.js:\d+:\d+/);
    expect(stderr).not.toContain('rest.cjs');
  });

  it('says which Node it needs', () => {
    const script = join(folder, 'old-node.cjs');
    for (const [release, status] of [
      ['18.20.8', 1],
      ['20.18.0', 1],
      ['20.18.1', 0],
      ['24.0.0', 0],
    ] as const) {
      writeFileSync(
        script,
        `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${release}' } });`,
      );
      const ended = run(ROOT, ['--version'], ['--require', script]);
      expect([release, ended.status]).toEqual([release, status]);
      if (status === 1)
        expect(ended.stderr).toBe(`cryptodl: needs Node 20.18.1 or newer, this is ${process.version}\n`);
    }
  });
});
