/**
 * Writes docs/recording.svg, the picture of the README: a recording of the built program in a terminal. The program reads a
 * synthetic archive that `cryptodl serve` serves on this machine. Needs `script` of util-linux for the terminal.
 *   node scripts/record.js [FILE]
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import xterm from '@xterm/headless';
import { recordingSvg } from './recording-svg.js';
import { makeArchive } from './synthetic-archive.js';

/** @import { Frame, Piece } from './recording-svg.js' */

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const TARGET = process.argv[2] ?? fileURLToPath(new URL('../docs/recording.svg', import.meta.url));
const NOW = '2026-11-21T12:00:00Z';
const SIZE = { cols: 88, rows: 26 };
/** The time for each typed word, and the pause after the output of a command. */
const TYPED_MS = 120;
const PAUSE_MS = 1800;

const DOWNLOAD = 'cryptodl vision --symbols BTCUSDT,ETHUSDT,SOLUSDT --days 30';
const COMMANDS = [
  DOWNLOAD,
  DOWNLOAD,
  "cryptodl sql 'SELECT symbol, count(*) AS bars FROM um_klines GROUP BY 1 ORDER BY 1'",
];

const folder = mkdtempSync(join(tmpdir(), 'cryptodl-recording-'));
const terminal = new xterm.Terminal({ ...SIZE, allowProposedApi: true });
/** @type {Frame[]} */
const frames = [];
let clockMs = 0;
try {
  makeArchive(join(folder, 'archive'), {
    market: 'um',
    dataset: 'klines',
    interval: '1m',
    symbols: ['BTCUSDT', 'ETHUSDT', 'SOLUSDT'],
    from: '2026-10-22',
    to: '2026-11-20',
    cadence: 'daily',
    level: 6,
  });
  const server = spawn(process.execPath, [BIN, 'serve', join(folder, 'archive'), '--port', '0']);
  try {
    const env = environment(await firstLine(server.stdout));
    for (const command of COMMANDS) {
      await type(command);
      await run(command, env);
      clockMs += PAUSE_MS;
    }
  } finally {
    server.kill('SIGTERM');
  }
  writeFileSync(TARGET, recordingSvg(frames, SIZE));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * The commands stand in the picture as a user types them: the archive and the time come from the environment.
 * @param {string} url
 */
function environment(url) {
  mkdirSync(join(folder, 'bin'));
  symlinkSync(BIN, join(folder, 'bin/cryptodl'));
  return {
    PATH: [join(folder, 'bin'), dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter),
    HOME: folder,
    TERM: 'xterm-256color',
    LANG: 'C.UTF-8',
    CRYPTODL_ARCHIVE_URL: url,
    CRYPTODL_NOW: NOW,
    CRYPTODL_STATE_DIR: join(folder, 'state'),
  };
}

/**
 * The first line of standard output.
 * @param {import('node:stream').Readable} stream
 * @returns {Promise<string>}
 */
function firstLine(stream) {
  return new Promise((resolve) => {
    stream.once('data', (chunk) => resolve(String(chunk).trim()));
  });
}

/**
 * Shows a prompt, then the command word by word.
 * @param {string} command
 */
async function type(command) {
  await show(`${terminal.buffer.active.cursorY === 0 ? '' : '\r\n'}\u001b[32m$\u001b[0m`);
  for (const word of command.split(' ')) {
    clockMs += TYPED_MS;
    await show(` \u001b[1m${word}\u001b[0m`);
  }
  clockMs += TYPED_MS;
  await show('\r\n');
}

/**
 * Runs the command in a pseudo-terminal of the size of the picture.
 * @param {string} command
 * @param {Readonly<Record<string, string>>} env
 */
async function run(command, env) {
  const startedMs = performance.now() - clockMs;
  const line = `stty cols ${SIZE.cols} rows ${SIZE.rows}; ${command}`;
  const child = spawn('script', ['--quiet', '--flush', '--return', '--command', line, '/dev/null'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const code = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  for await (const chunk of child.stdout) {
    clockMs = performance.now() - startedMs;
    await show(chunk);
  }
  if ((await code) !== 0) throw new Error(`${command}: exit code ${await code}`);
}

/** @param {string | Uint8Array} data */
async function show(data) {
  await new Promise((resolve) => {
    terminal.write(data, () => resolve(undefined));
  });
  frames.push({ atMs: clockMs, rows: screen() });
}

/** The rows of the screen. A piece ends where the style changes, and before two spaces in a row. */
function screen() {
  const { active } = terminal.buffer;
  return Array.from({ length: SIZE.rows }, (_, y) => {
    const line = active.getLine(active.viewportY + y);
    /** @type {(Piece & { style: string })[]} */
    const pieces = [];
    for (let x = 0; x < SIZE.cols; x += 1) {
      const cell = line?.getCell(x);
      const text = cell?.getChars() ?? '';
      if (cell === undefined || text.trim() === '') continue;
      const color = cell.isFgPalette() ? cell.getFgColor() : undefined;
      const style = `${color ?? ''} ${cell.isBold()} ${cell.isDim()}`;
      const last = pieces.at(-1);
      const gap = last === undefined ? Infinity : x - last.x - last.text.length;
      if (last?.style === style && gap < 2) last.text += ' '.repeat(gap) + text;
      else pieces.push({ x, text, style, color, isBold: cell.isBold() !== 0 });
    }
    return pieces;
  });
}
