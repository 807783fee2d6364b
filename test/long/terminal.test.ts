import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { scratchFolder } from '../helpers/folders.js';
import { BIN, framesOf, HAS_TERMINAL, onTerminal, screenOf, TERMINAL } from '../helpers/terminal.js';
import type { Screen, Size, TerminalOptions, TerminalRun } from '../helpers/terminal.js';

const ESCAPE = '\u001b';
const DAYS = 10;
const SYMBOLS = ['BTCUSDT', 'ETHUSDT', 'XRPUSDT'];
const COINS = 4000;
const OBJECTS = DAYS * SYMBOLS.length;

const scratch = scratchFolder();
let archive: TestArchive;
let lakes = 0;

beforeAll(async () => {
  const folder = join(scratch, 'archive');
  makeArchive(folder, {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: SYMBOLS,
    from: '2026-11-11',
    to: '2026-11-20',
    cadence: 'daily',
  });
  // Of these only the listing is ever asked: more than a pipe takes before it is read.
  for (let number = 0; number < COINS; number += 1) {
    const symbol = `COINOFALONGNAME${number}USDT`;
    const series = join(folder, `data/futures/um/daily/klines/${symbol}/1d`);
    mkdirSync(series, { recursive: true });
    writeFileSync(join(series, `${symbol}-1d-2026-11-20.zip`), symbol);
  }
  archive = await startArchive(folder);
});
afterEach(() => {
  archive.fault = undefined;
});
afterAll(() => archive.close());

/** A download into a lake of its own. */
function vision(...more: readonly string[]): { args: string[]; out: string } {
  return visionOf(SYMBOLS.join(','), ...more);
}

function visionOf(symbols: string, ...more: readonly string[]): { args: string[]; out: string } {
  lakes += 1;
  const out = join(scratch, `lake-${lakes}`);
  const args = ['vision', '--interval', '1h', '--symbols', symbols, '--days', String(DAYS)];
  return { args: [...args, '--out', out, ...place(), '--concurrency', '4', ...more], out };
}

function place(): string[] {
  return ['--archive-url', archive.url, '--now', '2026-11-21', '--retry-delay', '2ms', '--max-wait', '20s'];
}

/** Long enough for the bar to be drawn several times. */
function delayObjects(): void {
  archive.fault = (path, _request, response) => {
    if (!path.endsWith('.zip')) return false;
    setTimeout(() => {
      response.end(readFileSync(join(scratch, 'archive', path)));
    }, 150);
    return true;
  };
}

const options = (more: Partial<TerminalOptions> = {}): TerminalOptions => ({ folder: scratch, ...more });

const WIDE: Size = { columns: 120, rows: 24 };

/** Lines of a screen that hold (a part of) a bar. */
function bars({ lines }: Pick<Screen, 'lines'>): string[] {
  return lines.filter((line) => /[█░]/.test(line));
}

/** The row of the live line; undefined while there is none. */
function liveRow({ rows }: Screen): string | undefined {
  return rows.find((row) => /[█░]/.test(row));
}

/** One row, which is the last one and has the cursor. */
function expectLive(screen: Screen, { columns }: Size): void {
  const row = liveRow(screen);
  if (row === undefined) return;
  expect(row).toMatch(/^[█░]+/);
  expect(row.length).toBeLessThan(columns);
  expect(screen.rows.indexOf(row)).toBe(screen.cursorRow);
  expect(screen.rows.slice(screen.cursorRow + 1).join('')).toBe('');
}

/** The last lines of a run that went well, each on a line of its own, nothing before, between or behind. */
async function expectClosing({ sent }: TerminalRun, size: Size): Promise<void> {
  const screen = await screenOf(sent, size);
  expect(bars(screen)).toEqual([]);
  expect(screen).toMatchObject({ isCursorShown: true, isWrapping: true });
  const at = screen.lines.findIndex((line) => line.startsWith(`${OBJECTS} ok in `));
  expect(at).toBeGreaterThan(0);
  // Lines of the log about the listing may come first.
  expect(screen.lines.find((line) => !line.startsWith('{'))).toMatch(/^um klines 1h in/);
  expect(screen.lines.slice(0, at)).not.toContain('');
  expect(screen.lines[at + 1]).toMatch(/^ {2}fetched /);
  expect(screen.lines.at(-1)).toBe('');
  expect(screen.lines.at(-2)).not.toBe('');
}

/** Answers the first requests for files of this kind in this way, and then those of the folder. */
function answerFirst(
  count: number,
  status: number,
  {
    kind = /\.zip$/,
    headers = {},
  }: { readonly kind?: RegExp; readonly headers?: Record<string, string> } = {},
): void {
  delayObjects();
  const { fault } = archive;
  let left = count;
  archive.fault = (path, request, response) => {
    if (!kind.test(path) || left === 0) return fault?.(path, request, response) === true;
    left -= 1;
    response.writeHead(status, headers).end();
    return true;
  };
}

describe.skipIf(!HAS_TERMINAL)(`on ${TERMINAL}`, () => {
  it.each([
    [120, 24],
    [20, 6],
  ])(
    'of %i columns and %i rows: the live line stays in its row and leaves it clean',
    async (columns, rows) => {
      delayObjects();
      const size = { columns, rows };
      const result = await onTerminal(vision().args, options(size));
      expect([result.code, result.stdout]).toEqual([0, '']);
      const frames = await framesOf(result.sent, size);
      expect(frames.length).toBeGreaterThan(2);
      for (const frame of frames) expectLive(frame, size);
      const lines = frames.flatMap((frame) => liveRow(frame) ?? []);
      expect(lines.length).toBeGreaterThan(2);
      if (columns === 120)
        expect(lines.join('\n')).toMatch(
          /^[█░]{20} \d+% {2}\d+\/30 objects, [\d.]+ k?B of [\d.]+ kB, [\d.]+ k?B\/s, ETA \d+s, 4 in flight$/m,
        );
      await expectClosing(result, size);
    },
  );

  it('a host that refuses: its pause is in the live line, and messages have lines of their own', async () => {
    answerFirst(1, 429, { headers: { 'retry-after': '6' } });
    const result = await onTerminal(vision().args, options(WIDE));
    expect(result.code).toBe(0);
    const live = (await framesOf(result.sent, WIDE)).map((frame) => liveRow(frame) ?? '');
    expect(live.join('\n')).toMatch(/, archive: next permit in [1-6]s/);
    const { lines } = await screenOf(result.sent, WIDE);
    expect(lines.filter((line) => /^waiting (?:6s|5\.\ds): .*429/.test(line))).toHaveLength(1);
    await expectClosing(result, WIDE);
  });

  it('a log on the terminal takes the place of the live line, and each of its lines is whole', async () => {
    delayObjects();
    for (const more of [[], ['--progress', 'bar']]) {
      const { args } = vision('--log-level', 'debug', ...more);
      const size = { columns: 500, rows: 24 };
      const result = await onTerminal(args, options(size));
      expect(result.code).toBe(0);
      expect(result.sent).not.toContain(ESCAPE);
      await expectClosing(result, size);
      const { lines } = await screenOf(result.sent, size);
      const log = lines.filter((line) => line.includes('"level"'));
      expect(log.filter((line) => line.includes('"msg":"ok"'))).toHaveLength(OBJECTS);
      for (const line of log) expect(JSON.parse(line)).toMatchObject({ level: 20 });
    }
  });

  it('events on the same terminal have lines of their own among the frames', async () => {
    delayObjects();
    const { args } = vision('--json', '--progress', 'bar');
    const size = { columns: 4000, rows: 24 };
    const { code, sent } = await onTerminal(args, options({ ...size, isAllShown: true }));
    expect(code).toBe(0);
    expect((await framesOf(sent, size)).length).toBeGreaterThan(2);
    const { lines } = await screenOf(sent, size);
    expect(bars({ lines })).toEqual([]);
    const events = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as object);
    expect(events.filter((event) => 'event' in event && event.event === 'object')).toHaveLength(OBJECTS);
  });

  it.each([
    ['Ctrl-C', '\u0003', 130],
    ['SIGTERM', 'SIGTERM', 143],
  ])('%s: a line replaces the live line, and the terminal is as it was', async (_name, keys, expected) => {
    delayObjects();
    const { args } = vision('--concurrency', '1');
    const { code, sent } = await onTerminal(args, options({ keys }));
    expect(code).toBe(expected);
    const screen = await screenOf(sent, WIDE);
    expect(screen).toMatchObject({ isCursorShown: true, isWrapping: true });
    expect(bars(screen)).toEqual([]);
    expect(screen.lines.filter((line) => line.includes('ending: '))).toEqual([
      'ending: files that are written now are finished first; Ctrl-C ends at once',
    ]);
    expect(bars({ lines: [sent.slice(sent.indexOf('ending: '))] })).toEqual([]);
    expect(screen.lines).toContainEqual(expect.stringMatching(/ not done in /));
  });
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A line as it is typed, with `cryptodl` for the binary. */
async function typed(line: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const script = `cryptodl() { ${quoted(process.execPath)} ${quoted(BIN)} "$@"; }\n${line}`;
  const child = spawn('bash', ['-c', script], {
    env: { PATH: '/usr/bin:/bin', HOME: scratch, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  }
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, ...said };
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

function lineOf(args: readonly string[]): string {
  return `cryptodl ${args.map(quoted).join(' ')}`;
}

describe('without a terminal', () => {
  it('symbols from a closed or empty stdin are refused in a line, not with a trace', async () => {
    for (const from of ['<&-', '< /dev/null']) {
      const { args } = visionOf('-', '--dry-run');
      const { code, stdout, stderr } = await typed(`${lineOf(args)} ${from}`);
      expect({ from, code, stdout }).toEqual({ from, code: 2, stdout: '' });
      expect(stderr).toMatch(/^cryptodl: .+\n/);
      expect(stderr).not.toMatch(/\n\s+at /);
    }
  });
});

describe('a reader that has seen enough', () => {
  /** The first line it got, what was said, and how the program ended. */
  async function head(line: string): Promise<{ first: string; said: string; code: number }> {
    const { stdout, stderr } = await typed(`${line} | head -1; echo "code: \${PIPESTATUS[0]}"`);
    const [first = '', code = ''] = stdout.split('\n').slice(-3);
    return { first, said: stderr, code: Number(/^code: (\d+)$/.exec(code)?.[1] ?? Number.NaN) };
  }

  it.each([
    ['--help', 'Usage: cryptodl'],
    ['vision --help', 'Usage: cryptodl vision'],
    ['list markets', 'spot\t'],
    ['list datasets --json', '{"dataset":'],
    ['schema klines', 'um klines'],
    ['completion bash', '# bash completion'],
    ['vision --print-options', 'symbols '],
  ])('of %s', async (args, begin) => {
    const { first, said, code } = await head(`cryptodl ${args}`);
    expect(first.slice(0, begin.length)).toBe(begin);
    expect(code).toBe(0);
    expect(said).not.toMatch(/EPIPE|\n\s+at /);
  });

  it.each([
    ['list symbols', /^BTCUSDT$/],
    ['list symbols --json', /^\{"symbol":"BTCUSDT"\}$/],
    ['list symbols --interval 1d --long', /^BTCUSDT\t-\t-\t0\t0$/],
    ['list periods --symbols all --interval 1d', /^2026-11-20\tdaily\t\d+\tdata\//],
  ])('of thousands of lines of %s: the rest is not even asked for', async (line, pattern) => {
    const before = archive.requests.length;
    const { first, said, code } = await head(`cryptodl ${line} ${place().join(' ')}`);
    expect(first).toMatch(pattern);
    expect(said).toBe('');
    expect(code).toBe(0);
    expect(archive.requests.length - before).toBeLessThan(COINS * 0.9);
  });
});
