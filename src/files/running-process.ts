/** Identifies a process of this or another machine, and tells whether it still runs. */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Fields that a platform does not provide are empty. */
export interface RunningProcess {
  readonly pid: number;
  readonly host: string;
  /** /proc/sys/kernel/random/boot_id: changes with every boot. */
  readonly bootId: string;
  /** Field 22 of /proc/<pid>/stat, clock ticks since boot: differs for a later process with the same pid. */
  readonly processStart: string;
  /** /proc/self/ns/pid: a pid is valid only in its namespace, and containers may have the same host name. */
  readonly pidNamespace: string;
}

let own: RunningProcess | undefined;

/** Read once: it stays the same, and a run names each staged file by it. */
export function thisProcess(): RunningProcess {
  own ??= {
    pid: process.pid,
    host: hostname(),
    bootId: textOr(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')).trim(),
    processStart: processOf(process.pid)?.start ?? '',
    pidNamespace: textOr(() => readlinkSync('/proc/self/ns/pid')),
  };
  return own;
}

/**
 * - `gone`: the process has ended (other boot, unknown pid, or the pid belongs to another process).
 * - `here`: the process runs on this machine.
 * - `elsewhere`: the process was started on another host or in another container. It is not visible here whether it still runs.
 */
export type ProcessState = 'gone' | 'here' | 'elsewhere';

export function processState(one: RunningProcess, me: RunningProcess): ProcessState {
  if (one.host !== me.host) return 'elsewhere';
  if (differ(one.bootId, me.bootId)) return 'gone';
  if (differ(one.pidNamespace, me.pidNamespace)) return 'elsewhere';
  if (!isRunning(one.pid)) return 'gone';
  const found = processOf(one.pid);
  // The process runs, but /proc is missing or hides processes of other users.
  if (found === undefined) return 'here';
  return found.isZombie || differ(found.start, one.processStart) ? 'gone' : 'here';
}

const differ = (one: string, other: string): boolean => one !== '' && other !== '' && one !== other;

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process runs as another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function processOf(pid: number): { start: string; isZombie: boolean } | undefined {
  const stat = textOr(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  // Field 2, the program name in parentheses, may contain blanks and parentheses; field 3 is the state (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const start = fields[19];
  return start === undefined ? undefined : { start, isZombie: fields[0] === 'Z' || fields[0] === 'X' };
}

function textOr(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
