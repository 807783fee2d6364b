import { relative, resolve, sep } from 'node:path';

/** `~/` is the home folder, as a shell would have it: config files and the environment know no shell. */
export function absolutePath(path: string, home: string | undefined): string {
  const expanded =
    home !== undefined && (path === '~' || path.startsWith(`~${sep}`)) ? home + path.slice(1) : path;
  return resolve(expanded);
}

/** Relative when it is below the working directory, else as it is. */
export function shownPath(path: string): string {
  const below = relative('.', path);
  return below === '' ? '.' : below.startsWith('..') ? path : below;
}
