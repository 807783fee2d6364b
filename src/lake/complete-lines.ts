/** Reading of append-only files of lines. A crash may leave an incomplete last line. */
import { closeSync, fstatSync, readSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { CryptodlError, unlessMissing, withPath } from '../model/errors.js';
import { shownPath } from '../text/printable.js';
import { openForReading } from '../files/path-checks.js';
import { NEWLINE } from '../text/csv.js';

const CHUNK_BYTES = 256 * 1024;

/** Lines that end with a newline, in batches. A missing file has none; an incomplete last line is left out. */
export async function* completeLines(path: string): AsyncGenerator<string[]> {
  const file = await unlessMissing(openForReading(path));
  if (file !== undefined) yield* completeLinesOf(file, path);
}

/** No line of the program is as long. Without a limit, a damaged file could take all memory. */
const LONGEST_LINE = 64 * 1024 * 1024;

/** The same for a descriptor, which it closes. `onTail` gets an incomplete last line. Rejects with `manifest-damaged` for a line above 64 MiB. */
export async function* completeLinesOf(
  file: number,
  path: string,
  onTail: (text: string) => void = () => undefined,
): AsyncGenerator<string[]> {
  try {
    // A large buffer for each small file would make V8 collect garbage more often.
    let buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, fstatSync(file).size + 1));
    /** Bytes of a line whose end was not read yet. */
    let kept = 0;
    for (;;) {
      if (kept > LONGEST_LINE)
        throw new CryptodlError('manifest-damaged', `${shownPath(path)} has a line of more than 64 MiB`, {
          hint: 'restore the file from a copy; or move it away, and run the download again',
        });
      if (kept === buffer.length) buffer = Buffer.concat([buffer], 2 * kept);
      // The call blocks, because it takes microseconds, and a round trip to the thread pool takes many times as long. Other work gets a turn before it.
      await nextTurn();
      const bytesRead = readSync(file, buffer, kept, buffer.length - kept, null);
      if (bytesRead === 0) {
        if (kept > 0) onTail(buffer.toString('utf8', 0, kept));
        return;
      }
      const filled = kept + bytesRead;
      const end = buffer.lastIndexOf(NEWLINE, filled - 1) + 1;
      yield linesIn(buffer, end);
      buffer.copyWithin(0, end, filled);
      kept = filled - end;
    }
  } catch (error) {
    throw withPath(error, path);
  } finally {
    closeSync(file);
  }
}

/** Each line is a text of its own: a kept part of one text with all lines would keep all of them in memory. */
function linesIn(buffer: Buffer, end: number): string[] {
  const lines: string[] = [];
  for (let from = 0; from < end;) {
    const to = buffer.indexOf(NEWLINE, from);
    lines.push(buffer.toString('utf8', from, to));
    from = to + 1;
  }
  return lines;
}

const TAIL_BYTES = 64 * 1024;

/** The number of bytes up to and including the last newline. */
export async function completeLinesLength(file: FileHandle, size: number): Promise<number> {
  let end = size;
  while (end > 0) {
    const start = Math.max(0, end - TAIL_BYTES);
    const buffer = Buffer.alloc(end - start);
    await file.read(buffer, 0, buffer.length, start);
    const newline = buffer.lastIndexOf(NEWLINE);
    if (newline >= 0) return start + newline + 1;
    end = start;
  }
  return 0;
}
