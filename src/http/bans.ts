/**
 * Bans: a host refuses all requests of one bucket until a certain time. Other and later runs of this machine, and of the egress group, obey
 * them too. Each ban is a file in the state folder that no run changes, so that no run waits for another, and a short ban never replaces a long one. A run
 * works without them: a file that cannot be used is a warning.
 */
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../model/clock.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { instantText } from '../model/units.js';
import { hostOf } from '../model/fetch.js';
import { makeFolder } from '../files/disk.js';
import { stagedBeside } from '../files/temp-files.js';
import { fieldsOf, parseJson } from '../text/json.js';
import { reasonOf } from '../text/path-faults.js';
import type { EgressGroup } from './throttle/group.js';

export interface Ban {
  /** End of the ban, in epoch milliseconds. */
  readonly until: number;
  readonly why: string;
}

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

/** A place is a bucket and a host, see `placeOf`. */
export class Bans {
  readonly #folder: string;
  #hasWarned = false;
  /** Ends after the last recorded ban. */
  #written: Promise<unknown> = Promise.resolve();
  #known: { readonly at: number; readonly bans: Promise<BansByPlace> } | undefined;

  constructor(private readonly options: BansOptions) {
    this.#folder = join(options.folder, 'bans');
  }

  /** Rejects with `wait-too-long` (exit code 7) while one of these places is banned. */
  async refuse(places: readonly string[]): Promise<void> {
    const bans = await this.#all();
    const now = this.options.clock.now();
    for (const place of places) {
      const ban = bans[place];
      if (ban === undefined || ban.until <= now) continue;
      throw new CryptodlError(
        'wait-too-long',
        `${ban.why}: no request is sent before ${instantText(ban.until)} UTC`,
        {
          hint: `try again after that; if the ban is a mistake, remove it with cryptodl doctor --clear-bans ${hostOfPlace(place)}${this.options.group === undefined ? '' : ` --egress-group ${this.options.group.state.name} and your --redis`}`,
        },
      );
    }
  }

  /** All current bans, by place. */
  async current(): Promise<ReadonlyMap<string, Ban>> {
    const now = this.options.clock.now();
    return new Map(Object.entries(await this.#all()).filter(([, { until }]) => until > now));
  }

  /** Milliseconds that are left of the ban of a place, also of a ban that another run has recorded meanwhile; 0 without a ban. */
  async leftMs(place: string): Promise<number> {
    const { clock, group } = this.options;
    const now = clock.monotonic();
    if (this.#known === undefined || now - this.#known.at >= READ_EVERY_MS)
      this.#known = { at: now, bans: this.#ofMachine() };
    const { until = 0 } = (await this.#known.bans)[place] ?? {};
    await group?.opened();
    return Math.max(0, Math.max(until, this.#ofGroup()[place]?.until ?? 0) - clock.now());
  }

  /** Records a ban. A shorter ban does not end a longer one. The file is written in the background; see `written`. */
  record(place: string, ban: Ban): void {
    const told = this.options.group?.ban(place, ban.until - this.options.clock.now(), ban.why);
    this.#written = this.#written.then(() => this.#write(place, ban)).then(() => told);
  }

  /** Removes all bans of a host. Resolves with the places of the removed bans. */
  async clear(host: string): Promise<string[]> {
    await this.options.group?.opened();
    // The group refuses a bucket as a whole, because the hosts of a bucket are banned together.
    const ofHost = Object.keys(this.#ofGroup()).filter((place) => hostOfPlace(place) === host);
    const buckets = new Set(ofHost.map(bucketOfPlace));
    const places = (await this.options.group?.clearBans((place) => buckets.has(bucketOfPlace(place)))) ?? [];
    const stored = (await this.#stored()).filter(({ place }) => hostOfPlace(place) === host);
    await this.#change(() => Promise.all(stored.map(({ file }) => rm(file, { force: true }))));
    places.push(...stored.map(({ place }) => place));
    return [...new Set(places)];
  }

  /** Resolves when the writes of all recorded bans have ended. */
  async written(): Promise<void> {
    await this.#written;
  }

  async #all(): Promise<BansByPlace> {
    await this.options.group?.opened();
    const bans: Record<string, Ban> = { ...(await this.#ofMachine()) };
    for (const [place, ban] of Object.entries(this.#ofGroup()))
      if (ban.until > (bans[place]?.until ?? 0)) bans[place] = ban;
    return bans;
  }

  #ofGroup(): BansByPlace {
    const offsetMs = this.options.clock.now() - this.options.clock.monotonic();
    const bans = this.options.group?.bans ?? [];
    return Object.fromEntries(bans.map(({ place, until, why }) => [place, { until: until + offsetMs, why }]));
  }

  /** The longest ban of each place in the state folder, also those that are over. */
  async #ofMachine(): Promise<BansByPlace> {
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

  #write(place: string, ban: Ban): Promise<void> {
    return this.#change(async () => {
      const stored = await this.#stored();
      const ofPlace = stored.filter((other) => other.place === place);
      if (ofPlace.some((other) => other.ban.until >= ban.until)) return;
      await makeFolder(this.#folder);
      const path = join(this.#folder, `${encodeURIComponent(place)}-${ban.until}${ENDING}`);
      const staged = await stagedBeside(path);
      await writeFile(staged, JSON.stringify({ place, ...ban }));
      await rename(staged, path);
      const over = stored.filter((other) => other.ban.until <= this.options.clock.now());
      await Promise.all([...over, ...ofPlace].map(({ file }) => rm(file, { force: true })));
    });
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
    const reason = error === undefined ? '' : ` (${reasonOf(errnoOf(error))}); another --state-dir works`;
    this.options.warn(what + reason);
  }
}

const ENDING = '.json';

/** `file`: its path. */
interface StoredBan {
  readonly file: string;
  readonly place: string;
  readonly ban: Ban;
}

/** The place of a ban: bucket, and host with port. A host bans the address that it sees, so each of several proxies (`via`) has places of its own. */
export function placeOf(bucket: string, url: string, via?: string): string {
  return `${via === undefined ? bucket : `${bucket}@${via}`} ${hostOf(url)}`;
}

export function bucketOfPlace(place: string): string {
  return place.slice(0, Math.max(0, place.indexOf(' ')));
}

/** The host of a place. Names of buckets contain no blank. */
function hostOfPlace(place: string): string {
  return place.slice(place.indexOf(' ') + 1);
}
