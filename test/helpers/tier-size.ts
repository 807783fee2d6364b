/**
 * How much of a test with many seeds, runs or rows is done: all of it in the long tier and in a file that differs from the last
 * commit but one, a part in every other file of `npm test`.
 */
import { execFileSync } from 'node:child_process';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const IS_LONG = process.env['CRYPTODL_TEST_SIZE'] === 'long';

let changedFiles: ReadonlySet<string> | undefined;

export function sized<T>(all: T, usual: T): T {
  if (IS_LONG) return all;
  changedFiles ??= new Set([
    ...linesOf('git', ['diff', '--name-only', '--relative', 'HEAD~1', '--', 'test']),
    ...linesOf('git', ['ls-files', '--others', '--exclude-standard', 'test']),
  ]);
  return changedFiles.has(relative(ROOT, expect.getState().testPath ?? '')) ? all : usual;
}

/** The first so many rows of a table where `sized` gives a part. */
export function sizedRows<T>(rows: readonly T[], usual: number): readonly T[] {
  return sized(rows, rows.slice(0, usual));
}

/** Of the output; none where the program fails, for example outside of a clone. */
function linesOf(program: string, args: readonly string[]): string[] {
  try {
    const output = execFileSync(program, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'ignore'] });
    return output.toString().split('\n');
  } catch {
    return [];
  }
}
