/** Who runs, and with which command. Every contender runs in an empty folder of its own and writes into it. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** @import { Measured } from './measure.js' */

/**
 * @typedef {object} Contender
 * @property {string} id
 * @property {string} name
 * @property {readonly string[]} command
 * @property {string} shown the command as a person would type it, with $URL and $CONFIG
 * @property {'parquet' | 'zip'} makes
 * @property {readonly string[]} missing packages whose programs are not installed
 * @property {(measured: Measured) => number | undefined} requests
 */

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const PACKAGES = { curl: 'curl', sha256sum: 'coreutils', find: 'findutils', awk: 'mawk' };

/** Sidecars name their zip without its folder: one awk puts the folder back, for one sha256sum over all. */
const CHECK = String.raw`find data -name '*.CHECKSUM' -exec awk '{ folder = FILENAME; sub(/[^\/]*$/, "", folder); print $1 "  " folder $2 }' {} + | sha256sum -c --quiet`;

/**
 * @param {object} workload
 * @param {string} workload.url
 * @param {readonly string[]} workload.keys of the zips
 * @param {string} workload.from
 * @param {string} workload.to
 * @param {string} workload.configs where curl's config files go, as a prefix
 * @returns {Contender[]}
 */
export function createContenders({ url, keys, from, to, configs }) {
  const both = writeConfig(`${configs}-both`, url, keys, ['', '.CHECKSUM']);
  const zips = writeConfig(`${configs}-zips`, url, keys, ['']);
  const vision = `vision --dataset metrics --symbols all --from ${from} --to ${to} --concurrency 50`;
  return [
    cryptodl('a', 'cryptodl, to Parquet', 'parquet', vision, url),
    shell('b', 'curl -Z, sha256sum -c', both, ` && ${CHECK}`, ['curl', 'find', 'awk', 'sha256sum']),
    shell('c', 'curl -Z, zips only', zips, '', ['curl']),
    cryptodl('d', 'cryptodl, zips verified', 'zip', `${vision} --format zip`, url),
  ];
}

/**
 * @param {string} id
 * @param {string} name
 * @param {'parquet' | 'zip'} makes
 * @param {string} words
 * @param {string} url
 * @returns {Contender}
 */
function cryptodl(id, name, makes, words, url) {
  const line = `${words} --progress none --out . --archive-url`;
  return {
    id,
    name,
    makes,
    command: [process.execPath, BIN, ...line.split(' '), url],
    shown: `cryptodl ${line} $URL`,
    missing: [],
    requests: ({ stderr }) => {
      const [, count] = /([\d,]+) requests/.exec(stderr) ?? [];
      return count === undefined ? undefined : Number(count.replaceAll(',', ''));
    },
  };
}

/**
 * @param {string} id
 * @param {string} name
 * @param {string} config
 * @param {string} then
 * @param {readonly (keyof typeof PACKAGES)[]} programs
 * @returns {Contender}
 */
function shell(id, name, config, then, programs) {
  const line = (/** @type {string} */ file) => `curl -q -Z --parallel-max 50 -K ${file}${then}`;
  return {
    id,
    name,
    makes: 'zip',
    command: ['sh', '-c', line(`'${config}'`)],
    shown: line('$CONFIG'),
    missing: programs.filter((program) => !isInstalled(program)).map((program) => PACKAGES[program]),
    // One line per answer, from write-out in the config.
    requests: ({ stdout }) => stdout.match(/^\d{3}$/gm)?.length,
  };
}

/** @param {string} program */
function isInstalled(program) {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

/**
 * @param {string} path
 * @param {string} url
 * @param {readonly string[]} keys
 * @param {readonly string[]} endings
 * @returns {string} the path
 */
function writeConfig(path, url, keys, endings) {
  const settings = 'fail\ncreate-dirs\nno-progress-meter\nwrite-out = "%{http_code}\\n"\n';
  const transfers = keys.flatMap((key) =>
    endings.map((ending) => `url = "${url}/${key}${ending}"\noutput = "${key}${ending}"\n`),
  );
  writeFileSync(path, settings + transfers.join(''));
  return path;
}
