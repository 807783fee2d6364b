/** Evidence of refused objects: the bytes, and one line that says why. */
import { errnoOf } from '../errors.js';
import { constants } from 'node:fs';
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Body } from '../fetch.js';
import type { LakePaths } from './layout.js';
import { keyFile } from './layout.js';

/** Resolves with the path of the kept bytes. A later refusal of the same key replaces them. */
export async function quarantine(paths: LakePaths, key: string, body: Body, cause: string): Promise<string> {
  const place = `quarantine/${keyFile(key)}`;
  const path = join(await paths.folder(dirname(place)), basename(place));
  await mkdir(dirname(path), { recursive: true });
  // Whatever has the name makes way: a link would be written through.
  await rm(path, { force: true });
  if (body.kind === 'memory') await writeFile(path, body.bytes, { flag: 'wx' });
  else await move(body.path, path);
  await rm(`${path}.cause`, { force: true });
  await writeFile(`${path}.cause`, `${cause.replaceAll(/\s+/g, ' ')}\n`, { flag: 'wx' });
  return path;
}

async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (errnoOf(error) !== 'EXDEV') throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL);
    await rm(from, { force: true });
  }
}
