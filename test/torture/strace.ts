/** The real binary under strace, which counts its calls on the files of one lake, kills it at one of them or lets one fail. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BIN } from '../helpers/terminal.js';

const isTraceable =
  spawnSync('strace', ['-f', '-qq', '-o', '/dev/null', process.execPath, '--version']).status === 0 &&
  spawnSync('taskset', ['--version']).status === 0;

export const HAS_STRACE = process.platform === 'linux' && isTraceable;
/** Part of the name of tests that are skipped without it. */
export const STRACE = HAS_STRACE ? 'strace' : 'strace (apt-get install strace, and ptrace must be permitted)';

/** Calls that change what a lake is, or open its files. */
export const CALLS = [
  'fsync',
  'fdatasync',
  'rename',
  'renameat2',
  'write',
  'pwrite64',
  'writev',
  'pwritev',
  'openat',
  'ftruncate',
  'mkdir',
  'unlink',
] as const;

export type Call = (typeof CALLS)[number];

export type Harm = 'SIGKILL' | 'ENOSPC' | 'EIO';

export interface TracedRun {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  /** The call that was harmed, as strace saw it; undefined: it was never reached. */
  readonly harmed: string | undefined;
}

/** strace matches whole paths only, so names that are made up must be known beforehand. */
const COUNTED_NAMES = `
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
let made = 0;
crypto.randomUUID = () => '00000000-0000-4000-8000-' + String((made += 1)).padStart(12, '0');
syncBuiltinESMExports();
`;
const COUNTED = /00000000-0000-4000-8000-\d{12}/;
const MOST_NAMES = 60;

interface TracedCall {
  readonly call: Call;
  /** As strace writes it. */
  readonly text: string;
  /** The same for calls that differ in made-up names, symbols, days and content only. */
  readonly kind: string;
}

export interface Traced {
  /** Those on the lake, in their order. */
  readonly calls: readonly TracedCall[];
  readonly paths: readonly string[];
}

/** Names with the time or the process, which strace cannot find again in another run: records of runs, debug dumps, temporary files. */
const RECORD = /\/\.cryptodl\/((tmp|runs)\/|debug-)\d{8}T\d{9}Z-|\/\.?cryptodl-[a-z0-9-]+-[0-9a-f]{8}\./;

export class Tracer {
  readonly #folder: string;
  readonly #lake: string;
  readonly #cpu: string;

  /** `lane` chooses the core. */
  constructor(folder: string, lake: string, lane: number) {
    this.#folder = folder;
    this.#lake = lake;
    const cpus = allowedCpus();
    this.#cpu = String(cpus[lane % cpus.length]);
    writeFileSync(join(folder, 'counted-names.mjs'), COUNTED_NAMES);
  }

  /** An undisturbed run and its calls on the lake. */
  async count(args: readonly string[]): Promise<TracedRun & Traced> {
    const run = await this.#run(args, ['--seccomp-bpf', '-y', '-e', `trace=${CALLS.join(',')}`]);
    const calls: TracedCall[] = [];
    const paths = new Set<string>();
    for (const text of run.lines) {
      const call = CALLS.find((name) => text.replace(/^\d+ +/, '').startsWith(`${name}(`));
      const found = [...text.matchAll(/["<](\/[^">]*)[">]/g)].map(([, path]) => path ?? '');
      const own = found.filter((path) => path === this.#lake || path.startsWith(`${this.#lake}/`));
      if (call === undefined || own.length === 0 || own.some((path) => RECORD.test(path))) continue;
      calls.push({ call, text, kind: [...own.map(kindOf), text.includes('O_CREAT')].join(' ') });
      for (const path of own) for (const name of namesLike(path)) paths.add(name);
    }
    return { ...run, calls, paths: [...paths] };
  }

  /** A run whose `when`-th call of this name on these paths is harmed. */
  harm(
    args: readonly string[],
    { call, when, harm, paths }: { call: Call; when: number; harm: Harm; paths: readonly string[] },
  ): Promise<TracedRun> {
    // With --seccomp-bpf, which is faster, strace 6.1 loses the signals that it should inject.
    const how = harm === 'SIGKILL' ? 'signal=KILL' : `error=${harm}`;
    const fast = harm === 'SIGKILL' ? [] : ['--seccomp-bpf'];
    const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:${how}:when=${when}`];
    return this.#run(args, [...fast, ...paths.flatMap((path) => ['-P', path]), ...inject]);
  }

  async #run(
    args: readonly string[],
    filter: readonly string[],
  ): Promise<TracedRun & { readonly lines: readonly string[] }> {
    const trace = join(this.#folder, 'trace');
    rmSync(trace, { force: true });
    // strace counts per thread: one core is one thread of DuckDB's, and one of libuv's does the rest.
    const command = ['-c', this.#cpu, 'strace', '-f', '-qq', '-o', trace, ...filter];
    const child = spawn('taskset', [...command, process.execPath, BIN, ...args], {
      env: {
        PATH: process.env['PATH'] ?? '',
        CRYPTODL_STATE_DIR: join(this.#folder, 'state'),
        UV_THREADPOOL_SIZE: '1',
        NODE_OPTIONS: `--import ${join(this.#folder, 'counted-names.mjs')}`,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const stderr: Buffer[] = [];
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (exitCode, exitSignal) => {
        resolve([exitCode, exitSignal]);
      });
    });
    const lines = readFileSync(trace, 'utf8').split('\n');
    const isKilled = signal === 'SIGKILL';
    const harmed = lines.find((line) => line.includes('(INJECTED)')) ?? (isKilled ? signal : undefined);
    return { code, signal, stderr: Buffer.concat(stderr).toString('utf8'), harmed, lines };
  }
}

/** `0-1,4` → 0, 1, 4. */
function allowedCpus(): number[] {
  const [, list = '0'] = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return list.split(',').flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}

function kindOf(path: string): string {
  return path
    .replace(COUNTED, '*')
    .replace(/symbol=\w+/, 'symbol=*')
    .replaceAll(/\d{4}-\d{2}-\d{2}/g, 'day');
}

function namesLike(path: string): string[] {
  if (!COUNTED.test(path)) return [path];
  return Array.from({ length: MOST_NAMES }, (_, index) =>
    path.replace(COUNTED, `00000000-0000-4000-8000-${String(index + 1).padStart(12, '0')}`),
  );
}
