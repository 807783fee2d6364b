/** The contenders and their commands. Each contender runs in an empty folder of its own and writes into it. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @import { Measured } from './measure.js' */

/**
 * @typedef {object} Contender
 * @property {string} id
 * @property {string} name
 * @property {readonly string[]} command
 * @property {string} shown the command as a person would type it
 * @property {'parquet' | 'zip' | 'nothing'} makes
 * @property {readonly string[]} missing packages whose programs are not installed
 * @property {boolean} isOurs
 * @property {boolean} [keepsOut] what lies in the folder from before is left there
 * @property {(measured: Measured) => number | undefined} requests where the server does not count them
 */

/**
 * @typedef {object} Place
 * @property {string} url of the objects
 * @property {string} listingUrl
 * @property {string} archive the folder that they come from
 * @property {readonly string[]} keys of the zips
 * @property {string} files where lists of what is to be fetched go, as a prefix
 */

export const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const PLAIN = fileURLToPath(new URL('plain.py', import.meta.url));
const FLOOR = fileURLToPath(new URL('floor.js', import.meta.url));
const LEAST = fileURLToPath(new URL('least.js', import.meta.url));
const REQUESTS = fileURLToPath(new URL('requests.js', import.meta.url));
const PACKAGES = {
  curl: 'curl',
  sha256sum: 'coreutils',
  find: 'findutils',
  awk: 'mawk',
  aria2c: 'aria2',
  wget2: 'wget2',
  rclone: 'rclone',
  unzip: 'unzip',
};
const BOTH = ['', '.CHECKSUM'];
const ZIPS = [''];

/** Sidecars name their zip without its folder. One awk adds the folder again, for one sha256sum over all zips. */
const CHECK = String.raw`find data -name '*.CHECKSUM' -exec awk '{ folder = FILENAME; sub(/[^\/]*$/, "", folder); print $1 "  " folder $2 }' {} + | sha256sum -c --quiet`;

/**
 * @param {Place} place
 * @param {Pick<Contender, 'id' | 'name' | 'makes'> & { keepsOut?: boolean }} what
 * @param {string} words
 * @returns {Contender}
 */
export function cryptodl({ url, listingUrl }, what, words) {
  const line = `${words} --progress none --out .`;
  const places = ['--archive-url', url, '--listing-url', listingUrl];
  return {
    ...what,
    isOurs: true,
    command: [process.execPath, BIN, ...line.split(' '), ...places],
    shown: `cryptodl ${line}`,
    missing: [],
    requests: ({ stderr }) => {
      const [, count] = /([\d,]+) requests/.exec(stderr) ?? [];
      return count === undefined ? undefined : Number(count.replaceAll(',', ''));
    },
  };
}

/**
 * Two runs at once, each into a folder of its own, because the lock of a lake admits one run.
 * @param {Place} place
 * @param {string} id
 * @param {readonly [string, string]} words
 * @returns {Contender}
 */
export function twoProcesses({ url, listingUrl }, id, words) {
  const lines = words.map(
    (line, at) =>
      `'${process.execPath}' '${BIN}' ${line} --progress none --out ${at} --archive-url ${url} --listing-url ${listingUrl}`,
  );
  return {
    id,
    name: 'two of it, half the symbols each',
    makes: 'nothing',
    command: ['sh', '-c', `${lines[0]} & other=$!; ${lines[1]} && wait $other`],
    shown: words.map((line, at) => `cryptodl ${line} --out ${at}`).join(' & '),
    missing: [],
    isOurs: true,
    requests: () => undefined,
  };
}

/** The usual hand-written command: zips and sidecars at once, then one sha256sum over all. */
export function chain(/** @type {Place} */ place, /** @type {string} */ id) {
  return curl(place, { id, name: 'curl -Z, sha256sum -c', endings: BOTH, after: ` && ${CHECK}` });
}

/** The zips alone, unverified. */
export function curlRaw(/** @type {Place} */ place, /** @type {string} */ id) {
  return curl(place, { id, name: 'curl -Z, zips only', endings: ZIPS });
}

/** Zips and sidecars, each with five retries, unverified. */
export function curlRetrying(/** @type {Place} */ place, /** @type {string} */ id) {
  return curl(place, { id, name: 'curl -Z --retry 5, both', endings: BOTH, flags: ' --retry 5' });
}

/**
 * @param {Place} place
 * @param {{ id: string, name: string, endings: readonly string[], flags?: string, after?: string }} how
 * @returns {Contender}
 */
function curl({ url, keys, files }, { id, name, endings, flags = '', after = '' }) {
  const transfers = keys.flatMap((key) =>
    endings.map((ending) => ({ url: `${url}/${key}${ending}`, output: `${key}${ending}` })),
  );
  const config = writeConfig(`${files}-curl-${id}`, transfers);
  const shown = `curl -q -Z --parallel-max 50${flags} -K CONFIG${after}`;
  const made = shell({ id, name, makes: 'zip' }, shown, { CONFIG: config }, [
    'curl',
    'find',
    'awk',
    'sha256sum',
  ]);
  return { ...made, requests: countedAnswers };
}

/**
 * @param {string} path
 * @param {readonly { url: string, output: string }[]} transfers
 * @returns {string} the path
 */
function writeConfig(path, transfers) {
  const settings = 'fail\ncreate-dirs\nno-progress-meter\nwrite-out = "%{http_code}\\n"\n';
  writeFileSync(
    path,
    settings + transfers.map(({ url, output }) => `url = "${url}"\noutput = "${output}"\n`).join(''),
  );
  return path;
}

/** One line per answer, from write-out in the config. */
function countedAnswers(/** @type {Measured} */ { stdout }) {
  return stdout.match(/^\d{3}$/gm)?.length;
}

/** Its list has the digests of the sidecars, as a careful user would write it. */
export function aria2(
  /** @type {Place} */ { url, keys, files, archive },
  /** @type {string} */ id,
  isChecked = false,
) {
  const LIST = `${files}-aria2-${id}`;
  const lines = keys.map((key) => {
    const digest = isChecked ? ` checksum=sha-256=${sidecarOf(archive, key)}\n` : '';
    return `${url}/${key}\n dir=${dirname(key)}\n out=${basename(key)}\n${digest}`;
  });
  writeFileSync(LIST, lines.join(''));
  const name = isChecked ? 'aria2c, sha-256 of each' : 'aria2c, zips only';
  const shown = 'aria2c -q -j 50 --file-allocation=none -i LIST';
  return shell({ id, name, makes: 'zip' }, shown, { LIST }, ['aria2c']);
}

export function wget2(/** @type {Place} */ { url, keys, files }, /** @type {string} */ id) {
  const LIST = `${files}-wget2-${id}`;
  writeFileSync(LIST, keys.map((key) => `${url}/${key}\n`).join(''));
  const what = /** @type {const} */ ({ id, name: 'wget2, zips only', makes: 'zip' });
  return shell(what, 'wget2 -q --max-threads=50 -x -nH -i LIST', { LIST }, ['wget2']);
}

export function rclone(/** @type {Place} */ { url, keys, files }, /** @type {string} */ id) {
  const LIST = `${files}-rclone-${id}`;
  writeFileSync(LIST, keys.map((key) => `${key}\n`).join(''));
  const what = /** @type {const} */ ({ id, name: 'rclone copy, zips only', makes: 'zip' });
  const shown =
    'rclone copy -q --config /dev/null --http-url URL :http: . --files-from LIST --no-traverse --transfers 50 --checkers 50';
  return shell(what, shown, { LIST, URL: url }, ['rclone']);
}

export function plain(/** @type {Place} */ { url, keys, files }, /** @type {string} */ id) {
  const KEYS = `${files}-plain-${id}`;
  writeFileSync(KEYS, keys.join('\n'));
  const what = /** @type {const} */ ({ id, name: 'plain script, one by one', makes: 'zip' });
  const made = shell(what, 'python3 plain.py URL KEYS', { 'plain.py': PLAIN, URL: url, KEYS }, []);
  const hasRequests = spawnSync('python3', ['-c', 'import requests']).status === 0;
  return { ...made, missing: hasRequests ? [] : ['python3-requests'] };
}

/** Fetches and verifies in Node, and writes nothing. */
export function requestsAlone(/** @type {Place} */ place, /** @type {string} */ id) {
  return inNode(place, { id, name: 'undici alone, nothing written', script: REQUESTS });
}

/** Parquet without checks: the lower limit with the same packages. */
export function least(/** @type {Place} */ place, /** @type {string} */ id) {
  return inNode(place, { id, name: 'undici, zlib, one COPY each', script: LEAST });
}

/**
 * @param {Place} place
 * @param {{ id: string, name: string, script: string }} how
 * @returns {Contender}
 */
function inNode({ url, keys, files }, { id, name, script }) {
  const KEYS = `${files}-keys-${id}`;
  writeFileSync(KEYS, keys.join('\n'));
  const file = basename(script);
  const paths = { node: process.execPath, [file]: script, URL: url, KEYS };
  return shell({ id, name, makes: 'nothing' }, `node ${file} URL KEYS`, paths, []);
}

/** The work after the download: unpacking, checking digests, writing Parquet. */
export function floor(/** @type {Place} */ { archive }, /** @type {string} */ id) {
  const what = /** @type {const} */ ({ id, name: 'sha256sum, unzip -p, COPY', makes: 'nothing' });
  const paths = { node: process.execPath, 'floor.js': FLOOR, FOLDER: archive };
  return shell(what, 'node floor.js FOLDER', paths, ['sha256sum', 'unzip']);
}

/** Pages of a listing and nothing else. */
export function listings(
  /** @type {Place} */ { listingUrl, files },
  /** @type {string} */ id,
  /** @type {readonly string[]} */ prefixes,
) {
  const transfers = prefixes.map((prefix, at) => ({
    url: `${listingUrl}/?prefix=${encodeURIComponent(prefix)}&delimiter=/`,
    output: `listings/${at}.xml`,
  }));
  const config = writeConfig(`${files}-listings`, transfers);
  const what = /** @type {const} */ ({ id, name: 'curl -Z of the listings', makes: 'nothing' });
  const shown = 'curl -q -Z --parallel-max 50 -K CONFIG';
  return { ...shell(what, shown, { CONFIG: config }, ['curl']), requests: countedAnswers };
}

/**
 * @param {Pick<Contender, 'id' | 'name' | 'makes'>} what
 * @param {string} shown
 * @param {Readonly<Record<string, string>>} paths what its words stand for
 * @param {readonly (keyof typeof PACKAGES)[]} programs
 * @returns {Contender}
 */
function shell(what, shown, paths, programs) {
  const line = Object.entries(paths).reduce((text, [word, path]) => text.replace(word, `'${path}'`), shown);
  return {
    ...what,
    isOurs: false,
    command: ['sh', '-c', line],
    shown,
    missing: programs.filter((program) => !isInstalled(program)).map((program) => PACKAGES[program]),
    requests: () => undefined,
  };
}

/** @param {string} archive @param {string} key */
function sidecarOf(archive, key) {
  const [digest] = readFileSync(join(archive, `${key}.CHECKSUM`), 'utf8').split(' ');
  return digest;
}

/** @param {string} program */
function isInstalled(program) {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}
