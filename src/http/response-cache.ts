/**
 * Copies of answers, for hosts that do not answer later. A damaged copy is removed with a warning. Without a writable folder,
 * the run goes on without copies. All runs of the machine share the copies; the last written one counts.
 */
import { createHash, randomUUID } from 'node:crypto';
import { lstat, lutimes, readdir, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Clock } from '../model/clock.js';
import { errnoOf } from '../model/errors.js';
import { makeFolder } from '../files/disk.js';
import { readState, TOO_LARGE } from '../files/state-file.js';

export interface Copy<T> {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly value: T;
}

export interface CopiesOptions {
  readonly folder: string;
  /** The "today" of the run, in epoch milliseconds. */
  readonly nowMs: number;
  /** A dry run reads copies and writes none. */
  readonly isReadOnly: boolean;
  readonly clock: Pick<Clock, 'now'>;
  readonly warn: (message: string) => void;
  /** Bytes of all files. Beyond it, the oldest files are removed once a day. */
  readonly maxBytes?: number;
}

const MAX_AGE_MS = 30 * 86_400_000;
const MAX_BYTES = 256 * 1024 * 1024;
/** Temporary files that a killed run left. */
const STAGED_MS = 3_600_000;
const WRITES_AT_ONCE = 8;
/** Bytes at most that wait in memory for the disk. */
const MOST_KEPT = 64;
/** Unpacked bytes at most; the largest accepted answer of REST. */
const COPY_MAX_BYTES = 64 * 1024 * 1024;
const ENDING = '.json.gz';
/** Names of copies and of their temporary files. Other files in the folder are never removed. */
const OWN_NAME = /^[0-9a-f]{40}\.json\.gz(?<staged>\.[0-9a-f-]{36})?$/;
/** The age of this file tells when the folder was last cleaned, because not each run can look at thousands of copies. */
const PRUNED = 'pruned';
const PRUNE_EVERY_MS = 86_400_000;

const packed = promisify(gzip);
const unpacked = promisify(gunzip);

export class Copies {
  readonly #options: CopiesOptions;
  /** Copies that are not on disk yet. */
  readonly #kept = new Map<string, Copy<unknown>>();
  readonly #underWay = new Set<string>();
  #writers = 0;
  #written = Promise.resolve();
  #hasWritten = false;
  #isBroken = false;
  #hasWarned = false;

  constructor(options: CopiesOptions) {
    this.#options = options;
  }

  /** Undefined without a copy or if it is too old. `parse` returns undefined for damaged content. */
  async read<T>(name: string, parse: (value: unknown) => T | undefined): Promise<Copy<T> | undefined> {
    const kept = this.#kept.get(name);
    if (kept !== undefined) return kept as Copy<T>;
    const path = this.#pathOf(name);
    let bytes: Buffer | undefined;
    try {
      bytes = await readState(path, COPY_MAX_BYTES);
    } catch (error) {
      if (errnoOf(error) !== TOO_LARGE) return undefined;
    }
    const copy = bytes === undefined ? undefined : await contentOf(bytes, name, parse);
    if (copy === undefined) {
      this.#warn(`the copy ${path} is damaged and thrown away`);
      if (!this.#options.isReadOnly) await rm(path, { force: true }).catch(() => undefined);
      return undefined;
    }
    return this.#options.nowMs - copy.at > MAX_AGE_MS ? undefined : copy;
  }

  /** Writes in the background; see `close`. Resolves when there is room for the next copy. */
  async keep(name: string, value: unknown, at = this.#options.nowMs): Promise<void> {
    if (this.#options.isReadOnly || this.#isBroken) return;
    this.#kept.set(name, { at, value });
    if (this.#writers < WRITES_AT_ONCE) {
      this.#writers += 1;
      const writing = this.#writeAll().finally(() => {
        this.#writers -= 1;
      });
      this.#written = Promise.all([this.#written, writing]).then(() => undefined);
    }
    if (this.#kept.size > MOST_KEPT) await this.#written;
  }

  /** Resolves when all copies are written and, once a day, old and surplus copies are removed. */
  async close(): Promise<void> {
    await this.#written;
    if (this.#hasWritten && (await this.#isPruneDue())) await this.#prune().catch(() => undefined);
  }

  async #isPruneDue(): Promise<boolean> {
    const pruned = await lstat(join(this.#options.folder, PRUNED)).catch(() => undefined);
    // Absolute difference: a clock that was wrong once must not keep a copy for years.
    return pruned === undefined || Math.abs(this.#options.clock.now() - pruned.mtimeMs) > PRUNE_EVERY_MS;
  }

  async #writeAll(): Promise<void> {
    for (;;) {
      const [next] = [...this.#kept].filter(([name]) => !this.#underWay.has(name));
      if (next === undefined) return;
      const [name, copy] = next;
      this.#underWay.add(name);
      await this.#write(name, copy);
      this.#underWay.delete(name);
      // Unless a newer copy replaced it.
      if (this.#kept.get(name) === copy) this.#kept.delete(name);
    }
  }

  async #write(name: string, copy: Copy<unknown>): Promise<void> {
    const path = this.#pathOf(name);
    const staged = `${path}.${randomUUID()}`;
    try {
      await makeFolder(this.#options.folder);
      await writeFile(staged, await packed(JSON.stringify({ v: 1, name, ...copy })));
      await rename(staged, path);
      this.#hasWritten = true;
    } catch (error) {
      this.#isBroken = true;
      this.#warn(`copies cannot be kept in ${this.#options.folder} (${errnoOf(error)})`);
      await rm(staged, { force: true }).catch(() => undefined);
    }
  }

  async #prune(): Promise<void> {
    const { folder, clock, maxBytes = MAX_BYTES } = this.#options;
    const now = clock.now();
    // Not through a link: it may lead to files of others.
    if ((await realpath(folder)) !== join(await realpath(dirname(folder)), basename(folder))) return;
    const files: { path: string; mtimeMs: number; size: number }[] = [];
    for (const name of await readdir(folder)) {
      const own = OWN_NAME.exec(name);
      if (own === null) continue;
      const path = join(folder, name);
      const facts = await lstat(path).catch(() => undefined);
      if (facts?.isFile() !== true) continue;
      const { mtimeMs, size } = facts;
      if (now - mtimeMs > (own.groups?.['staged'] === undefined ? MAX_AGE_MS : STAGED_MS))
        await rm(path, { force: true });
      else files.push({ path, mtimeMs, size });
    }
    let bytes = 0;
    for (const { path, size } of files.sort((a, b) => b.mtimeMs - a.mtimeMs)) {
      bytes += size;
      if (bytes > maxBytes) await rm(path, { force: true });
    }
    await this.#notePruned(new Date(now));
  }

  /** An existing file of that name keeps its content. */
  async #notePruned(at: Date): Promise<void> {
    const path = join(this.#options.folder, PRUNED);
    await writeFile(path, '', { flag: 'wx' }).catch(() => undefined);
    await lutimes(path, at, at);
  }

  #pathOf(name: string): string {
    const digest = createHash('sha256').update(name).digest('hex').slice(0, 40);
    return join(this.#options.folder, `${digest}${ENDING}`);
  }

  #warn(message: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#options.warn(message);
  }
}

async function contentOf<T>(
  bytes: Buffer,
  name: string,
  parse: (value: unknown) => T | undefined,
): Promise<Copy<T> | undefined> {
  try {
    const text = (await unpacked(bytes, { maxOutputLength: COPY_MAX_BYTES })).toString('utf8');
    const content = JSON.parse(text) as Partial<Record<string, unknown>>;
    const { v, at } = content;
    const value = parse(content['value']);
    const isRight = v === 1 && content['name'] === name && typeof at === 'number' && Number.isFinite(at);
    return isRight && value !== undefined ? { at, value } : undefined;
  } catch {
    return undefined;
  }
}
