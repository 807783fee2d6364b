/** The real binary as a child process, in an environment like cron's. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const BIN = fileURLToPath(new URL('../../bin/cryptodl.js', import.meta.url));

export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** NDJSON of --json. */
  readonly events: Readonly<Record<string, unknown>>[];
}

export interface CliOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** A command that runs the binary, for example strace with its flags. */
  readonly wrap?: readonly string[];
  readonly onSpawn?: (child: ChildProcess) => void;
}

/** Every run waits for nothing longer than it must: short retry delays, no hour-long waits. */
export const FAST = [
  '--retry-delay',
  '2ms',
  '--breaker-open',
  '100ms',
  '--max-wait',
  '20s',
  '--progress',
  'none',
] as const;

export async function cryptodl(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const state = join(tmpdir(), `cryptodl-state-${randomUUID()}`);
  const [program = '', ...words] = [...(options.wrap ?? []), process.execPath, BIN, ...args];
  const child = spawn(program, words, {
    cwd: options.cwd,
    // What one run is refused must not be refused to the next, unless a test wants that.
    env: { PATH: process.env['PATH'] ?? '', CRYPTODL_STATE_DIR: state, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  options.onSpawn?.(child);
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.stdin ?? '');
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (exitCode, exitSignal) => {
      resolve([exitCode, exitSignal]);
    });
  });
  rmSync(state, { recursive: true, force: true });
  const out = Buffer.concat(stdout).toString('utf8');
  return {
    code,
    signal,
    stdout: out,
    stderr: Buffer.concat(stderr).toString('utf8'),
    events: out
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

/** Like `cryptodl`, but anything but exit 0 is an error that shows what was said. */
export async function cryptodlOk(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const result = await cryptodl(args, options);
  if (result.code !== 0) {
    throw new Error(
      `cryptodl ${args.join(' ')} ended with ${result.code ?? result.signal}\n${result.stderr}`,
    );
  }
  return result;
}
