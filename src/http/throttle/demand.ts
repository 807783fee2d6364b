/**
 * Which runs of this machine want permits of a budget: an empty file each, whose name tells its priority and whose time when it
 * last wanted some (docs/adr/0013). What cannot be written or read costs the order between runs, not the run.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, lstatSync, lutimesSync, opendirSync, openSync, rmSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../model/clock.js';
import { errnoOf } from '../../model/errors.js';
import type { Priority } from '../fetch.js';
import { BudgetFolder } from './shared-count.js';
import type { Wanting } from './priority-queue.js';

export interface DemandOptions {
  readonly folder: string;
  /** Of the bucket. */
  readonly name: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly warn: (message: string) => void;
}

const OWN_NAME = /^(high|normal|low)-[0-9a-f-]{36}\.wanting$/;
const NONE: Wanting = { high: 0, normal: 0, low: 0 };
/** A run that wants permits says so this often. */
const TELL_MS = 1000;
/** What other runs say is read this often. */
const READ_MS = 200;
/** A run that has not said it for so long wants none, or was killed. */
const STALE_MS = 5000;
/** Then its file is removed. */
const LEFT_MS = 60_000;
/** More files than runs of a machine are foreign: they are not looked at. */
const MOST_FILES = 1000;

export class Demand {
  readonly #options: DemandOptions;
  readonly #folder: BudgetFolder;
  readonly #files = new Map<Priority, { readonly name: string; toldAt: number }>();
  #others = NONE;
  #readAt = Number.NEGATIVE_INFINITY;
  #isOff = false;

  constructor(options: DemandOptions) {
    this.#options = options;
    this.#folder = new BudgetFolder(options.folder, options.name);
  }

  /** This run wants permits now. */
  show(priority: Priority): void {
    const now = this.#options.clock.monotonic();
    const file = this.#files.get(priority) ?? {
      name: `${priority}-${randomUUID()}.wanting`,
      toldAt: Number.NEGATIVE_INFINITY,
    };
    if (now - file.toldAt < TELL_MS) return;
    file.toldAt = now;
    this.#files.set(priority, file);
    this.#try(() => {
      this.#touch(join(this.#folder.path, file.name));
    });
  }

  /** Other runs that want permits now. */
  others(): Wanting {
    const now = this.#options.clock.monotonic();
    if (now - this.#readAt < READ_MS) return this.#others;
    this.#readAt = now;
    this.#others = NONE;
    this.#try(() => {
      this.#others = this.#read();
    });
    return this.#others;
  }

  /** This run wants no more at this priority. */
  hide(priority: Priority): void {
    const file = this.#files.get(priority);
    this.#files.delete(priority);
    if (file === undefined) return;
    this.#try(() => {
      rmSync(join(this.#folder.path, file.name), { force: true });
    });
  }

  /** No link is followed, and no file of another kind is touched. */
  #touch(path: string): void {
    this.#folder.make();
    const seconds = this.#options.clock.now() / 1000;
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) closeSync(openSync(path, 'wx'));
    lutimesSync(path, seconds, seconds);
  }

  #read(): Wanting {
    const own = new Set([...this.#files.values()].map(({ name }) => name));
    const wanting = { ...NONE };
    this.#folder.check();
    const folder = opendirSync(this.#folder.path);
    try {
      for (let looked = 0; looked < MOST_FILES; looked += 1) {
        const name = folder.readSync()?.name;
        if (name === undefined) break;
        const priority = OWN_NAME.exec(name)?.[1] as Priority | undefined;
        if (priority !== undefined && !own.has(name) && this.#isFresh(name)) wanting[priority] += 1;
      }
    } finally {
      folder.closeSync();
    }
    return wanting;
  }

  /** A file that was left behind is removed. */
  #isFresh(name: string): boolean {
    const path = join(this.#folder.path, name);
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts === undefined || !isOfTool(facts)) return false;
    // A clock that was set makes the time of a file lie ahead.
    const ageMs = Math.abs(this.#options.clock.now() - facts.mtimeMs);
    if (ageMs > LEFT_MS) removeLeft(path);
    return ageMs <= STALE_MS;
  }

  #try(act: () => void): void {
    if (this.#isOff) return;
    try {
      act();
    } catch (error) {
      this.#isOff = true;
      this.#options.warn(
        `the order between runs in ${this.#folder.path} cannot be kept (${errnoOf(error)}): --priority does not count between them`,
      );
    }
  }
}

/** Its files are empty. */
function isOfTool(facts: Stats): boolean {
  return facts.isFile() && facts.size === 0;
}

/** In a folder of several users it may be another's. */
function removeLeft(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // It stays, and is not looked at.
  }
}
