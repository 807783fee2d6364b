/** `--symbols @FILE` and `--symbols -`. */
import { text as readAll } from 'node:stream/consumers';
import { readFile } from 'node:fs/promises';
import { errnoOf, usage } from '../model/errors.js';
import type { Io } from '../model/io.js';
import type { ReadList } from './symbol-patterns.js';

export function readLists(io: Io): ReadList {
  return endedBySignals(io, (source) => (source === 'stdin' ? readAll(io.stdin) : readSymbolFile(source)));
}

/**
 * A FIFO without a writer blocks a thread, and `process.exit` waits for that thread: a signal ends the process itself. No
 * object is asked for yet.
 */
export function endedBySignals(io: Pick<Io, 'kill' | 'onSignal'>, read: ReadList): ReadList {
  return async (source) => {
    const release = io.onSignal((signal) => {
      io.kill(signal);
    });
    try {
      return await read(source);
    } finally {
      release();
    }
  };
}

// `@FILE` among the symbols.

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
