/** Output of data to stdout, at the pace of its reader, and whether it may have colours. */
import { once } from 'node:events';
import { errnoOf } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { linesText, type Line } from '../text/printable.js';
import { widthOf } from '../text/wrap.js';

/** Writes lines to stdout as fast as the reader takes them. Resolves with false if the reader has stopped (`| head`). */
export const writeData = (io: Io, lines: readonly Line[]): Promise<boolean> =>
  writeText(io, linesText(lines, widthOf(io.stdout)));

/** Lines of CSV, NDJSON or SQL for programs: exact in a pipe or a file, escaped on a terminal. */
export const writeExact = (io: Io, text: string): Promise<boolean> =>
  writeText(io, io.stdout.isTTY === true ? linesText(text.split('\n').slice(0, -1)) : text);

/** The same for text that must not be escaped, such as coloured text. Rejects with `io.signal.reason` if a signal ends the wait for the reader. */
export async function writeText(io: Io, text: string): Promise<boolean> {
  if (!io.stdout.write(text)) {
    try {
      await once(io.stdout, 'drain', { signal: io.signal });
    } catch (error) {
      io.signal.throwIfAborted();
      if (errnoOf(error) !== 'EPIPE') throw error;
      return false;
    }
  }
  return io.isRead();
}

/** On a terminal, unless NO_COLOR or TERM=dumb forbids it; FORCE_COLOR decides before both (no-color.org, force-color.org). */
export function hasColour({ stdout, environment }: Pick<Io, 'stdout' | 'environment'>): boolean {
  const { FORCE_COLOR: forced, NO_COLOR: refused, TERM: terminal } = environment;
  if (forced) return !['0', 'false'].includes(forced);
  return stdout.isTTY === true && !refused && terminal !== 'dumb';
}
