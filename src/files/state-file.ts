/**
 * A small JSON file that all runs on one machine share. Runs work without it: damaged content is ignored, and an unwritable
 * folder only prevents sharing. A damaged file is renamed, never deleted.
 */
import { randomUUID } from 'node:crypto';
import { lstat, open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import type { Clock } from '../model/clock.js';
import { errnoOf } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { makeFolder } from './disk.js';
import { stagedBeside } from './temp-files.js';
import { parseJson } from '../text/json.js';

export interface StateFileOptions {
  readonly folder: string;
  readonly name: string;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** A lock file older than this was left by a killed process, because a lock protects only one small write. */
const STALE_LOCK_MS = 10_000;
const LOCK_TRIES = 50;
const LOCK_WAIT_MS = 20;

export class StateFile<T> {
  readonly #options: StateFileOptions;
  readonly #path: string;
  readonly #parse: (content: unknown) => T | undefined;
  readonly #empty: T;
  #hasWarned = false;
  #updated: Promise<void> = Promise.resolve();

  /** `parse` returns undefined for invalid content. */
  constructor(options: StateFileOptions, parse: (content: unknown) => T | undefined, empty: T) {
    this.#options = options;
    this.#path = join(options.folder, options.name);
    this.#parse = parse;
    this.#empty = empty;
  }

  /** The content, or `empty` for a missing, damaged or unreadable file. Warns of a damaged or unreadable file, but only once. */
  async read(): Promise<T> {
    try {
      return (await this.#content()) ?? this.#empty;
    } catch (error) {
      this.#warn(`cannot be read (${reasonOf(errnoOf(error))}); another --state-dir works`);
      return this.#empty;
    }
  }

  /** Undefined for a damaged file. Rejects for an unreadable file. */
  async #content(): Promise<T | undefined> {
    let bytes: Buffer;
    try {
      bytes = await readState(this.#path);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return this.#empty;
      throw error;
    }
    const content = this.#parse(parseJson(bytes.toString('utf8')));
    if (content === undefined)
      this.#warn('is damaged: its content is ignored, and the next write renames it');
    return content;
  }

  /** Changes the content under a lock. Readers see the old or the new content. Warns instead of rejecting. */
  update(change: (content: T) => T): Promise<void> {
    // The updates of this object run one after the other, so that none of them waits for the lock of another.
    this.#updated = this.#updated.then(() => this.#update(change));
    return this.#updated;
  }

  async #update(change: (content: T) => T): Promise<void> {
    const lock = `${this.#path}.lock`;
    try {
      await makeFolder(this.#options.folder);
      if (!(await this.#lock(lock))) return;
      const staged = await stagedBeside(this.#path);
      try {
        const content = await this.#content();
        await writeFile(staged, `${JSON.stringify(change(content ?? this.#empty))}\n`);
        if (content === undefined) await rename(this.#path, `${this.#path}.damaged-${randomUUID()}`);
        await rename(staged, this.#path);
      } finally {
        await rm(lock, { force: true });
        await rm(staged, { force: true });
      }
    } catch (error) {
      this.#warn(`cannot be written (${reasonOf(errnoOf(error))}); another --state-dir works`);
    }
  }

  async #lock(path: string): Promise<boolean> {
    const { clock } = this.#options;
    for (let tries = 0; tries < LOCK_TRIES; tries += 1) {
      try {
        await (await open(path, 'wx')).close();
        return true;
      } catch (error) {
        if (errnoOf(error) !== 'EEXIST') throw error;
        const held = await lstat(path).catch(() => undefined);
        // Locks of cryptodl are empty files; any other file is not removed.
        const isOwn = held?.isFile() === true && held.size === 0;
        if (isOwn && clock.now() - held.mtimeMs > STALE_LOCK_MS) await rm(path, { force: true });
        else await clock.sleep(LOCK_WAIT_MS);
      }
    }
    this.#warn('is locked by another run');
    return false;
  }

  #warn(what: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#options.warn(`the state file ${this.#path} ${what}`);
  }
}

export const TOO_LARGE = 'too large';

/**
 * The content of a file in the state folder. Rejects with code `TOO_LARGE` for a file above `maxBytes`. Rejects also for anything
 * but a regular file, because reading a pipe without a writer would never end.
 */
async function readState(path: string, maxBytes = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const facts = await file.stat();
    if (!facts.isFile()) throw refusal(path, 'not a regular file');
    if (facts.size > maxBytes) throw refusal(path, TOO_LARGE);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/**
 * The same without a promise, for files that a run reads by the hundred. The calls block, because they take microseconds, and a round trip to the
 * thread pool takes many times as long.
 */
export function readStateNow(path: string, maxBytes: number): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const facts = fstatSync(file);
    if (!facts.isFile()) throw refusal(path, 'not a regular file');
    if (facts.size > maxBytes) throw refusal(path, TOO_LARGE);
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

/** Has a `code` like errors of the system, because warnings show the code. */
function refusal(path: string, code: string): Error {
  return Object.assign(new Error(`${path} is ${code}`), { code });
}
