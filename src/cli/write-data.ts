import { once } from 'node:events';
import { errnoOf } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { linesText } from '../text/printable.js';
import type { Line } from '../text/printable.js';

/** Lines to stdout as fast as they are read; false when the reader has seen enough (`| head`). */
export function writeData(io: Io, lines: readonly Line[]): Promise<boolean> {
  return writeText(io, linesText(lines));
}

/** The same of text that must stay as it is: CSV and SQL for programs, and text that is coloured. */
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
