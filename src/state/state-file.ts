/**
 * A small JSON file that all runs of one machine share. It is a help, never a duty: what is damaged is thrown away with a
 * warning, and a folder that cannot be written costs the sharing, not the run.
 */
import { randomUUID } from 'node:crypto';
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../clock.js';
import { errnoOf } from '../errors.js';
import { makeFolder } from '../make-folder.js';

export interface StateFileOptions {
  readonly folder: string;
  readonly name: string;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** A lock older than this belongs to nobody: it is held for the time of one small write. */
const STALE_LOCK_MS = 10_000;
const LOCK_TRIES = 50;
const LOCK_WAIT_MS = 20;

export class StateFile<T> {
  readonly #options: StateFileOptions;
  readonly #path: string;
  readonly #parse: (content: unknown) => T | undefined;
  readonly #empty: T;
  #hasWarned = false;

  /** `parse` gives undefined for content that is not what it should be. */
  constructor(options: StateFileOptions, parse: (content: unknown) => T | undefined, empty: T) {
    this.#options = options;
    this.#path = join(options.folder, options.name);
    this.#parse = parse;
    this.#empty = empty;
  }

  async read(): Promise<T> {
    let text: string;
    try {
      text = await readFile(this.#path, 'utf8');
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') this.#warn(`cannot be read (${errnoOf(error)})`);
      return this.#empty;
    }
    const content = this.#parse(parsed(text));
    if (content !== undefined) return content;
    this.#warn('is damaged and begun anew');
    await rm(this.#path, { force: true }).catch(() => undefined);
    return this.#empty;
  }

  /** One writer at a time; readers see the old content or the new one. */
  async update(change: (content: T) => T): Promise<void> {
    const staged = `${this.#path}.${randomUUID()}`;
    const lock = `${this.#path}.lock`;
    try {
      await makeFolder(this.#options.folder);
      if (!(await this.#lock(lock))) return;
      try {
        await writeFile(staged, `${JSON.stringify(change(await this.read()))}\n`);
        await rename(staged, this.#path);
      } finally {
        await rm(lock, { force: true });
        await rm(staged, { force: true });
      }
    } catch (error) {
      this.#warn(`cannot be written (${errnoOf(error)})`);
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
        const held = await stat(path).catch(() => undefined);
        if (held !== undefined && clock.now() - held.mtimeMs > STALE_LOCK_MS) await rm(path, { force: true });
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
