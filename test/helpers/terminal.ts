/** The real binary on a terminal of its own, and what that terminal shows. Wants python3 for the terminal. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import xterm from '@xterm/headless';
import type { Terminal } from '@xterm/headless';

export const BIN = fileURLToPath(new URL('../../bin/cryptodl.js', import.meta.url));

/** Part of the name of a test that is skipped without it. */
export const HAS_TERMINAL = spawnSync('python3', ['-c', 'import pty']).status === 0;
export const TERMINAL = HAS_TERMINAL ? 'a terminal' : 'a terminal (apt-get install python3)';

/**
 * Everything the terminal is sent goes to stdout; `stdout` is a file that takes the command's, or nothing. When a bar is there, the keys
 * are typed.
 */
const PTY = `
import fcntl, os, pty, signal, struct, sys, termios
columns, rows, stdout, keys, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', int(rows), int(columns), 0, 0))
    if stdout:
        os.dup2(os.open(stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.execv(command[0], command)
shown = b''
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    shown += data
    if keys and '█'.encode() in shown:
        if keys == 'SIGTERM':
            os.kill(pid, signal.SIGTERM)
        else:
            os.write(terminal, keys.encode())
        keys = ''
    sys.stdout.buffer.write(data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

export interface TerminalOptions {
  /** Takes the helper script and stdout. */
  readonly folder: string;
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** stdout is the terminal too, instead of a file. */
  readonly isAllShown?: boolean;
  /** Typed when a bar is there; `SIGTERM` is sent instead. */
  readonly keys?: string;
}

export interface TerminalRun {
  readonly code: number | null;
  /** As the terminal was sent it. */
  readonly sent: string;
  readonly stdout: string;
}

export async function onTerminal(args: readonly string[], options: TerminalOptions): Promise<TerminalRun> {
  const { folder, columns = 120, rows = 24, env, isAllShown = false, keys = '' } = options;
  const script = join(folder, 'on-terminal.py');
  const stdout = join(folder, 'stdout');
  writeFileSync(script, PTY);
  writeFileSync(stdout, '');
  const command = [process.execPath, BIN, ...args];
  const child = spawn(
    'python3',
    [script, String(columns), String(rows), isAllShown ? '' : stdout, keys, ...command],
    {
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: 'xterm', LANG: 'C.UTF-8', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const sent: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => sent.push(chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  return { code, sent: Buffer.concat(sent).toString('utf8'), stdout: readFileSync(stdout, 'utf8') };
}

/** The size of a terminal. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface Screen {
  /** Lines from the first one ever written to the last, also those that scrolled away. A line that was broken is one line. */
  readonly lines: readonly string[];
  /** What is on the screen now, row by row. */
  readonly rows: readonly string[];
  /** The row of the cursor. */
  readonly cursorRow: number;
  readonly isWrapping: boolean;
  readonly isCursorShown: boolean;
}

/** Begins each frame of the live line. */
const ERASE = '\r\u001b[J';

/** What the terminal shows at the end. */
export async function screenOf(sent: string, size: Size): Promise<Screen> {
  const screens = await screensOf([sent], size);
  return screens[0] as Screen;
}

/** What the terminal shows after each frame of the live line. */
export async function framesOf(sent: string, size: Size): Promise<Screen[]> {
  const pieces = sent.split(ERASE);
  return screensOf(
    pieces.map((piece, at) => (at === 0 ? '' : ERASE) + piece),
    size,
  );
}

async function screensOf(pieces: readonly string[], { columns: cols, rows }: Size): Promise<Screen[]> {
  const terminal = new xterm.Terminal({ cols, rows, scrollback: 100_000, allowProposedApi: true });
  const screens: Screen[] = [];
  let sent = '';
  for (const piece of pieces) {
    await write(terminal, piece);
    sent += piece;
    screens.push(shownBy(terminal, sent));
  }
  return screens;
}

function write(terminal: Terminal, text: string): Promise<void> {
  return new Promise((resolve) => {
    terminal.write(text, resolve);
  });
}

function shownBy({ buffer, rows, modes }: Terminal, sent: string): Screen {
  const { active } = buffer;
  const rowAt = (y: number): string => active.getLine(y)?.translateToString(true) ?? '';
  const lines: string[] = [];
  for (let y = 0; y <= active.baseY + active.cursorY; y += 1) {
    if (active.getLine(y)?.isWrapped === true) lines.push(`${lines.pop() ?? ''}${rowAt(y)}`);
    else lines.push(rowAt(y));
  }
  return {
    lines,
    rows: Array.from({ length: rows }, (_, y) => rowAt(active.baseY + y)),
    cursorRow: active.cursorY,
    isWrapping: modes.wraparoundMode,
    isCursorShown: sent.lastIndexOf('\u001b[?25l') <= sent.lastIndexOf('\u001b[?25h'),
  };
}
