import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Environment of a process that loads a script before the program. The script is a file in `folder`. */
export function preload(folder: string, script: string): Record<string, string> {
  const file = join(folder, `${randomUUID()}.mjs`);
  writeFileSync(file, script);
  return { NODE_OPTIONS: `--import ${file}` };
}
