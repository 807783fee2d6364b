/** A command that loses its lock while it works. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';

/**
 * `folder` has the lock and the folder of temporary files. When the first of these is there, the lock file is damaged, and a minute passes, so
 * that the command looks at it before it commits.
 */
export async function whileLosingLock<T>(folder: string, act: () => Promise<T>): Promise<T> {
  const temporary = join(folder, 'tmp');
  const now = Date.now.bind(Date);
  let isOver = false;
  const lose = (): void => {
    if (isOver) return;
    if (!existsSync(temporary) || readdirSync(temporary).length === 0) return void setImmediate(lose);
    writeFileSync(join(folder, 'lock.json'), '{}');
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 60_000);
  };
  lose();
  try {
    return await act();
  } finally {
    isOver = true;
    vi.restoreAllMocks();
  }
}
