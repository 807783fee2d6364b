import { mkdtempSync, rmSync } from 'node:fs';
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
