/** A file that a flag names is replaced only if the program made it: its beginning tells. */
import { randomUUID } from 'node:crypto';
import { open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { errnoOf, usage } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { shownPath } from '../text/printable.js';

interface OwnFile {
  /** Without dashes. */
  readonly flag: string;
  readonly path: string;
  /** `file of these metrics`: what the file is. */
  readonly what: string;
  /** The beginning of each such file. */
  readonly start: string;
}

/** Rejects with a usage error if the path has a file of another kind. Free places, folders, devices and pipes pass. */
export async function refuseForeignFile({ flag, path, what, start }: OwnFile): Promise<void> {
  // A place that cannot be used is refused when the file is opened.
  const facts = await stat(path).catch(() => undefined);
  if (facts?.isFile() !== true) return;
  let problem = `is not a ${what}, and is not replaced`;
  try {
    if (await beginsWith(path, start)) return;
  } catch (error) {
    problem = `cannot be read (${reasonOf(errnoOf(error))})`;
  }
  throw usage(`--${flag} ${shownPath(path)} ${problem}`, `choose another --${flag}, or remove the file`);
}

/** An empty file counts, as `mktemp` makes one. */
export async function beginsWith(path: string, start: string): Promise<boolean> {
  const head = Buffer.alloc(start.length);
  const file = await open(path, 'r');
  try {
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    return bytesRead === 0 || head.toString('latin1', 0, bytesRead) === start;
  } finally {
    await file.close();
  }
}

/**
 * Writes a file that appears under its name only when it is complete, whatever reads it at that time. A device or a pipe is written to
 * directly. `mode`: also against the umask. Rejects with errors of the system, and leaves no partial file behind.
 */
export async function replaceFile(path: string, text: string, mode?: number): Promise<void> {
  const facts = await stat(path).catch(() => undefined);
  if (facts?.isFile() === false) {
    await writeFile(path, text);
    return;
  }
  const staged = `${path}.${randomUUID()}`;
  try {
    const file = await open(staged, 'wx');
    try {
      if (mode !== undefined) await file.chmod(mode);
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(staged, path);
  } catch (error) {
    await rm(staged, { force: true }).catch(() => undefined);
    throw error;
  }
}
