import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';
import { BIN, HAS_TERMINAL, onTerminal, screenOf, TERMINAL } from '../helpers/terminal.js';
import type { Screen, TerminalOptions, TerminalRun } from '../helpers/terminal.js';

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

/** What the terminal shows whenever a bar has just been drawn. */
function screensWithBar(sent: string, columns: number): Screen[] {
  return [...sent.matchAll(/[█░]\P{Cc}*/gu)].map(({ 0: bar, index }) =>
    screenOf(sent.slice(0, index + bar.length), columns),
  );
}

/** Lines of a screen that hold (a part of) a bar. */
function bars({ lines }: Screen): string[] {
  return lines.filter((line) => /[█░]/.test(line));
}

/** The last lines of a run that went well, each on a line of its own, nothing before, between or behind. */
function expectClosing({ sent }: TerminalRun, columns: number): void {
  const screen = screenOf(sent, columns);
  expect(bars(screen)).toEqual([]);
  expect(screen).toMatchObject({ isCursorShown: true, isWrapping: true });
  const at = screen.lines.findIndex((line) => line.startsWith(`${OBJECTS} ok in `));
  expect(at).toBeGreaterThan(0);
  // Lines of the log about the listing may come first.
  expect(screen.lines.find((line) => !line.startsWith('{'))).toMatch(/^um klines 1h: 3 series/);
  expect(screen.lines.slice(0, at).filter((line) => line === '')).toEqual([]);
  expect(screen.lines[at + 1]).toMatch(/^ {2}fetched /);
  expect(screen.lines.at(-1)).toBe('');
  expect(screen.lines.at(-2)).not.toBe('');
}

describe.skipIf(!HAS_TERMINAL)(`on ${TERMINAL}`, () => {
  it('a bar goes on in one line and leaves it clean for the last words; stdout stays empty', async () => {
    delayObjects();
    const { args } = vision();
    const result = await onTerminal(args, options());
    expect(result.code).toBe(0);
    expect(result.stdout).toBe('');
    const screens = screensWithBar(result.sent, 120);
    expect(screens.length).toBeGreaterThan(2);
    for (const screen of screens) {
      expect(bars(screen)).toHaveLength(1);
      expect(screen.lines.at(-1)).toMatch(/^[█░]+ \d+%  \d+\/30 objects, .*(?: in flight| converting)/);
    }
    expectClosing(result, 120);
  });

  it('failures have lines of their own', async () => {
    delayObjects();
    const { fault } = archive;
    archive.fault = (path, request, response) => {
      if (!path.endsWith('ETHUSDT-1h-2026-11-15.zip')) return fault?.(path, request, response) === true;
      response.writeHead(401).end();
      return true;
    };
    const { args } = vision();
    const { code, sent } = await onTerminal(args, options());
    expect(code).toBe(4);
    const screen = screenOf(sent, 120);
    expect(bars(screen)).toEqual([]);
    expect(screen.lines).toContainEqual(expect.stringMatching(/^29 ok, 1 failed in /));
    expect(screen).toMatchObject({ isCursorShown: true, isWrapping: true });
  });

  it('a log among the frames has lines of its own, and the last words overwrite none of it', async () => {
    delayObjects();
    const { args } = vision('--log-level', 'debug');
    const result = await onTerminal(args, options({ columns: 500 }));
    expect(result.code).toBe(0);
    expectClosing(result, 500);
    const log = screenOf(result.sent, 500).lines.filter((line) => line.includes('"level"'));
    expect(log.filter((line) => line.includes('"msg":"ok"'))).toHaveLength(OBJECTS);
    for (const line of log) expect(JSON.parse(line)).toMatchObject({ level: 20 });
  });

  it('of 20 columns the bar stays in one line', async () => {
    delayObjects();
    const { args } = vision();
    const result = await onTerminal(args, options({ columns: 20 }));
    expect(result.code).toBe(0);
    const screens = screensWithBar(result.sent, 20);
    expect(screens.length).toBeGreaterThan(2);
    for (const screen of screens) {
      expect(bars(screen)).toHaveLength(1);
      expect(bars(screen)[0]?.length).toBeLessThanOrEqual(20);
    }
    expect(bars(screenOf(result.sent, 20))).toEqual([]);
  });

  it('Ctrl-C gives the terminal back as it was', async () => {
    delayObjects();
    const { args } = vision('--concurrency', '1');
    const { code, sent } = await onTerminal(args, options({ keys: '\u0003' }));
    expect(code).toBe(130);
    const screen = screenOf(sent, 120);
    expect(screen).toMatchObject({ isCursorShown: true, isWrapping: true });
    expect(bars(screen)).toEqual([]);
    expect(screen.lines).toContainEqual(expect.stringMatching(/ not done in /));
  });

  it('NO_COLOR: nothing is coloured; neither is it without', async () => {
    delayObjects();
    for (const env of [{ NO_COLOR: '1' }, { FORCE_COLOR: '1' }]) {
      const { args } = vision();
      const { code, sent } = await onTerminal(args, options({ env, isAllShown: true }));
      expect(code).toBe(0);
      // eslint-disable-next-line no-control-regex -- this is how colours begin.
      expect(sent).not.toMatch(/\u001b\[[\d;]*m/);
    }
  });

  it.each<[string, string[], Record<string, string>]>([
    ['TERM=dumb', [], { TERM: 'dumb' }],
    ['--quiet', ['--quiet'], {}],
    ['--json', ['--json'], {}],
    ['--no-progress', ['--no-progress'], {}],
    ['--progress plain', ['--progress', 'plain'], {}],
    ['CRYPTODL_PROGRESS=none', [], { CRYPTODL_PROGRESS: 'none' }],
  ])('%s: no bar and no escape sequence', async (_name, more, env) => {
    delayObjects();
    const { args, out } = vision(...more);
    const { code, sent, stdout } = await onTerminal(args, options({ env }));
    expect(code).toBe(0);
    expect(sent).not.toMatch(/[█░]/);
    expect(sent).not.toContain(ESCAPE);
    expect(stdout.split('\n').filter((line) => line !== '')).toHaveLength(
      more.includes('--json') ? OBJECTS + SYMBOLS.length + 2 : 0,
    );
    if (more.includes('--quiet')) expect(sent).toBe('');
    expect(filesBelow(out, '.parquet')).toHaveLength(SYMBOLS.length);
  });

  it('lists are aligned, without escape sequences, and every line is whole', async () => {
    const { code, sent } = await onTerminal(['list', 'datasets'], options({ isAllShown: true }));
    expect(code).toBe(0);
    expect(sent).not.toContain(ESCAPE);
    expect(sent).not.toContain('\t');
    const lines = sent.trimEnd().split('\r\n').slice(0, -1);
    // A row that is too wide goes on in the next line, after spaces.
    const rows = lines.filter((line) => !line.startsWith(' '));
    const second = rows.map((line) => /^(\S+ +)\S/.exec(line)?.[1]?.length);
    expect(new Set(second).size).toBe(1);
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
  it.each([
    ['in a pipe', { TERM: 'xterm-256color' }],
    ['in the environment of cron', {}],
    ['with colours forced', { TERM: 'xterm-256color', FORCE_COLOR: '1', COLORTERM: 'truecolor' }],
  ])(
    '%s: no bar, no escape sequence, and the same last words',
    async (_name, env: Record<string, string>) => {
      delayObjects();
      const { args, out } = vision();
      const { code, stdout, stderr } = await typed(lineOf(args), env);
      expect(code).toBe(0);
      expect(stdout).toBe('');
      expect(stderr).not.toMatch(/[█░]/);
      expect(stderr).not.toContain(ESCAPE);
      expect(stderr).toMatch(/\n30 ok in /);
      expect(filesBelow(out, '.parquet')).toHaveLength(SYMBOLS.length);
      for (const line of ['cryptodl --help', 'cryptodl list datasets', 'cryptodl schema klines'])
        expect(JSON.stringify(await typed(line, env))).not.toContain('\\u001b');
    },
  );

  it('--progress bar writes no escape sequence either', async () => {
    archive.fault = (path, _request, response) => {
      if (!path.includes('?')) return false;
      response.writeHead(403).end();
      return true;
    };
    const { args } = vision('--progress', 'bar');
    const { stderr } = await typed(lineOf(args));
    expect(stderr).toContain('warning: ');
    expect(stderr).not.toContain(ESCAPE);
  });

  it('a closed stdin, stdout or stderr is no reason to stop', async () => {
    for (const closing of ['<&-', '>&-', '2>&-', '<&- >&- 2>&-']) {
      const { args, out } = vision();
      const { code, stdout, stderr } = await typed(`${lineOf(args)} ${closing}`);
      expect({ closing, code, stdout }).toEqual({ closing, code: 0, stdout: '' });
      if (!closing.includes('2>&-')) expect(stderr).toMatch(/\n30 ok in /);
      expect(filesBelow(out, '.parquet')).toHaveLength(SYMBOLS.length);
    }
  });

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

  it('of a long plan', async () => {
    const { args } = visionOf('COINOFALONGNAME1*', '--interval', '1d', '--days', '1', '--dry-run', '--quiet');
    const { first, said, code } = await head(lineOf(args));
    expect(first).toMatch(/^\w+\t\d+\tdata\//);
    expect(said).toBe('');
    expect(code).toBe(0);
  });

  it.each([
    ['its events', '--json', ''],
    ['its words', '--progress none', '2>&1'],
    ['both', '--json', '2>&1'],
  ])('of %s does not end a download', async (_name, more, also) => {
    delayObjects();
    const { args, out } = vision(...more.split(' '));
    const { first, said, code } = await head(`${lineOf(args)} ${also}`);
    expect(first).not.toBe('');
    expect(said).not.toMatch(/EPIPE|\n\s+at /);
    if (also === '') expect(said).toMatch(/\n30 ok in /);
    expect(code).toBe(0);
    expect(filesBelow(out, '.parquet')).toHaveLength(SYMBOLS.length);
    const rest = await typed(lineOf([...args, '--dry-run']));
    expect(rest.stdout.match(/^skip\t|"action":"skip"/gm)).toHaveLength(OBJECTS);
  });
});
