/** Changes of a folder while a command works in it. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';

/** `folder` has temporary files, or a folder of them. Calls `change` once, when the first of these is there and the command has not committed. */
export async function whileStaged<T>(folder: string, change: () => void, act: () => Promise<T>): Promise<T> {
  let isOver = false;
  const look = (): void => {
    if (isOver) return;
    if (isEmpty(join(folder, 'tmp')) && !namesIn(folder).some((name) => name.startsWith('.cryptodl-staged')))
      setImmediate(look);
    else change();
  };
  look();
  try {
    return await act();
  } finally {
    isOver = true;
  }
}

function isEmpty(folder: string): boolean {
  return namesIn(folder).length === 0;
}

/** None for a folder that is missing: the command may remove it at any time. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Damages the lock file of `folder` while a command works, and lets a minute pass, so that the command looks at it before it commits. */
export async function whileLosingLock<T>(folder: string, act: () => Promise<T>): Promise<T> {
  const now = Date.now.bind(Date);
  const lose = (): void => {
    writeFileSync(join(folder, 'lock.json'), '{}');
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 60_000);
  };
  try {
    return await whileStaged(folder, lose, act);
  } finally {
    vi.restoreAllMocks();
  }
}
