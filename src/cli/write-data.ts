/** Output of data to stdout, at the pace of its reader. */
import { once } from 'node:events';
import { errnoOf } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { linesText } from '../text/printable.js';
import type { Line } from '../text/printable.js';
import { widthOf } from '../text/wrap.js';

/** Writes lines to stdout as fast as the reader takes them. Resolves with false if the reader has stopped (`| head`). */
export function writeData(io: Io, lines: readonly Line[]): Promise<boolean> {
  return writeText(io, linesText(lines, widthOf(io.stdout)));
}

/** The same for text that must not be escaped: CSV and SQL for programs, and coloured text. */
export async function writeText(io: Io, text: string): Promise<boolean> {
  if (!io.stdout.write(text)) {
    try {
      await once(io.stdout, 'drain');
    } catch (error) {
      if (errnoOf(error) !== 'EPIPE') throw error;
      return false;
    }
  }
  return io.isRead();
}
