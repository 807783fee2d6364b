/** What this process may use of its machine: memory, cores and open files. Each has the lowest of its limits: the machine, the cgroups, the process. */
import { readFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { dirname, join } from 'node:path';

/** Bytes. `root`: the folder that holds `proc` and `sys`. Node does not see the limit of an outer cgroup of version 1. */
export function memoryLimitBytes(root = '/'): number {
  const limits = cgroupFolders(root, 'memory').flatMap((folder) =>
    ['memory.max', 'memory.high', 'memory.limit_in_bytes'].flatMap((name) => numbersIn(join(folder, name))),
  );
  return Math.min(totalmem(), ...limits);
}

/** At least 1. Node 20 does not see the quotas of cgroups. */
export function cores(root = '/'): number {
  const quotas = cgroupFolders(root, 'cpu').flatMap((folder) => {
    const names = ['cpu.max', 'cpu.cfs_quota_us', 'cpu.cfs_period_us'];
    const [quota = 0, period] = names.flatMap((name) => numbersIn(join(folder, name)));
    return period === undefined ? [] : Math.ceil(quota / period);
  });
  return Math.min(availableParallelism(), ...quotas);
}

/** The folders of the cgroups of this process, from its own to the root. In a container, those of outer groups are absent. */
function cgroupFolders(root: string, controller: string): string[] {
  return textOf(join(root, 'proc/self/cgroup'))
    .split('\n')
    .flatMap((line) => {
      const [, names, path = ''] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
      // Version 2 has all controllers in one folder, and no names.
      if (names === undefined || (names !== '' && !names.split(',').includes(controller))) return [];
      const folders = [path];
      for (let folder = path; folder !== '/'; folder = dirname(folder)) folders.push(dirname(folder));
      return folders.map((folder) => join(root, 'sys/fs/cgroup', names, folder));
    });
}

/** Numbers above 0; other words (`max`, -1) mean no limit. */
function numbersIn(file: string): number[] {
  const words = textOf(file).trim().split(/\s+/);
  return words.map(Number).filter((number) => number > 0);
}

/** The soft limit of open files, which Node has raised to the hard limit; undefined without a limit, or on systems other than Linux. */
export function openFileLimit(root = '/'): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(textOf(join(root, 'proc/self/limits'))) ?? [];
  return soft === undefined ? undefined : Number(soft);
}

/** Open files of a run without its objects: streams, libraries, lock, journal, output files, and the sockets of the listing. */
const BASE_FILES = 72;
/** Open files of an object in flight: two sockets (zip and sidecar) and two spool files (zip and CSV of a large object). */
const FILES_PER_OBJECT = 4;

/** `count`, or as many objects, writers or threads as the limit of open files allows. At least 1. */
export function withinOpenFiles(count: number, limit = openFileLimit()): number {
  if (limit === undefined) return count;
  return Math.min(count, Math.max(1, Math.floor((limit - BASE_FILES) / FILES_PER_OBJECT)));
}

/** Empty for a file that cannot be read. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
