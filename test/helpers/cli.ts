/** The built program, in an environment like cron's: within this process, or the real binary as a child process. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { refuseOldBuild } from './built.js';
import type { IdleClock } from './idle-clock.js';
import type { LoadExchange } from '../../src/run/verb/verb.js';
import { runWithin } from './run-within.js';

refuseOldBuild();

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
  /** Virtual time for a run within this process. */
  readonly clock?: IdleClock | undefined;
  /** Another exchange than Binance; only within this process. */
  readonly loadExchange?: LoadExchange;
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

/** Of the environment, what Node and the loader of programs read as they start. */
const READ_AT_THE_START = /^(NODE_|UV_|LD_|TMPDIR$|TZ$)/;

/**
 * Within this process, which takes a fifth of the time, unless an option needs a process of its own. Where the process is
 * the point of a test (signals, several runs at once, what README promises), it calls `cryptodlProcess` itself.
 */
export function cryptodl(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const { wrap, onSpawn, clock, env = {} } = options;
  const isOfNode = Object.keys(env).some((name) => READ_AT_THE_START.test(name));
  const isProcess = wrap !== undefined || onSpawn !== undefined || isOfNode;
  if (isProcess && clock !== undefined) throw new Error('a process of its own has no virtual time');
  if (isProcess) return cryptodlProcess(args, options);
  return withState(async (state) => {
    const { stdin = '', cwd, loadExchange } = options;
    const program = [process.execPath, BIN];
    const environment = { ...environmentOf(state), ...env };
    const { code, stdout, stderr } = await runWithin(args, {
      environment,
      stdin,
      cwd,
      program,
      clock,
      loadExchange,
    });
    return { code, signal: null, stdout, stderr, events: eventsOf(stdout) };
  });
}

/** The real binary as a process of its own. */
export function cryptodlProcess(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return withState(async (state) => {
    const [program = '', ...words] = [...(options.wrap ?? []), process.execPath, BIN, ...args];
    const child = spawn(program, words, {
      cwd: options.cwd,
      env: { ...environmentOf(state), ...options.env },
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
    const out = Buffer.concat(stdout).toString('utf8');
    return {
      code,
      signal,
      stdout: out,
      stderr: Buffer.concat(stderr).toString('utf8'),
      events: eventsOf(out),
    };
  });
}

/** What one run is refused must not be refused to the next, unless a test wants that. */
async function withState(act: (state: string) => Promise<CliResult>): Promise<CliResult> {
  const state = join(tmpdir(), `cryptodl-state-${randomUUID()}`);
  try {
    return await act(state);
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
}

function environmentOf(state: string): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', CRYPTODL_STATE_DIR: state };
}

function eventsOf(stdout: string): Record<string, unknown>[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Like `cryptodl`, but anything but exit 0 is an error that shows what was said. */
export async function cryptodlOk(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return checked(args, await cryptodl(args, options));
}

/** Like `cryptodlProcess`, but anything but exit 0 is an error that shows what was said. */
export async function cryptodlProcessOk(
  args: readonly string[],
  options: CliOptions = {},
): Promise<CliResult> {
  return checked(args, await cryptodlProcess(args, options));
}

function checked(args: readonly string[], result: CliResult): CliResult {
  if (result.code === 0) return result;
  throw new Error(`cryptodl ${args.join(' ')} ended with ${result.code ?? result.signal}\n${result.stderr}`);
}

/** `damaged binance/…` per finding of `--json`. */
export function found({ events }: CliResult): string[] {
  return events
    .filter(({ event }) => event === 'finding')
    .map(({ kind, path }) => `${String(kind)} ${String(path)}`)
    .sort();
}

/** Words of a command line: the text is split at its blanks; a value stays one word, and a list gives all of its words. */
export function argv(
  texts: TemplateStringsArray,
  ...values: readonly (string | readonly string[])[]
): string[] {
  const words = [''];
  for (const [at, text] of texts.entries()) {
    const [end = '', ...more] = text.split(/\s+/);
    words.push(`${words.pop() ?? ''}${end}`, ...more);
    const value = values[at] ?? '';
    if (typeof value === 'string') words.push(`${words.pop() ?? ''}${value}`);
    else words.push(...value, '');
  }
  return words.filter((word) => word !== '');
}
