/** `npm run release` in small repositories: what it packs, and each problem that it names. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';

const SCRIPTS = fileURLToPath(new URL('../../scripts/', import.meta.url));
const scratch = scratchFolder();
const VERSION = '1.2.3';
const PACKAGE = {
  name: 'small',
  version: VERSION,
  type: 'module',
  bin: { small: 'bin/small.js' },
  files: ['bin', 'docs', 'CHANGELOG.md'],
  scripts: { types: 'node bin/small.js', test: 'node bin/small.js' },
};
const LOCKFILE = {
  name: 'small',
  version: VERSION,
  lockfileVersion: 3,
  packages: { '': { version: VERSION } },
};
const FILES = {
  'package.json': JSON.stringify(PACKAGE),
  'package-lock.json': JSON.stringify(LOCKFILE),
  'CHANGELOG.md': `# Changelog\n\n## ${VERSION} - 2026-11-26\n`,
  'README.md': 'See [the notes](docs/notes.md).\n',
  'docs/notes.md': '# Notes\n',
  'bin/small.js': '#!/usr/bin/env node\n',
  '.gitignore': 'node_modules\n*.tgz\n',
};

/** A repository with these files, one commit, and the script. */
function repository(changes: Readonly<Record<string, string>> = {}): string {
  const root = mkdtempSync(join(scratch, 'repository-'));
  for (const name of ['release.js', 'links.js']) cpSync(join(SCRIPTS, name), join(root, 'scripts', name));
  for (const [path, text] of Object.entries({ ...FILES, ...changes })) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text, { mode: 0o755 });
  }
  git(root, 'init', '--quiet');
  git(root, 'add', '.');
  git(root, '-c', 'user.name=test', '-c', 'user.email=test@test', 'commit', '--quiet', '--message', 'all');
  return root;
}

function git(root: string, ...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
}

function release(root: string): { status: number | null; stdout: string; problems: string[] } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/release.js'], {
    cwd: root,
    encoding: 'utf8',
  });
  const problems = stderr.split('\n').filter((line) => line.startsWith('release: '));
  return { status, stdout, problems: problems.map((line) => line.slice('release: '.length)) };
}

it('a sound commit is tested and packed in a clone, and the two commands that publish it are printed', () => {
  const root = repository();
  const { status, stdout, problems } = release(root);
  expect([status, problems]).toEqual([0, []]);
  expect(stdout).toContain(
    `git tag --annotate v1.2.3 --message v1.2.3 ${git(root, 'rev-parse', 'HEAD')}\nnpm publish small-1.2.3.tgz\n`,
  );
  expect(existsSync(join(root, 'small-1.2.3.tgz'))).toBe(true);
  expect(git(root, 'tag')).toBe('');
});

it('a wrong version, changelog and working tree are named before anything is packed', () => {
  const root = repository({
    'package-lock.json': JSON.stringify({ ...LOCKFILE, version: '1.2.2' }),
    'CHANGELOG.md': '## Unreleased\n\n## 1.2.3 - 2026-02-30\n',
  });
  git(root, 'tag', 'v1.2.3');
  writeFileSync(join(root, 'docs/new.md'), '');
  const { status, stdout, problems } = release(root);
  expect([status, stdout, problems]).toEqual([
    1,
    '',
    [
      'package-lock.json has version 1.2.2, package.json 1.2.3: npm install',
      'the tag v1.2.3 exists: npm version patch --no-git-tag-version',
      'CHANGELOG.md has a section Unreleased: give it the version and the date',
      'CHANGELOG.md: the newest section is not "## 1.2.3 - YYYY-MM-DD"',
      'the working tree has changes: ?? docs/new.md',
    ],
  ]);
});

it('files, entries and links of the tarball that are wrong are named, and no tarball is left', () => {
  const root = repository({
    'package.json': JSON.stringify({ ...PACKAGE, man: 'dist/small.1', files: [...PACKAGE.files, 'data'] }),
    'data/keys.txt': 'a mistake',
    'README.md': 'See [the notes](docs/gone.md).\n',
  });
  const { status, problems } = release(root);
  expect([status, problems]).toEqual([
    1,
    [
      'the tarball has data/keys.txt, which no rule of scripts/release.js allows',
      'the tarball lacks dist/small.1, which package.json names',
      'README.md links to docs/gone.md, which is not in the tarball',
    ],
  ]);
  expect(existsSync(join(root, 'small-1.2.3.tgz'))).toBe(false);
});

it('tests that fail in the clone end the release', () => {
  const root = repository({ 'bin/small.js': 'process.exitCode = 1;\n' });
  const { status, problems } = release(root);
  expect([status, problems]).toEqual([1, ['npm run types failed in a clone of this commit']]);
});
