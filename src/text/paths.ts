/** Paths from user input, and paths in messages. */
import { relative, resolve, sep } from 'node:path';

/** The absolute path, with `~/` replaced by the home folder: no shell expands it in config files and the environment. */
export function absolutePath(path: string, home: string | undefined): string {
  const expanded =
    home !== undefined && (path === '~' || path.startsWith(`~${sep}`)) ? home + path.slice(1) : path;
  return resolve(expanded);
}

/** A path below the working directory as a relative path; any other path unchanged. */
export function shownPath(path: string): string {
  const below = relative('.', path);
  return below === '' ? '.' : below.startsWith('..') ? path : below;
}
