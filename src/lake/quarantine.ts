/** Evidence of refused objects: the bytes, and one line that says why. */
import { errnoOf } from '../errors.js';
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Body } from '../fetch.js';
import type { LakePaths } from './layout.js';
import { keyFile } from './layout.js';

/** Resolves with the path of the kept bytes. A later refusal of the same key replaces them. */
export async function quarantine(paths: LakePaths, key: string, body: Body, cause: string): Promise<string> {
  const path = join(paths.quarantine, keyFile(key));
  await mkdir(dirname(path), { recursive: true });
  if (body.kind === 'memory') await writeFile(path, body.bytes);
  else await move(body.path, path);
  await writeFile(`${path}.cause`, `${cause.replaceAll(/\s+/g, ' ')}\n`);
  return path;
}

async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (errnoOf(error) !== 'EXDEV') throw error;
    await copyFile(from, to);
    await rm(from, { force: true });
  }
}
