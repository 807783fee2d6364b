/** Copies one file of a lake into the staging folder of another one, and checks what it copied. */
import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { seriesFolder } from '../lake/layout.js';
import type { LakePaths } from '../lake/layout.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { entryAt, openRegularFile } from '../lake/path-checks.js';
import { fileFacts } from '../lake/publish.js';
import type { Publication } from '../lake/publish.js';
import { CryptodlError, errnoOf, withPath } from '../model/errors.js';
import type { ErrorCode } from '../model/errors.js';
import type { Source } from '../source/source.js';
import { reasonOf } from '../text/path-faults.js';
import { shownPath } from '../text/printable.js';
import type { ChosenFile, Refusal } from './choose-files.js';
import type { SeriesPair } from './series-state.js';

/** The lake that is read, and the one that is written. */
export interface LakePair {
  readonly venue: Source;
  readonly from: LakePaths;
  readonly to: LakePaths;
}

export interface StagedFile extends Publication {
  readonly chosen: ChosenFile;
}

/** Resolves with a refusal for a file that is not the one of its manifest lines. Rejects with the error of the target's disk. */
export async function stageFile(
  { venue, from, to }: LakePair,
  { series, target: held }: SeriesPair,
  chosen: ChosenFile,
): Promise<StagedFile | Refusal> {
  const { format, file, committed } = chosen;
  const path = format === 'zip' ? file : `${seriesFolder(venue.name, series)}/${file}`;
  const target = join(await to.folder(dirname(path)), basename(path));
  const there = held.manifest[format].lastOfFile(file);
  const unknown = await refuseUnknownFile(target, there === undefined ? [committed] : [there, committed]);
  if (unknown !== undefined) return unknown;
  const staged = stagedPath(to);
  const source = await opened(from, path);
  if ('reason' in source) return source;
  try {
    const text = await copyChecked(source, staged, committed);
    if (text === undefined) return { staged, target, chosen };
    await rm(staged, { force: true });
    return { reason: 'damaged', text: `${shownPath(join(from.root, path))} ${text}` };
  } catch (error) {
    await rm(staged, { force: true });
    throw error;
  } finally {
    await source.close();
  }
}

/** The next run clears files that a killed run leaves in the staging folder. */
export function stagedPath({ staging }: LakePaths): string {
  return join(staging, `${randomUUID()}.partial`);
}

/** Errors about the file itself. */
const OF_FILE: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['disk', 'lake-conflict', 'body-damaged']);

async function opened({ root, folder }: LakePaths, path: string): Promise<FileHandle | Refusal> {
  try {
    return await openRegularFile(join(await folder(dirname(path)), basename(path)), constants.O_RDONLY);
  } catch (error) {
    // Any other error is one of the server of a bucket, or of the disk of its mirror.
    if (error instanceof CryptodlError && !OF_FILE.has(error.code)) throw error;
    const why = error instanceof CryptodlError ? error.message : reasonOf(errnoOf(error));
    const where = error instanceof CryptodlError ? '' : `${shownPath(join(root, path))}: `;
    return { reason: 'damaged', text: `${where}${why}` };
  }
}

const CHUNK_BYTES = 1024 * 1024;

/** Resolves with the difference between the file and its manifest line; the copy is then incomplete or useless. */
async function copyChecked(
  source: FileHandle,
  staged: string,
  { fileBytes, fileSha256 }: ObjectLine,
): Promise<string | undefined> {
  const { size } = await source.stat();
  if (size !== fileBytes) return `has ${size} bytes, and its manifest line ${fileBytes}`;
  const hash = createHash('sha256');
  const copy = await open(staged, 'wx');
  try {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size + 1));
    for (;;) {
      const read = await source
        .read(buffer, 0, buffer.length, null)
        .catch((error: unknown) => errnoOf(error));
      if (typeof read === 'string') return `cannot be read (${reasonOf(read)})`;
      if (read.bytesRead === 0) break;
      const part = buffer.subarray(0, read.bytesRead);
      hash.update(part);
      await copy.writeFile(part);
    }
  } catch (error) {
    throw withPath(error, staged);
  } finally {
    await copy.close();
  }
  return hash.digest('hex') === fileSha256 ? undefined : 'does not have the SHA-256 of its manifest line';
}

/** A refusal for a file of the target that is none of `known`: a merge would replace or remove unknown content. */
export async function refuseUnknownFile(
  path: string,
  known: readonly Pick<ObjectLine, 'fileBytes' | 'fileSha256'>[],
): Promise<Refusal | undefined> {
  const entry = await entryAt(path);
  if (entry === undefined) return undefined;
  if (entry.isFile() && known.some(({ fileBytes }) => fileBytes === entry.size)) {
    const { sha256 } = await fileFacts(path);
    if (known.some(({ fileSha256 }) => fileSha256 === sha256)) return undefined;
  }
  return {
    reason: 'damaged',
    text: `${shownPath(path)} in the target is not the file of its manifest; cryptodl repair mends the target`,
  };
}
