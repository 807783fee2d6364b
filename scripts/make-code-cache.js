// Runs typical commands from the bundle and stores V8's code caches beside it. A cache has the functions that have run, so V8 does not compile them
// at the next start of the same version of Node.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeArchive } from './synthetic-archive.js';

const SCRIPT = fileURLToPath(import.meta.url);
const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const BUNDLE = fileURLToPath(new URL('../dist/bundle', import.meta.url));

/** @typedef {(cachePath: string, script: import('node:vm').Script) => void} OnLoaded */
/** @type {{ createLoader: (folder: string, onLoaded: OnLoaded) => (name: string) => { main: () => Promise<void> } }} */
const { createLoader } = createRequire(import.meta.url)('../bin/load-bundle.js');

if (process.argv.length > 2) runAndStore();
else await makeCaches();

/** Runs the command of this process; at its end, stores the caches. */
function runAndStore() {
  /** @type {Map<string, import('node:vm').Script>} */
  const scripts = new Map();
  const load = createLoader(BUNDLE, (path, script) => void scripts.set(path, script));
  process.on('exit', () => {
    for (const [path, script] of scripts) writeFileSync(path, script.createCachedData());
  });
  void load('program.cjs').main();
}

/** Each command starts with the caches of the command before it, and adds its functions. */
async function makeCaches() {
  const folder = mkdtempSync(join(tmpdir(), 'cryptodl-code-cache-'));
  const archive = join(folder, 'archive');
  const selection = {
    from: '2024-01-01',
    to: '2024-01-02',
    symbols: ['BTCUSDT'],
    cadence: /** @type {const} */ ('daily'),
  };
  makeArchive(archive, { market: 'um', dataset: 'klines', interval: '1m', ...selection });
  makeArchive(archive, { market: 'um', dataset: 'metrics', ...selection });
  const server = spawn(process.execPath, [BIN, 'serve', archive, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const url = await firstLine(server.stdout);
    const days = `--symbols BTCUSDT --from ${selection.from} --to ${selection.to} --archive-url ${url} --progress none`;
    for (const line of [
      '--help',
      'vision --help',
      `vision --dataset metrics ${days} --out parquet`,
      `vision --dataset metrics ${days} --out parquet`,
      `vision --dataset klines ${days} --format zip --out zips`,
      `vision --dataset klines ${days} --json --out parquet`,
    ])
      run(line.split(' '), folder);
  } finally {
    server.kill('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  }
}

function run(/** @type {readonly string[]} */ command, /** @type {string} */ folder) {
  const env = { PATH: process.env['PATH'], HOME: folder, CRYPTODL_STATE_DIR: join(folder, 'state') };
  const { status, stderr } = spawnSync(process.execPath, [SCRIPT, ...command], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new Error(`cryptodl ${command.join(' ')} ended with ${status ?? 'a signal'}: ${stderr}`);
}

/**
 * @param {import('node:stream').Readable} stream
 * @returns {Promise<string>}
 */
function firstLine(stream) {
  return new Promise((resolve, reject) => {
    stream.once('data', (chunk) => resolve(String(chunk).trim()));
    stream.once('close', () => reject(new Error('cryptodl serve ended without an address')));
  });
}
