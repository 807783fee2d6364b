/** What is wrong with a path that the user named, in words, and the next step. */
import { readdirSync } from 'node:fs';
import { join, parse } from 'node:path';
import { nearest } from './did-you-mean.js';

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
};

/** The reason of a system error about a path, for example `no such file or folder` for `ENOENT`. */
export function reasonOf(code: string): string {
  return REASONS[code] ?? code;
}

/** The next step for a file that cannot be read; undefined where neither the code nor the folder of the file gives one. */
export function unreadableHint(code: string, path: string): string | undefined {
  if (code === 'EISDIR') return 'name a file';
  if (code === 'EACCES' || code === 'EPERM') return 'this user may not read it: see its permissions';
  const near = code === 'ENOENT' ? nearestFile(path) : undefined;
  return near === undefined ? undefined : `did you mean ${near}?`;
}

/** The file with the nearest name and the same extension in the folder of the path. */
function nearestFile(path: string): string | undefined {
  const { dir, name, ext } = parse(path);
  try {
    const files = readdirSync(dir === '' ? '.' : dir, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => parse(entry.name));
    const near = nearest(
      name,
      files.filter((file) => file.ext === ext).map((file) => file.name),
    );
    return near === undefined ? undefined : join(dir, `${near}${ext}`);
  } catch {
    return undefined;
  }
}
