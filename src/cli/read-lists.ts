/** `--symbols @FILE` and `--symbols -`. */
import { text as readAll } from 'node:stream/consumers';
import type { Io } from '../io.js';
import type { ReadList } from '../plan/symbols.js';
import { readSymbolFile } from '../run/read-symbol-file.js';

export function readLists(io: Io): ReadList {
  return (source) => (source === 'stdin' ? readAll(io.stdin) : readSymbolFile(source));
}
