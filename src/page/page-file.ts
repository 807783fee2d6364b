/** The file of a page: checked before the work begins, staged beside its place, and renamed when it is complete. */
import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { lstat, open, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { publish } from '../lake/publish.js';
import { CryptodlError, errnoOf, usage } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { PAGE_START } from './shell.js';

/** Throws a usage error for a place where the page cannot be written. Without `force`, only a report is replaced. */
export async function refusePlace(path: string, { force }: { readonly force: boolean }): Promise<void> {
  const folder = dirname(path);
  const parent = await statsOf(folder, stat, path);
  if (parent?.isDirectory() !== true)
    throw usage(
      parent === undefined
        ? `--html ${path}: there is no folder ${folder}`
        : `--html ${path}: ${folder} is no folder`,
      'create the folder, or choose another place',
      { flags: { html: basename(path) } },
    );
  const facts = await statsOf(path, lstat, path);
  if (facts === undefined) return;
  if (facts.isDirectory())
    throw usage(`--html ${path} is a folder`, 'name a file', {
      flags: { html: join(path, 'cryptodl-report.html') },
    });
  if (!facts.isFile())
    throw usage(
      `--html ${path} is neither a file nor free: links and devices are not written to`,
      'name a file',
    );
  if (force || (await isPage(path))) return;
  throw usage(`--html ${path} is not a report, and is not replaced`, 'choose another file, or add --force', {
    flags: { html: path.replace(/(?:\.html?)?$/i, '-report.html') },
  });
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
    throw usage(`--html ${place} cannot be checked (${reasonOf(errnoOf(error))})`, 'choose another place');
  }
}

/** An empty file counts as a report, as `mktemp` makes one. */
async function isPage(path: string): Promise<boolean> {
  const start = Buffer.alloc(PAGE_START.length);
  const file = await open(path, 'r');
  try {
    const { bytesRead } = await file.read(start, 0, start.length, 0);
    return bytesRead === 0 || start.toString('latin1', 0, bytesRead) === PAGE_START;
  } finally {
    await file.close();
  }
}

const BUFFERED = 256 * 1024;

/** Writes the parts, and resolves with the size in bytes. After an error, the place is as before. */
export async function writePage(path: string, parts: AsyncIterable<string>): Promise<number> {
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
    throw new CryptodlError('disk', `--html ${path} cannot be written (${reasonOf(errnoOf(error))})`, {
      cause: error,
      hint: 'choose another place with --html',
    });
  }
}

async function writeParts(file: FileHandle, parts: AsyncIterable<string>): Promise<number> {
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
