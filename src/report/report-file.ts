/** The file of a failure report: begun with its first line, under its own name when all is written. */
import { mkdir, open, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errnoOf } from '../errors.js';
import type { ReportHeader } from './read-failure-report.js';

export interface ReportFileOptions {
  readonly path: string;
  readonly header: Omit<ReportHeader, 'v' | 'kind'>;
  /**
   * `new`: beside earlier reports, under a name that none of them has. `overwrite`: the file that was asked for.
   * `replace`: takes the place of an earlier report when the run ends, even empty: what succeeded leaves it.
   */
  readonly mode: 'new' | 'overwrite' | 'replace';
}

export interface ReportFile {
  /** Text of whole lines; the header goes before the first. */
  append(lines: string): Promise<void>;
  /** Path of the report, when there is one. A run that did not reach its end leaves the report it would replace. */
  close(isComplete: boolean): Promise<string | undefined>;
}

export function createReportFile(options: ReportFileOptions): ReportFile {
  const replaces = options.mode === 'replace';
  let path = replaces ? `${options.path}.partial` : options.path;
  let file: Promise<FileHandle> | undefined;
  let tail = Promise.resolve();
  const start = async (): Promise<FileHandle> => {
    await mkdir(dirname(path), { recursive: true });
    const opened = options.mode === 'new' ? await openNew(path) : { path, handle: await open(path, 'w') };
    path = opened.path;
    const header = JSON.stringify({ v: 1, kind: 'header', ...options.header });
    await opened.handle.appendFile(`${header}\n`);
    return opened.handle;
  };
  return {
    append: async (lines) => {
      const opened = await (file ??= start());
      const mine = tail.then(() => opened.appendFile(lines));
      tail = mine;
      await mine;
    },
    close: async (isComplete) => {
      if (file === undefined && replaces) file = start();
      // A run without failures leaves no failures of an earlier one under the name that it was given.
      if (file === undefined && options.mode === 'overwrite' && isComplete) await rm(path, { force: true });
      if (file === undefined) return undefined;
      const opened = await file;
      await tail;
      await opened.sync();
      await opened.close();
      if (replaces && isComplete) await rename(path, options.path);
      else if (replaces) await rm(path);
      return replaces ? options.path : path;
    },
  };
}

/** `vision-….jsonl`, or `vision-…-2.jsonl` where an earlier run of the same second has that name. */
async function openNew(path: string): Promise<{ path: string; handle: FileHandle }> {
  for (let copy = 1; ; copy += 1) {
    const candidate = copy === 1 ? path : path.replace(/(\.\w+)?$/, `-${copy}$1`);
    try {
      return { path: candidate, handle: await open(candidate, 'wx') };
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
    }
  }
}
