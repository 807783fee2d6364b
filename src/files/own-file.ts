/** A file that a flag names. It replaces only a file that the program made, and is renamed from a staged file when it is complete. */
import type { Stats } from 'node:fs';
import { chmod, lstat, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CryptodlError, errnoOf, usage } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { shownPath } from '../text/printable.js';
import { makeFolder, withFile } from './disk.js';
import { stagedBeside } from './temp-files.js';

export interface OwnFile {
  /** Without dashes. */
  readonly flag: string;
  /** Absolute. */
  readonly path: string;
  /** `a report`: what the file is. */
  readonly what: string;
  readonly isOwn: (path: string) => Promise<boolean>;
  /** The value of --force; undefined for a verb without the flag. */
  readonly force?: boolean;
  /** Mode of the file, whatever the umask is. */
  readonly mode?: number;
  /** Whether a pipe or a device, also behind a link such as /dev/stdout, is written to directly. */
  readonly takesStreams?: boolean;
}

/** Whether a file begins so, for `isOwn`. An empty file counts, as `mktemp` makes one. */
export function beginsWith(start: string): OwnFile['isOwn'] {
  return async (path) => {
    const head = Buffer.alloc(Buffer.byteLength(start));
    const { bytesRead } = await withFile(path, 'r', (file) => file.read(head, 0, head.length, 0));
    return bytesRead === 0 || head.toString('utf8', 0, bytesRead) === start;
  };
}

async function isStream({ path, takesStreams }: OwnFile): Promise<boolean> {
  if (takesStreams !== true) return false;
  const facts = await stat(path).catch(() => undefined);
  return facts?.isFIFO() === true || facts?.isCharacterDevice() === true;
}

/** Rejects with a usage error for a folder, a link or a device, and without `force` for a file that the program did not make. */
export async function refuseForeignFile(own: OwnFile): Promise<void> {
  const { flag, path, what, isOwn, force } = own;
  const refuse = (problem: string, hint = ''): Error =>
    usage(`--${flag} ${shownPath(path)} ${problem}`, `choose another --${flag}${hint}`);
  if (await isStream(own)) return;
  let facts: Stats;
  try {
    facts = await lstat(path);
    if (facts.isFile() && (force === true || (await isOwn(path)))) return;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return;
    throw refuse(`cannot be used (${reasonOf(error)})`);
  }
  if (facts.isFile())
    throw refuse(
      `is not ${what}, and is not replaced`,
      force === undefined ? ', or remove the file' : ', or add --force',
    );
  const kind = facts.isDirectory() ? 'is a folder' : facts.isSymbolicLink() ? 'is a link' : 'is not a file';
  throw refuse(`${kind}, and is not replaced`);
}

/**
 * Calls `write` with the path of an empty staged file, and renames the file. Resolves with its size in bytes, 0 for a stream. After an error, the
 * place is as before. Rejects with a usage error for a foreign file, also if it appeared while `write` worked, and with `disk` if the
 * file cannot be written.
 */
export async function writeOwnFile(
  own: OwnFile,
  write: (staged: string) => Promise<unknown>,
): Promise<number> {
  const { flag, path, mode } = own;
  let staged: string | undefined;
  try {
    if (await isStream(own)) {
      await write(path);
      return 0;
    }
    await makeFolder(dirname(path));
    staged = await stagedBeside(path);
    // The system gives the reason of a failure; DuckDB gives only a text.
    await writeFile(staged, '', { flag: 'wx' });
    await write(staged);
    if (mode !== undefined) await chmod(staged, mode);
    const size = await withFile(staged, 'r+', async (file) => {
      await file.sync();
      return (await file.stat()).size;
    });
    await refuseForeignFile(own);
    await rename(staged, path);
    return size;
  } catch (error) {
    if (staged !== undefined) await rm(staged, { force: true }).catch(() => undefined);
    if (error instanceof CryptodlError || errnoOf(error) === 'unknown error') throw error;
    const problem = `--${flag} ${shownPath(path)} cannot be written (${reasonOf(error)})`;
    throw new CryptodlError('disk', problem, { cause: error, hint: `choose another place with --${flag}` });
  }
}
