/** What is wrong with a path that the user named, in words. */
import { errnoOf, usage, type CryptodlError } from '../model/errors.js';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is a file',
  // The system gives this code for a folder that cannot be made because of a file of that name.
  EEXIST: 'a part of the path is a file',
  EACCES: 'no permission',
  EPERM: 'no permission',
  EROFS: 'the file system is read-only',
  ELOOP: 'its links form a loop',
  ENAMETOOLONG: 'the name is too long',
  EFBIG: 'it is too large',
};

/** The reason of a system error about a path, for example `no such file or folder` for `ENOENT`. */
export function reasonOf(error: unknown): string {
  const code = errnoOf(error);
  return REASONS[code] ?? code;
}

/** The usage error for a file that cannot be read. `where`: the flag or argument that names the file. */
export const unreadable = (where: string, path: string, error: unknown, hint: string): CryptodlError =>
  usage(`${where}: cannot read ${path} (${reasonOf(error)})`, hint);
