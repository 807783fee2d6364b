/** `--symbols @FILE` and `--symbols -`. */
import { text as readAll } from 'node:stream/consumers';
import type { Io } from '../io.js';
import type { ReadList } from '../plan/symbols.js';
import { readSymbolFile } from '../run/read-symbol-file.js';

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
