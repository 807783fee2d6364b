import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { cores, memoryLimitBytes, openFileLimit, withinOpenFiles } from '../../../src/files/machine.js';
import { scratchFolder } from '../../helpers/folders.js';

const scratch = scratchFolder();
let roots = 0;

/** A root folder with these files, as the kernel shows them. */
function rootWith(files: Readonly<Record<string, string>>): string {
  roots += 1;
  const root = join(scratch, String(roots));
  for (const [path, text] of Object.entries(files)) {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return root;
}

const V1 = {
  'proc/self/cgroup': '9:name=systemd:/\n4:memory:/outer/inner\n2:cpu,cpuacct:/outer/inner\n0::/\n',
};
const V2 = { 'proc/self/cgroup': '0::/outer/inner:1\n' };

it.each<[string, Readonly<Record<string, string>>, number]>([
  ['no cgroups', {}, totalmem()],
  ['no limit of version 2', { ...V2, 'sys/fs/cgroup/outer/memory.max': 'max\n' }, totalmem()],
  [
    'no limit of version 1',
    { ...V1, 'sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n' },
    totalmem(),
  ],
  [
    'limits of two cgroups of version 2',
    {
      ...V2,
      'sys/fs/cgroup/outer/inner:1/memory.max': '900000000\n',
      'sys/fs/cgroup/outer/memory.max': '700000000\n',
    },
    700e6,
  ],
  [
    'a limit above which version 2 slows down',
    { ...V2, 'sys/fs/cgroup/outer/inner:1/memory.high': '600000000\n' },
    600e6,
  ],
  [
    'the limit of an outer cgroup of version 1',
    { ...V1, 'sys/fs/cgroup/memory/outer/memory.limit_in_bytes': '700000000\n' },
    700e6,
  ],
  [
    'a container without the folders of outer cgroups',
    { ...V1, 'sys/fs/cgroup/memory/memory.limit_in_bytes': '500000000\n' },
    500e6,
  ],
])('memoryLimitBytes with %s', (_, files, bytes) => {
  expect(memoryLimitBytes(rootWith(files))).toBe(bytes);
});

it.each<[string, Readonly<Record<string, string>>, number]>([
  ['no cgroups', {}, availableParallelism()],
  ['no quota of version 2', { ...V2, 'sys/fs/cgroup/outer/cpu.max': 'max 100000\n' }, availableParallelism()],
  ['half a core in version 2', { ...V2, 'sys/fs/cgroup/outer/cpu.max': '50000 100000\n' }, 1],
  [
    'one core in version 1',
    {
      ...V1,
      'sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_quota_us': '100000\n',
      'sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_period_us': '100000\n',
    },
    1,
  ],
  [
    'no quota of version 1',
    {
      ...V1,
      'sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_quota_us': '-1\n',
      'sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_period_us': '100000\n',
    },
    availableParallelism(),
  ],
])('cores with %s', (_, files, count) => {
  expect(cores(rootWith(files))).toBe(count);
});

it('openFiles is the soft limit of the process', () => {
  const limits = (soft: string): string =>
    rootWith({
      'proc/self/limits': `Max processes  96382  96382  processes\nMax open files  ${soft}  4096  files\n`,
    });
  expect(openFileLimit(limits('64'))).toBe(64);
  expect(openFileLimit(limits('unlimited'))).toBeUndefined();
  expect(openFileLimit(rootWith({}))).toBeUndefined();
});

it.each([
  [undefined, 128],
  [584, 128],
  [256, 46],
  [76, 1],
  [20, 1],
])('withinOpenFiles with a limit of %s', (limit, count) => {
  expect(withinOpenFiles(128, limit ?? Number.POSITIVE_INFINITY)).toBe(count);
});
