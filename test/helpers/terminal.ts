/** The real binary on a terminal of its own, and what that terminal shows. Wants python3 for the terminal. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const BIN = fileURLToPath(new URL('../../bin/cryptodl.js', import.meta.url));

/** Part of the name of a test that is skipped without it. */
export const HAS_TERMINAL = spawnSync('python3', ['-c', 'import pty']).status === 0;
export const TERMINAL = HAS_TERMINAL ? 'a terminal' : 'a terminal (apt-get install python3)';

/** Everything the terminal is sent goes to stdout; `stdout` is a file that takes the command's, or nothing. */
const PTY = `
import fcntl, os, pty, struct, sys, termios
columns, stdout, keys, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, int(columns), 0, 0))
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
        os.write(terminal, keys.encode())
        keys = ''
    sys.stdout.buffer.write(data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

export interface TerminalOptions {
  /** Takes the helper script and stdout. */
  readonly folder: string;
  readonly columns?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** stdout is the terminal too, instead of a file. */
  readonly isAllShown?: boolean;
  /** Typed when a bar is there. */
  readonly keys?: string;
}

export interface TerminalRun {
  readonly code: number | null;
  /** As the terminal was sent it. */
  readonly sent: string;
  readonly stdout: string;
}

export async function onTerminal(args: readonly string[], options: TerminalOptions): Promise<TerminalRun> {
  const { folder, columns = 120, env, isAllShown = false, keys = '' } = options;
  const script = join(folder, 'on-terminal.py');
  const stdout = join(folder, 'stdout');
  writeFileSync(script, PTY);
  writeFileSync(stdout, '');
  const command = [process.execPath, BIN, ...args];
  const child = spawn('python3', [script, String(columns), isAllShown ? '' : stdout, keys, ...command], {
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: 'xterm', LANG: 'C.UTF-8', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const sent: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => sent.push(chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  return { code, sent: Buffer.concat(sent).toString('utf8'), stdout: readFileSync(stdout, 'utf8') };
}

export interface Screen {
  /** From the first line ever written to the last, without spaces at their ends. */
  readonly lines: readonly string[];
  readonly isCursorShown: boolean;
  readonly isWrapping: boolean;
}

const HEIGHT = 24;

/** Rows that scrolled away are kept. Throws for a sequence it does not know, so that none goes unnoticed. */
export function screenOf(sent: string, columns: number): Screen {
  const rows: string[][] = [[]];
  const cursor = { row: 0, column: 0 };
  /** Where the cursor is restored to: a place on the screen, which has scrolled by `top` rows. */
  let saved = { row: 0, column: 0 };
  let top = 0;
  let isCursorShown = true;
  let isWrapping = true;
  const cells = (): string[] => (rows[cursor.row] ??= []);
  const down = (): void => {
    cursor.row += 1;
    top = Math.max(top, cursor.row - HEIGHT + 1);
    cells();
  };
  const put = (character: string): void => {
    if (cursor.column >= columns && isWrapping) {
      down();
      cursor.column = 0;
    }
    const at = Math.min(cursor.column, columns - 1);
    while (cells().length < at) cells().push(' ');
    cells()[at] = character;
    cursor.column = at + 1;
  };
  const acts: Readonly<Record<string, () => void>> = {
    '\r': () => (cursor.column = 0),
    '\n': down,
    '\u001b7': () => (saved = { row: cursor.row - top, column: cursor.column }),
    '\u001b8': () => Object.assign(cursor, { row: saved.row + top, column: saved.column }),
    '\u001b[1G': () => (cursor.column = 0),
    '\u001b[2K': () => (rows[cursor.row] = []),
    '\u001b[0K': () => cells().splice(cursor.column),
    '\u001b[?25h': () => (isCursorShown = true),
    '\u001b[?25l': () => (isCursorShown = false),
    '\u001b[?7h': () => (isWrapping = true),
    '\u001b[?7l': () => (isWrapping = false),
  };
  // eslint-disable-next-line no-control-regex -- control characters are what a terminal is made of.
  for (const [piece] of sent.matchAll(/\u001b\[[\d;?]*[A-Za-z]|\u001b.|[\s\S]/gu)) {
    const act = acts[piece];
    if (act !== undefined) act();
    else if (piece < ' ') throw new RangeError(`unknown sequence ${JSON.stringify(piece)}`);
    else put(piece);
  }
  return { lines: rows.map((row) => row.join('').trimEnd()), isCursorShown, isWrapping };
}
