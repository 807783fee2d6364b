/** The file of a page: checked before the work begins, staged beside its place, and renamed when it is complete. */
import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { lstat, open, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { beginsWith } from '../files/own-file.js';
import { publish } from '../lake/publish.js';
import { CryptodlError, errnoOf, usage } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';

/** A kind of file that a verb writes. */
export interface PageKind {
  /** The flag that names the file. */
  readonly flag: 'html';
  /** `report`: what the file is. */
  readonly what: string;
  /** The beginning of each such file. A file that begins so may be replaced. */
  readonly start: string;
}

/** Throws a usage error for a place where the file cannot be written. Without `force`, only a file of the same kind is replaced. */
export async function refusePlace(
  path: string,
  { flag, what, start }: PageKind,
  { force }: { readonly force: boolean },
): Promise<void> {
  const folder = dirname(path);
  const place = `--${flag} ${path}`;
  const parent = await statsOf(folder, stat, place);
  if (parent?.isDirectory() !== true)
    throw usage(
      parent === undefined ? `${place}: there is no folder ${folder}` : `${place}: ${folder} is no folder`,
      'create the folder, or choose another place',
    );
  const facts = await statsOf(path, lstat, place);
  if (facts === undefined) return;
  if (facts.isDirectory()) throw usage(`${place} is a folder`, 'name a file');
  if (!facts.isFile())
    throw usage(`${place} is neither a file nor free: links and devices are not written to`, 'name a file');
  if (force || (await beginsWith(path, start))) return;
  throw usage(`${place} is not a ${what}, and is not replaced`, 'choose another file, or add --force');
}

async function statsOf(
  path: string,
  look: (path: string) => Promise<Stats>,
  place: string,
): Promise<Stats | undefined> {
  try {
    return await look(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw usage(`${place} cannot be checked (${reasonOf(errnoOf(error))})`, 'choose another place');
  }
}

const BUFFERED = 256 * 1024;

/** Writes the parts, and resolves with the size in bytes. After an error, the place is as before. */
export async function writePage(
  path: string,
  { flag }: Pick<PageKind, 'flag'>,
  parts: AsyncIterable<string> | Iterable<string>,
): Promise<number> {
  const staged = join(dirname(path), `.${basename(path)}.${randomBytes(4).toString('hex')}.partial`);
  try {
    const file = await open(staged, 'wx');
    let bytes: number;
    try {
      bytes = await writeParts(file, parts);
    } finally {
      await file.close();
    }
    await publish(staged, path);
    return bytes;
  } catch (error) {
    await rm(staged, { force: true });
    if (error instanceof CryptodlError || errnoOf(error) === '') throw error;
    throw new CryptodlError('disk', `--${flag} ${path} cannot be written (${reasonOf(errnoOf(error))})`, {
      cause: error,
      hint: `choose another place with --${flag}`,
    });
  }
}

async function writeParts(
  file: FileHandle,
  parts: AsyncIterable<string> | Iterable<string>,
): Promise<number> {
  let bytes = 0;
  let waiting = '';
  const flush = async (): Promise<void> => {
    const buffer = Buffer.from(waiting, 'utf8');
    waiting = '';
    await file.writeFile(buffer);
    bytes += buffer.length;
  };
  for await (const part of parts) {
    waiting += part;
    if (waiting.length >= BUFFERED) await flush();
  }
  await flush();
  return bytes;
}
