/**
 * The worker thread of `file-writer.ts`. Its calls block, because nothing else runs on this thread. Only syncs use the thread pool, so that the disk takes several at once.
 */
import { closeSync, copyFileSync, fsync, openSync, rmSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { parentPort } from 'node:worker_threads';
import { withPath } from '../model/errors.js';
import type { FileError, FileJob, FileToWrite } from './file-writer.js';

/** Maximum number of files that one job has open at the same time; these files are synced concurrently. */
const AT_ONCE = 64;
const synced = promisify(fsync);

parentPort?.on('message', ({ id, files }: FileJob) => {
  void failureOf(files).then((error) => {
    // eslint-disable-next-line unicorn/require-post-message-target-origin -- a port between threads has no origin
    parentPort?.postMessage({ id, error });
  });
});

async function failureOf(files: readonly FileToWrite[]): Promise<FileError | undefined> {
  try {
    for (let at = 0; at < files.length; at += AT_ONCE)
      await Promise.all(files.slice(at, at + AT_ONCE).map((file) => writeOne(file)));
    return undefined;
  } catch (error) {
    // After an error of the disk, these files would take its space until the next run.
    for (const { staged } of files) rmSync(staged, { force: true });
    return fieldsOf(error);
  }
}

async function writeOne({ content, staged }: FileToWrite): Promise<void> {
  if (typeof content === 'string') copyFileSync(content, staged);
  const file = openSync(staged, typeof content === 'string' ? 'r+' : 'w');
  try {
    if (typeof content !== 'string') writeFileSync(file, content);
    await synced(file);
  } catch (error) {
    throw withPath(error, staged);
  } finally {
    closeSync(file);
  }
}

/** Errors lose their `code` when they are copied between threads, so the fields are sent one by one. */
function fieldsOf(error: unknown): FileError {
  if (!(error instanceof Error)) return { message: String(error) };
  const { message, code, errno, syscall } = error as NodeJS.ErrnoException;
  return { message, code, errno, syscall };
}
