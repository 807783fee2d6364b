/** `@FILE` among the symbols. */
import { readFile } from 'node:fs/promises';
import { errnoOf, usage } from '../errors.js';
import type { ReadList } from '../plan/symbols.js';

/** Throws usage errors for a file that cannot be read, and for standard input, which only a command line has. */
export const readSymbolFile: ReadList = async (source) => {
  if (source === 'stdin')
    throw usage(
      'symbols: "-" stands for the standard input of a command line',
      'write @FILE for a list in a file',
    );
  try {
    return await readFile(source.file, 'utf8');
  } catch (error) {
    throw usage(
      `--symbols: cannot read ${source.file} (${errnoOf(error)})`,
      'write @FILE for a list of symbols in a file',
    );
  }
};
