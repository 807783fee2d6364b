import { once } from 'node:events';
import { errnoOf } from '../errors.js';
import type { Io } from '../io.js';

/** Writes to stdout as fast as it is read; false when the reader has seen enough (`| head`). */
export async function writeData(io: Io, text: string): Promise<boolean> {
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
