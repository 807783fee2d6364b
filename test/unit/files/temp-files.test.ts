/** The removal of what ended processes have left in a folder that several users share. */
import { chownSync, mkdirSync, readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { expect, it } from 'vitest';
import { removeLeftovers, tempPath } from '../../../src/files/temp-files.js';
import { scratchFolder } from '../../helpers/folders.js';

const scratch = scratchFolder();
const NOBODY = 65534;

/** A folder of a process that has ended. */
function leftFolder(): string {
  const path = tempPath(scratch, 'sql').replace(`.${process.pid}.`, `.${2 ** 22 + 1}.`);
  mkdirSync(path);
  return path;
}

// Only root may give a folder to another user.
it.skipIf(process.getuid?.() !== 0)('removes no folder of another user', async () => {
  const [, theirs] = [leftFolder(), leftFolder()];
  chownSync(theirs, NOBODY, NOBODY);
  await removeLeftovers(scratch);
  expect(readdirSync(scratch)).toEqual([basename(theirs)]);
});
