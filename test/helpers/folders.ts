import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A new empty folder, removed when the test file is done. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cryptodl-'));
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** Changes all bits of the byte at `offset`. */
export function flipByte(path: string, offset: number): void {
  const bytes = readFileSync(path);
  bytes[offset] = 255 - (bytes[offset] ?? 0);
  writeFileSync(path, bytes);
}

/** Files below the folder that this process holds open, as Linux tells. */
export function openFiles(folder: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const path = readlinkSync(join('/proc/self/fd', descriptor));
      return path.startsWith(folder) ? [path] : [];
    } catch {
      // Closed since it was listed.
      return [];
    }
  });
}
