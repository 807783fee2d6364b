/**
 * npm run release: checks that the commit can be published. It tests and packs a clone of the commit, leaves the tarball in this
 * folder, and prints the two commands that publish it. It runs neither of them.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { linkTarget, relativeLinks } from './links.js';

/**
 * The answer of `npm pack --json`.
 * @typedef {object} Packed
 * @property {string} filename
 * @property {number} size of the tarball, in bytes
 * @property {readonly { path: string, mode: number }[]} files
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/;
/** The bundle with its source maps and code caches has most of them. */
const MAX_TARBALL_BYTES = 5_000_000;
/** The files that the tarball may have. Others (data, caches, sources, files of an editor) are a mistake. */
const ALLOWED = [
  /^(ARCHITECTURE|CHANGELOG|README)\.md$/,
  /^LICENSE$/,
  /^package\.json$/,
  /^bin\/([\w-]+\.js|package\.json)$/,
  /^config\/[\w.-]+\.(json|py|yaml)$/,
  /^config\/monitoring\/(alerts(\.test)?\.yml|dashboard\.json)$/,
  /^dist\/[\w/-]+(\.d\.ts|\.js|\.css|\.1)$/,
  /^dist\/bundle\/([\w-]+\.cjs(\.map|\.v[\d.]+-\w+-\w+-\d+\.cache)?|LICENSES\.txt)$/,
  /^docs\/[\w/.-]+\.(md|svg|png)$/,
];

/**
 * @param {string} path
 * @param {string} [folder]
 */
const read = (path, folder = ROOT) => readFileSync(join(folder, path), 'utf8');
/** @param {readonly string[]} args */
const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();

const manifest = JSON.parse(read('package.json'));
const version = String(manifest.version);

const problems = [...versionProblems(), ...changelogProblems(), ...treeProblems()];
if (problems.length === 0) problems.push(...testAndPack());
for (const problem of problems) console.error(`release: ${problem}`);
if (problems.length > 0) process.exitCode = 1;

/** @returns {string[]} */
function testAndPack() {
  const scratch = mkdtempSync(join(tmpdir(), 'cryptodl-release-'));
  try {
    const clone = join(scratch, 'clone');
    git('clone', '--quiet', ROOT, clone);
    // The build compiles without a check of types.
    for (const step of ['ci', 'run types', 'test']) {
      if (spawnSync('npm', step.split(' '), { cwd: clone, stdio: 'inherit' }).status !== 0)
        return [`npm ${step} failed in a clone of this commit`];
    }
    const packed = pack(clone, scratch);
    const found = [...contentProblems(packed), ...linkProblems(packed, clone)];
    if (found.length > 0) return found;
    copyFileSync(join(scratch, packed.filename), join(ROOT, packed.filename));
    console.log(`${packed.filename}: ${packed.files.length} files, ${packed.size} bytes, tested and packed in a clone.
To publish it:
git tag --annotate v${version} --message v${version} ${git('rev-parse', 'HEAD')}
npm publish ${packed.filename}${version.includes('-') ? ' --tag next' : ''}`);
    return [];
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** @returns {string[]} */
function versionProblems() {
  if (!VERSION.test(version)) return [`package.json: the version ${version} is not like 1.2.3 or 1.2.3-rc.1`];
  const lockfile = JSON.parse(read('package-lock.json'));
  const locked = [lockfile.version, lockfile.packages[''].version].find((one) => one !== version);
  return [
    ...(locked === undefined
      ? []
      : [`package-lock.json has version ${locked}, package.json ${version}: npm install`]),
    ...(git('tag', '--list', `v${version}`) === ''
      ? []
      : [`the tag v${version} exists: npm version patch --no-git-tag-version`]),
  ];
}

/** @returns {string[]} */
function changelogProblems() {
  const headings = [...read('CHANGELOG.md').matchAll(/^## (.*)$/gm)].map(([, heading = '']) => heading);
  const newest = headings.find((heading) => heading !== 'Unreleased') ?? '';
  const [, named, day = ''] = /^(\S+) - (\d{4}-\d{2}-\d{2})$/.exec(newest) ?? [];
  // Date takes 2026-02-30 as a day of March.
  const isDay = !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
  return [
    ...(headings.includes('Unreleased')
      ? ['CHANGELOG.md has a section Unreleased: give it the version and the date']
      : []),
    ...(named === version && isDay
      ? []
      : [`CHANGELOG.md: the newest section is not "## ${version} - YYYY-MM-DD"`]),
  ];
}

/** @returns {string[]} */
function treeProblems() {
  const changes = git('status', '--porcelain').split('\n').filter(Boolean);
  return changes.length === 0 ? [] : [`the working tree has changes: ${changes.join(', ')}`];
}

/**
 * @param {string} clone
 * @param {string} into
 * @returns {Packed}
 */
function pack(clone, into) {
  const args = ['pack', '--json', '--pack-destination', into];
  const output = execFileSync('npm', args, { cwd: clone, encoding: 'utf8' });
  // The scripts of the package may print text before the JSON.
  return JSON.parse(output.slice(output.indexOf('[')))[0];
}

/**
 * @param {Packed} packed
 * @returns {string[]}
 */
function contentProblems({ files, size }) {
  const foreign = files.filter(({ path }) => !ALLOWED.some((allowed) => allowed.test(path)));
  const { default: library, types } = manifest.exports?.['.'] ?? {};
  const entries = [...Object.values(manifest.bin ?? {}), library, types, manifest.man]
    .filter((path) => path !== undefined)
    .map((path) => path.replace(/^\.\//, ''));
  const missing = entries.filter((entry) => !files.some(({ path }) => path === entry));
  const programs = new Set(Object.values(manifest.bin ?? {}));
  const unrunnable = files.filter(({ path, mode }) => programs.has(path) && (mode & 0o111) !== 0o111);
  return [
    ...foreign.map(({ path }) => `the tarball has ${path}, which no rule of scripts/release.js allows`),
    ...missing.map((path) => `the tarball lacks ${path}, which package.json names`),
    ...unrunnable.map(({ path }) => `${path} is not executable: chmod +x`),
    ...(size > MAX_TARBALL_BYTES ? [`the tarball has ${size} bytes, more than ${MAX_TARBALL_BYTES}`] : []),
  ];
}

/**
 * Relative links of documents must lead to files of the tarball.
 * @param {Packed} packed
 * @param {string} clone
 * @returns {string[]}
 */
function linkProblems({ files }, clone) {
  const paths = new Set(files.map(({ path }) => path));
  /** @param {string} path */
  const isThere = (path) => paths.has(path) || [...paths].some((one) => one.startsWith(`${path}/`));
  return [...paths]
    .filter((path) => path.endsWith('.md'))
    .flatMap((file) =>
      relativeLinks(read(file, clone))
        .filter((target) => !isThere(linkTarget(file, target).path))
        .map((target) => `${file} links to ${target}, which is not in the tarball`),
    );
}
