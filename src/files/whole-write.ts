/** Writes that complete also when the system accepts only a part of the bytes. */
import type { FileHandle } from 'node:fs/promises';

/** Writes all chunks from byte `from` on, in one system call if possible. Rejects with the error of the system. */
export async function writeAllChunks(
  file: FileHandle,
  chunks: readonly Buffer[],
  from: number,
): Promise<void> {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  if (length === 0) return;
  const { bytesWritten } = await file.writev(chunks, from);
  if (bytesWritten === length) return;
  // POSIX allows a write to stop early.
  const all = Buffer.concat(chunks);
  for (let at = bytesWritten; at < length;)
    at += (await file.write(all, at, length - at, from + at)).bytesWritten;
}
