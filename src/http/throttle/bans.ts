/** Bans: a host refuses all requests of one bucket until a time. Later and other runs of this machine and its egress group obey them too. */
import type { Clock } from '../../model/clock.js';
import { CryptodlError, errnoOf } from '../../model/errors.js';
import { instantText } from '../../model/units.js';
import { hostOf } from '../../model/fetch.js';
import type { EgressGroup } from './group.js';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../files/disk.js';
import { stagedBeside } from '../../files/temp-files.js';
import { fieldsOf, parseJson } from '../../text/json.js';
import { reasonOf } from '../../text/path-faults.js';

type BansByPlace = Readonly<Record<string, Ban>>;

/** Least milliseconds between two reads of the bans of other runs. */
const READ_EVERY_MS = 1000;

interface BansOptions {
  /** The state folder. */
  readonly folder: string;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
  /** Its bans count too, and it gets those of this run. */
  readonly group?: EgressGroup | undefined;
}

/** A place is a bucket and a host, see `banKey`. */
export class Bans {
  readonly #files: BanFiles;
  /** Ends after the last recorded ban. */
  #written: Promise<unknown> = Promise.resolve();
  #known: { readonly readAtMs: number; readonly bans: Promise<BansByPlace> } | undefined;

  constructor(private readonly options: BansOptions) {
    this.#files = new BanFiles(options.folder, options.warn);
  }

  /** Rejects with `wait-too-long` (exit code 7) while one of these places is banned. */
  async refuse(places: readonly string[]): Promise<void> {
    const bans = await this.#all();
    const now = this.options.clock.now();
    for (const place of places) {
      const ban = bans[place];
      if (ban === undefined || ban.untilMs <= now) continue;
      throw new CryptodlError(
        'wait-too-long',
        `${ban.why}: no request is sent before ${instantText(ban.untilMs)} UTC`,
        {
          hint: `try again after that; if the ban is a mistake, remove it with cryptodl doctor --clear-bans ${hostOfPlace(place)}${this.options.group === undefined ? '' : ` --egress-group ${this.options.group.state.name} and your --redis`}`,
        },
      );
    }
  }

  /** All current bans, by place. */
  async current(): Promise<ReadonlyMap<string, Ban>> {
    const now = this.options.clock.now();
    return new Map(Object.entries(await this.#all()).filter(([, { untilMs }]) => untilMs > now));
  }

  /** Milliseconds that are left of the ban of a place, also of a ban that another run has recorded meanwhile; 0 without a ban. */
  async leftMs(place: string): Promise<number> {
    const { clock, group } = this.options;
    const now = clock.monotonic();
    if (this.#known === undefined || now - this.#known.readAtMs >= READ_EVERY_MS)
      this.#known = { readAtMs: now, bans: this.#files.all() };
    const { untilMs = 0 } = (await this.#known.bans)[place] ?? {};
    await group?.opened();
    return Math.max(0, Math.max(untilMs, this.#ofGroup()[place]?.untilMs ?? 0) - clock.now());
  }

  /** Records a ban. A shorter ban does not end a longer one. The file is written in the background; see `written`. */
  record(place: string, ban: Ban): void {
    const told = this.options.group?.ban(place, ban.untilMs - this.options.clock.now(), ban.why);
    this.#written = this.#written
      .then(() => this.#files.write(place, ban, this.options.clock.now()))
      .then(() => told);
  }

  /** Removes all bans of a host. Resolves with the places of the removed bans. */
  async clear(host: string): Promise<string[]> {
    await this.options.group?.opened();
    // The group refuses a bucket as a whole, because the hosts of a bucket are banned together.
    const ofHost = Object.keys(this.#ofGroup()).filter((place) => hostOfPlace(place) === host);
    const buckets = new Set(ofHost.map(bucketOfPlace));
    const places = (await this.options.group?.clearBans((place) => buckets.has(bucketOfPlace(place)))) ?? [];
    const stored = await this.#files.remove((place) => hostOfPlace(place) === host);
    return [...new Set([...places, ...stored])];
  }

  /** Resolves when the writes of all recorded bans have ended. */
  async written(): Promise<void> {
    await this.#written;
  }

  async #all(): Promise<BansByPlace> {
    await this.options.group?.opened();
    const bans: Record<string, Ban> = { ...(await this.#files.all()) };
    for (const [place, ban] of Object.entries(this.#ofGroup()))
      if (ban.untilMs > (bans[place]?.untilMs ?? 0)) bans[place] = ban;
    return bans;
  }

  #ofGroup(): BansByPlace {
    const offsetMs = this.options.clock.now() - this.options.clock.monotonic();
    const bans = this.options.group?.bans ?? [];
    return Object.fromEntries(
      bans.map(({ place, untilMs, why }) => [place, { untilMs: untilMs + offsetMs, why }]),
    );
  }
}

/** The place of a ban: bucket, and host with port. A host bans the address that it sees, so each of several proxies (`via`) has places of its own. */
export const banKey = (bucket: string, url: string, via?: string): string =>
  `${via === undefined ? bucket : `${bucket}@${via}`} ${hostOf(url)}`;

export const bucketOfPlace = (place: string): string => place.slice(0, Math.max(0, place.indexOf(' ')));

/** The host of a place. Names of buckets contain no blank. */
const hostOfPlace = (place: string): string => place.slice(place.indexOf(' ') + 1);

// Bans in the state folder, which the runs of a machine share. Each ban is a file that no run changes, so that no run waits for another, and a short ban
// never replaces a long one. A run works without them: a file that cannot be used is a warning.

interface Ban {
  /** Epoch milliseconds; `until` in the file. */
  readonly untilMs: number;
  readonly why: string;
}

const ENDING = '.json';

/** `file`: its path. */
interface StoredBan {
  readonly file: string;
  readonly place: string;
  readonly ban: Ban;
}

class BanFiles {
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
      if (ban.untilMs > (bans[place]?.untilMs ?? Number.NEGATIVE_INFINITY)) bans[place] = ban;
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
      const { place, until: untilMs, why } = fieldsOf(parseJson(await readFile(file, 'utf8')));
      // A number beyond the dates of JavaScript is no time.
      const isTime = typeof untilMs === 'number' && !Number.isNaN(new Date(untilMs).getTime());
      if (typeof place === 'string' && isTime && typeof why === 'string')
        return [{ file, place, ban: { untilMs, why } }];
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
      if (ofPlace.some((other) => other.ban.untilMs >= ban.untilMs)) return;
      await makeFolder(this.#folder);
      const path = join(this.#folder, `${encodeURIComponent(place)}-${ban.untilMs}${ENDING}`);
      const staged = await stagedBeside(path);
      await writeFile(staged, JSON.stringify({ place, until: ban.untilMs, why: ban.why }));
      await rename(staged, path);
      const over = stored.filter((other) => other.ban.untilMs <= nowMs);
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
