import type { FileHandle } from 'node:fs/promises';

/** Writes all chunks one after the other, in one call where the system takes them so. */
export async function writeAllChunks(
  file: FileHandle,
  chunks: readonly Buffer[],
  from: number,
): Promise<void> {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  if (length === 0) return;
  const { bytesWritten } = await file.writev(chunks, from);
  if (bytesWritten === length) return;
  // A short write is legal; the rest goes out piece by piece.
  const all = Buffer.concat(chunks);
  for (let at = bytesWritten; at < length;)
    at += (await file.write(all, at, length - at, from + at)).bytesWritten;
}
