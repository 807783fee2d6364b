/** npm run release in scratch repositories: a package without dependencies for each refusal, and a copy of this one. */
import { execFileSync, spawnSync } from 'node:child_process';
import type { SpawnSyncReturns } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));

const MANIFEST = {
  name: 'small',
  version: '1.2.3',
  type: 'module',
  bin: { small: 'bin/small.js' },
  files: ['bin', 'docs', 'README.md', 'CHANGELOG.md'],
  scripts: {
    types: 'node --check bin/small.js',
    test: 'node bin/small.js',
    release: 'node scripts/release.js',
  },
};
const LOCKFILE = {
  name: 'small',
  version: '1.2.3',
  lockfileVersion: 3,
  requires: true,
  packages: { '': { name: 'small', version: '1.2.3', bin: { small: 'bin/small.js' } } },
};
const CHANGELOG = '# Changelog\n\n## 1.2.3 - 2026-11-23\n\n- First.\n\n## 1.2.2 - 2026-11-01\n\n- Before.\n';

const text = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

/** Files of a package that can be released. */
const SOUND: Readonly<Record<string, string>> = {
  '.gitignore': '/*.tgz\n',
  'package.json': text(MANIFEST),
  'package-lock.json': text(LOCKFILE),
  'CHANGELOG.md': CHANGELOG,
  'README.md': '# Small\n\n[Guide](docs/guide.md#start), [site](https://example.com), `[code](nowhere.md)`\n',
  'docs/guide.md': '# Start\n\n[Back](../README.md)\n',
  'bin/small.js': '#!/usr/bin/env node\nconsole.log("tested");\n',
};

describe('npm run release', () => {
  const scratch = scratchFolder();

  function git(folder: string, ...args: readonly string[]): string {
    const who = ['-c', 'user.name=A Developer', '-c', 'user.email=developer@example.com'];
    return execFileSync('git', [...who, ...args], { cwd: folder, encoding: 'utf8' }).trim();
  }

  /** A repository with these files besides the release script, in one commit. */
  function repository(files: Readonly<Record<string, string>>): string {
    const folder = mkdtempSync(join(scratch, 'repository-'));
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content);
    }
    mkdirSync(join(folder, 'scripts'), { recursive: true });
    for (const script of ['release.js', 'links.js'])
      copyFileSync(join(REPOSITORY, 'scripts', script), join(folder, 'scripts', script));
    if ('bin/small.js' in files) chmodSync(join(folder, 'bin/small.js'), 0o755);
    commit(folder);
    return folder;
  }

  function commit(folder: string): void {
    git(folder, 'init', '--quiet', '--initial-branch=main');
    git(folder, 'add', '--all');
    git(folder, 'commit', '--quiet', '--message', 'Release');
  }

  function release(folder: string): SpawnSyncReturns<string> {
    return spawnSync('npm', ['run', '--silent', 'release'], { cwd: folder, encoding: 'utf8' });
  }

  it('tests and packs a clone, and prints the two commands without running them', () => {
    const folder = repository(SOUND);
    // Ignored files are in no commit and must not get into the tarball.
    writeFileSync(join(folder, 'old.tgz'), 'old');
    const { status, stdout, stderr } = release(folder);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^tested$/m);
    const head = git(folder, 'rev-parse', 'HEAD');
    expect(stdout.trimEnd().split('\n').slice(-2)).toEqual([
      `git tag --annotate v1.2.3 --message v1.2.3 ${head}`,
      'npm publish small-1.2.3.tgz',
    ]);
    expect(git(folder, 'tag')).toBe('');
    expect(git(folder, 'status', '--porcelain')).toBe('');
    const packed = execFileSync('tar', ['-tzf', join(folder, 'small-1.2.3.tgz')], { encoding: 'utf8' });
    expect(packed.trim().split('\n').sort()).toEqual(
      ['CHANGELOG.md', 'README.md', 'bin/small.js', 'docs/guide.md', 'package.json'].map(
        (path) => `package/${path}`,
      ),
    );
  });

  it('publishes a pre-release under the tag next', () => {
    const change = (content: string | undefined): string => (content ?? '').replaceAll('1.2.3', '1.2.3-rc.1');
    const folder = repository(
      Object.fromEntries(Object.entries(SOUND).map(([path, content]) => [path, change(content)])),
    );
    expect(release(folder).stdout).toContain('npm publish small-1.2.3-rc.1.tgz --tag next');
  });

  const refused: [string, Readonly<Record<string, string>>, string][] = [
    [
      'a version that is no semantic version',
      { 'package.json': text({ ...MANIFEST, version: '1.2' }) },
      'package.json: the version 1.2 is not like 1.2.3',
    ],
    [
      'a lockfile of another version',
      { 'package-lock.json': text({ ...LOCKFILE, version: '1.2.2' }) },
      'package-lock.json has version 1.2.2, package.json 1.2.3',
    ],
    [
      'a changelog with an unreleased section',
      { 'CHANGELOG.md': CHANGELOG.replace('## 1.2.3', '## Unreleased\n\n- Next.\n\n## 1.2.3') },
      'CHANGELOG.md has a section Unreleased',
    ],
    [
      'a dependency that the lockfile lacks',
      { 'package.json': text({ ...MANIFEST, dependencies: { other: 'file:other' } }) },
      'npm ci failed in a clone of this commit',
    ],
    [
      'a type error',
      { 'bin/small.js': '#!/usr/bin/env node\n1 = 2;\n' },
      'npm run types failed in a clone of this commit',
    ],
    [
      'a failing test',
      { 'bin/small.js': '#!/usr/bin/env node\nprocess.exitCode = 1;\n' },
      'npm test failed in a clone of this commit',
    ],
    ['data in the tarball', { 'docs/BTCUSDT.parquet': 'PAR1' }, 'the tarball has docs/BTCUSDT.parquet'],
    [
      'a library that the tarball lacks',
      { 'package.json': text({ ...MANIFEST, exports: { '.': { default: './dist/library.js' } } }) },
      'the tarball lacks dist/library.js, which package.json names',
    ],
    [
      'a link to a file that the tarball lacks',
      { 'docs/guide.md': '[Notes](../scripts/release.js)\n' },
      'docs/guide.md links to ../scripts/release.js, which is not in the tarball',
    ],
  ];

  it.each(refused)('refuses %s', (_, changed, message) => {
    const folder = repository({ ...SOUND, ...changed });
    const { status, stderr } = release(folder);
    expect([status, stderr]).toEqual([1, expect.stringContaining(`release: ${message}`)]);
    expect(filesBelow(folder, '.tgz')).toEqual([]);
  });

  it('refuses a program without the right to run, a tag that exists and a changed tree', () => {
    const folder = repository(SOUND);
    chmodSync(join(folder, 'bin/small.js'), 0o644);
    commit(folder);
    expect(release(folder).stderr).toContain('bin/small.js is not executable');
    git(folder, 'tag', 'v1.2.3');
    expect(release(folder).stderr).toContain('the tag v1.2.3 exists');
    writeFileSync(join(folder, 'notes.txt'), 'notes');
    expect(release(folder).stderr).toContain('the working tree has changes: ?? notes.txt');
  });
});
