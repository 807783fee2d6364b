/**
 * Copies of answers, for runs in which the host does not answer. A damaged copy is removed with a warning. If the folder cannot be
 * written, the run writes no further copies. All runs of the machine share the copies; the last written one counts.
 */
import { createHash } from 'node:crypto';
import { lstat, lutimes, readdir, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import type { Clock } from '../model/clock.js';
import { errnoOf } from '../model/errors.js';
import { makeFolder, readStateNow, TOO_LARGE } from '../files/disk.js';
import { fieldsOf } from '../text/json.js';
import { tempPath, removeLeftovers } from '../files/temp-files.js';
import { DAY_MS } from '../model/units.js';

export interface Copy<T> {
  /** Epoch milliseconds. */
  readonly atMs: number;
  readonly value: T;
}

export interface ResponseCacheOptions {
  readonly folder: string;
  /** The current time of the run, in epoch milliseconds. */
  readonly nowMs: number;
  /** A dry run reads copies and writes none. */
  readonly isReadOnly: boolean;
  readonly clock: Pick<Clock, 'now'>;
  readonly warn: (message: string) => void;
}

/** Copies above this age are not used. */
export const MAX_COPY_AGE_MS = 30 * DAY_MS;
/** Bytes of a copy at most, packed and unpacked: as many as in the largest accepted answer of REST. */
const COPY_MAX_BYTES = 64 * 1024 * 1024;
const packed = promisify(gzip);

export class ResponseCache {
  /** Created with the first copy. */
  #folder: Promise<unknown> | undefined;
  #hasWritten = false;
  #isBroken = false;
  #hasWarned = false;

  constructor(private readonly options: ResponseCacheOptions) {}

  /** Undefined without a copy, or if its file is too old, too large or damaged: `parse` returns undefined. */
  async read<T>(name: string, parse: (value: unknown) => T | undefined): Promise<Copy<T> | undefined> {
    const path = copyPath(this.options.folder, name);
    let bytes: Buffer | undefined;
    try {
      bytes = readStateNow(path, COPY_MAX_BYTES);
    } catch (error) {
      if (errnoOf(error) !== TOO_LARGE) return undefined;
    }
    const copy = bytes === undefined ? undefined : contentOf(bytes, name, parse);
    if (copy === undefined) {
      this.#warn(`the copy ${path} is damaged and not used`);
      if (!this.options.isReadOnly) await rm(path, { force: true }).catch(() => undefined);
      return undefined;
    }
    return this.options.nowMs - copy.atMs > MAX_COPY_AGE_MS ? undefined : copy;
  }

  async keep(name: string, value: unknown, atMs = this.options.nowMs): Promise<void> {
    if (this.options.isReadOnly || this.#isBroken) return;
    const { folder } = this.options;
    const staged = tempPath(folder, 'copy');
    try {
      await (this.#folder ??= makeFolder(folder));
      await writeFile(staged, await packed(JSON.stringify({ v: 1, name, at: atMs, value })));
      await rename(staged, copyPath(folder, name));
      this.#hasWritten = true;
    } catch (error) {
      this.#isBroken = true;
      this.#warn(`copies cannot be kept in ${folder} (${errnoOf(error)})`);
      await rm(staged, { force: true }).catch(() => undefined);
    }
  }

  /** Once a day, removes old copies. */
  async close(): Promise<void> {
    const { folder, clock } = this.options;
    if (this.#hasWritten) await pruneCopies(folder, clock.now(), MAX_COPY_AGE_MS).catch(() => undefined);
  }

  #warn(message: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.options.warn(message);
  }
}

function contentOf<T>(
  bytes: Buffer,
  name: string,
  parse: (value: unknown) => T | undefined,
): Copy<T> | undefined {
  try {
    const text = gunzipSync(bytes, { maxOutputLength: COPY_MAX_BYTES }).toString('utf8');
    const { v, at: atMs, name: kept, value: content } = fieldsOf(JSON.parse(text));
    const value = parse(content);
    const isRight = v === 1 && kept === name && typeof atMs === 'number' && Number.isFinite(atMs);
    return isRight && value !== undefined ? { atMs, value } : undefined;
  } catch {
    return undefined;
  }
}

/** Names of copies. Of other files, only temporary files of ended processes are removed. */
const COPY_NAME = /^[0-9a-f]{40}\.json\.gz$/;
/** The folder was last cleaned at the modification time of this file. A look at thousands of copies in each run would take too long. */
const PRUNED = 'pruned';
const PRUNE_EVERY_MS = DAY_MS;

function copyPath(folder: string, name: string): string {
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 40);
  return join(folder, `${digest}.json.gz`);
}

/** Removes old copies, at most once a day. `nowMs`: the time of the machine. Rejects with the error of the system. */
async function pruneCopies(folder: string, nowMs: number, maxAgeMs: number): Promise<void> {
  const note = join(folder, PRUNED);
  const pruned = await lstat(note).catch(() => undefined);
  // The absolute difference, because a clock that was wrong once must not stop the cleaning for years.
  if (pruned !== undefined && Math.abs(nowMs - pruned.mtimeMs) <= PRUNE_EVERY_MS) return;
  // A folder that is a link is not cleaned, because the link may lead to foreign files.
  if ((await realpath(folder)) !== join(await realpath(dirname(folder)), basename(folder))) return;
  await removeLeftovers(folder);
  for (const name of await readdir(folder)) {
    if (!COPY_NAME.test(name)) continue;
    const path = join(folder, name);
    const facts = await lstat(path).catch(() => undefined);
    if (facts?.isFile() === true && nowMs - facts.mtimeMs > maxAgeMs) await rm(path, { force: true });
  }
  // An existing file of that name keeps its content.
  await writeFile(note, '', { flag: 'wx' }).catch(() => undefined);
  await lutimes(note, new Date(nowMs), new Date(nowMs));
}
