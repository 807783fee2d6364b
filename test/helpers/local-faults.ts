/** What the machine under the program can do to it: real disks, real kernels, or strace in their place. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { CliOptions } from './cli.js';

function works(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Why tests with strace, mounts, other users or clocks cannot be run here; undefined when they can. */
export const MISSING = {
  strace: works('strace', '-qq', '-e', 'trace=none', 'true')
    ? undefined
    : 'needs strace and leave to trace: apt-get install strace',
  mount: works('unshare', '--mount', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir())
    ? undefined
    : 'needs root, to mount a file system',
  user: works('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'true')
    ? undefined
    : 'needs root, to run as another user',
  cgroup: isWritable('/sys/fs/cgroup/memory/memory.use_hierarchy')
    ? undefined
    : 'needs root and cgroups of version 1, to limit the memory of a process',
  faketime: works('faketime', '-f', '+1d', 'true') ? undefined : 'needs faketime: apt-get install faketime',
};

/** Options of a run whose system calls are tampered with, as strace(1) says at --inject; only on `paths`, if any are given. */
export function strace(inject: string, ...paths: readonly string[]): CliOptions {
  const [calls = ''] = inject.split(':');
  const where = paths.flatMap((path) => ['-P', path]);
  // The kernel's filter makes it cheap, but loses injected signals.
  const how = inject.includes('signal=') ? [] : ['--seccomp-bpf'];
  const what = ['-e', `trace=${calls}`, ...where, '-e', `inject=${inject}`];
  return {
    wrap: ['strace', '-f', ...how, '-qqq', '-o', '/dev/null', ...what],
    // Strace counts calls per thread.
    env: { UV_THREADPOOL_SIZE: '1' },
  };
}

/** Like `strace`, but the calls are only written down, into `log`. */
export function watched(calls: string, log: string): CliOptions {
  return {
    wrap: ['strace', '-f', '--seccomp-bpf', '-qqq', '-y', '-s', '0', '-o', log, '-e', `trace=${calls}`],
    env: { UV_THREADPOOL_SIZE: '1' },
  };
}

/** A file system of its own, with options of tmpfs(5) such as `size=1m`; gone when the test is over. */
export function mounted(options: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'cryptodl-disk-'));
  if (!works('mount', '-t', 'tmpfs', '-o', options, 'tmpfs', folder)) throw new Error('mount failed');
  onTestFinished(() => {
    works('umount', '--lazy', folder);
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** The line of a shell that enters a new cgroup, whose outer cgroup has this limit of memory. Both are removed when the test is over. */
export function enterMemoryCgroup(bytes: number): string {
  const outer = mkdtempSync('/sys/fs/cgroup/memory/cryptodl-test-');
  const inner = join(outer, 'inner');
  mkdirSync(inner);
  onTestFinished(() => {
    for (const folder of [inner, outer]) rmdirSync(folder);
  });
  writeFileSync(join(outer, 'memory.limit_in_bytes'), String(bytes));
  return `echo $$ > ${inner}/cgroup.procs`;
}

/** Mounts a folder or file over itself, read-only, until the test is over or the returned function is called. */
export function readOnly(path: string): () => void {
  const isBound = works('mount', '--bind', path, path) && works('mount', '-o', 'remount,bind,ro', path);
  if (!isBound) throw new Error('mount failed');
  let isMounted = true;
  const release = (): void => {
    if (isMounted) works('umount', '--lazy', path);
    isMounted = false;
  };
  onTestFinished(release);
  return release;
}

/** Environment of a run whose wall clock is `file`'s word, such as `+1d`, at any moment; the monotonic one stays true. */
export function fakeClock(file: string): Readonly<Record<string, string>> {
  const { stdout } = spawnSync('faketime', ['-m', '-f', '+0', 'printenv', 'LD_PRELOAD'], {
    encoding: 'utf8',
  });
  return {
    LD_PRELOAD: stdout.trim(),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
}
