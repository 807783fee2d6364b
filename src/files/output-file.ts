/** Opens a file that a flag names, for text that a run writes as it goes. */
import { closeSync, constants, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf, usage } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { shownPath } from '../text/printable.js';
import { makeFolderSync } from './disk.js';

interface OutputFile {
  /** Without dashes. */
  readonly flag: string;
  readonly path: string;
  readonly mode: 'append' | 'replace';
}

/**
 * Returns the descriptor. Throws a usage error if the path cannot be opened. A pipe without a reader is an error too; an ordinary
 * open would wait forever.
 */
export function openOutputFile({ flag, path, mode }: OutputFile): number {
  let first: number | undefined;
  try {
    makeFolderSync(dirname(path));
    const isPipe = statSync(path, { throwIfNoEntry: false })?.isFIFO() === true;
    first = isPipe ? openSync(path, constants.O_WRONLY | constants.O_NONBLOCK) : undefined;
    return openSync(path, mode === 'append' ? 'a' : 'w');
  } catch (error) {
    const reason = errnoOf(error) === 'ENXIO' ? 'nothing reads it, ENXIO' : reasonOf(errnoOf(error));
    throw usage(
      `--${flag} ${shownPath(path)} cannot be written (${reason})`,
      `choose another --${flag}, or leave it out`,
    );
  } finally {
    if (first !== undefined) closeSync(first);
  }
}
