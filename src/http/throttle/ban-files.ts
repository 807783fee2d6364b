/**
 * Bans in the state folder, which the runs of a machine share. Each ban is a file that no run changes, so that no run waits for another, and a
 * short ban never replaces a long one. A run works without them: a file that cannot be used is a warning.
 */
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../files/disk.js';
import { stagedBeside } from '../../files/temp-files.js';
import { errnoOf } from '../../model/errors.js';
import { fieldsOf, parseJson } from '../../text/json.js';
import { reasonOf } from '../../text/path-faults.js';

export interface Ban {
  /** End of the ban, in epoch milliseconds. */
  readonly until: number;
  readonly why: string;
}

const ENDING = '.json';

/** `file`: its path. */
interface StoredBan {
  readonly file: string;
  readonly place: string;
  readonly ban: Ban;
}

export class BanFiles {
  readonly #folder: string;
  #hasWarned = false;

  constructor(
    stateFolder: string,
    private readonly warn: (message: string) => void,
  ) {
    this.#folder = join(stateFolder, 'bans');
  }

  /** The longest ban of each place, also those that are over. */
  async all(): Promise<Record<string, Ban>> {
    const bans: Record<string, Ban> = {};
    for (const { place, ban } of await this.#stored())
      if (ban.until > (bans[place]?.until ?? Number.NEGATIVE_INFINITY)) bans[place] = ban;
    return bans;
  }

  async #stored(): Promise<readonly StoredBan[]> {
    try {
      const entries = await readdir(this.#folder, { withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(ENDING));
      return (await Promise.all(files.map(({ name }) => this.#read(join(this.#folder, name))))).flat();
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') this.#warnOnce(`the bans in ${this.#folder} cannot be read`, error);
      return [];
    }
  }

  /** The ban of a file; none if the file was removed meanwhile, or has other content. */
  async #read(file: string): Promise<StoredBan[]> {
    try {
      const { place, until, why } = fieldsOf(parseJson(await readFile(file, 'utf8')));
      // A number beyond the dates of JavaScript is no time.
      const isTime = typeof until === 'number' && !Number.isNaN(new Date(until).getTime());
      if (typeof place === 'string' && isTime && typeof why === 'string')
        return [{ file, place, ban: { until, why } }];
      this.#warnOnce(`${file} is not a ban, and not used`);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') this.#warnOnce(`${file} cannot be read`, error);
    }
    return [];
  }

  /** Writes a ban, unless the place has a longer one, and removes those that are over. */
  write(place: string, ban: Ban, nowMs: number): Promise<void> {
    return this.#change(async () => {
      const stored = await this.#stored();
      const ofPlace = stored.filter((other) => other.place === place);
      if (ofPlace.some((other) => other.ban.until >= ban.until)) return;
      await makeFolder(this.#folder);
      const path = join(this.#folder, `${encodeURIComponent(place)}-${ban.until}${ENDING}`);
      const staged = await stagedBeside(path);
      await writeFile(staged, JSON.stringify({ place, ...ban }));
      await rename(staged, path);
      const over = stored.filter((other) => other.ban.until <= nowMs);
      await Promise.all([...over, ...ofPlace].map(({ file }) => rm(file, { force: true })));
    });
  }

  /** Removes the bans of these places. Resolves with the places of the removed bans. */
  async remove(isRemoved: (place: string) => boolean): Promise<string[]> {
    const stored = (await this.#stored()).filter(({ place }) => isRemoved(place));
    await this.#change(() => Promise.all(stored.map(({ file }) => rm(file, { force: true }))));
    return stored.map(({ place }) => place);
  }

  async #change(act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.#warnOnce(`the bans in ${this.#folder} cannot be changed`, error);
    }
  }

  #warnOnce(what: string, error?: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const reason = error === undefined ? '' : ` (${reasonOf(error)}); another --state-dir works`;
    this.warn(what + reason);
  }
}
