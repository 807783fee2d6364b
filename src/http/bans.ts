/** Bans: a host refuses all requests of one bucket until a certain time. Other and later runs of this machine, and of the egress group, obey them too. */
import type { Clock } from '../model/clock.js';
import { CryptodlError } from '../model/errors.js';
import { instantText } from '../model/units.js';
import { hostOf } from '../model/fetch.js';
import { StateFile } from '../files/state-file.js';
import type { StateFileOptions } from '../files/state-file.js';
import { fieldsOf, isRecord } from '../text/json.js';
import type { EgressGroup } from './throttle/group.js';

export interface Ban {
  /** End of the ban, in epoch milliseconds. */
  readonly until: number;
  readonly why: string;
}

type BansByPlace = Readonly<Record<string, Ban>>;

/** Least milliseconds between two reads of the bans of other runs. */
const READ_EVERY_MS = 1000;

interface BansOptions extends Omit<StateFileOptions, 'name'> {
  /** Its bans count too, and it gets those of this run. */
  readonly group?: EgressGroup | undefined;
}

/** A place is a bucket and a host, see `placeOf`. */
export class Bans {
  readonly #file: StateFile<BansByPlace>;
  readonly #clock: Clock;
  readonly #group: EgressGroup | undefined;
  readonly #writing = new Set<Promise<void>>();
  #known: { readonly at: number; readonly bans: Promise<BansByPlace> } | undefined;

  constructor(options: BansOptions) {
    this.#group = options.group;
    this.#clock = options.clock;
    this.#file = new StateFile({ ...options, name: 'bans.json' }, parseBans, {});
  }

  /** Rejects with `wait-too-long` (exit code 7) while one of these places is banned. */
  async refuse(places: readonly string[]): Promise<void> {
    const bans = await this.#all();
    const now = this.#clock.now();
    for (const place of places) {
      const ban = bans[place];
      if (ban === undefined || ban.until <= now) continue;
      throw new CryptodlError(
        'wait-too-long',
        `${ban.why}: no request is sent before ${instantText(ban.until)} UTC`,
        {
          hint: `try again after that; if the ban is a mistake, remove it with cryptodl doctor --clear-bans ${hostOfPlace(place)}${this.#group === undefined ? '' : ` --egress-group ${this.#group.state.name} and your --redis`}`,
        },
      );
    }
  }

  /** All current bans, by place. */
  async current(): Promise<ReadonlyMap<string, Ban>> {
    const now = this.#clock.now();
    return new Map(Object.entries(await this.#all()).filter(([, { until }]) => until > now));
  }

  /** Milliseconds that are left of the ban of a place, also of a ban that another run has recorded meanwhile; 0 without a ban. */
  async leftMs(place: string): Promise<number> {
    const now = this.#clock.monotonic();
    if (this.#known === undefined || now - this.#known.at >= READ_EVERY_MS)
      this.#known = { at: now, bans: this.#file.read() };
    const { until = 0 } = (await this.#known.bans)[place] ?? {};
    await this.#group?.opened();
    return Math.max(0, until - this.#clock.now(), (this.#ofGroup()[place]?.until ?? 0) - this.#clock.now());
  }

  /** Records a ban. A shorter ban does not end a longer one. The file is written in the background; see `written`. */
  record(place: string, ban: Ban): void {
    const leftMs = ban.until - this.#clock.now();
    const writing = Promise.all([this.#write(place, ban), this.#group?.ban(place, leftMs, ban.why)])
      .then(() => undefined)
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  /** Removes all bans of a host. Resolves with the places of the removed bans. */
  async clear(host: string): Promise<string[]> {
    await this.#group?.opened();
    // The group refuses a bucket as a whole, because the hosts of a bucket are banned together.
    const ofHost = Object.keys(this.#ofGroup()).filter((place) => hostOfPlace(place) === host);
    const buckets = new Set(ofHost.map(bucketOfPlace));
    const places = (await this.#group?.clearBans((place) => buckets.has(bucketOfPlace(place)))) ?? [];
    await this.#file.update((bans) => {
      const others = Object.entries(bans).filter(([place]) => hostOfPlace(place) !== host);
      places.push(...Object.keys(bans).filter((place) => hostOfPlace(place) === host));
      return Object.fromEntries(others);
    });
    return [...new Set(places)];
  }

  /** Resolves when the writes of all recorded bans have ended. */
  async written(): Promise<void> {
    await Promise.all(this.#writing);
  }

  /** The bans of this machine and of the group. */
  async #all(): Promise<BansByPlace> {
    await this.#group?.opened();
    const bans: Record<string, Ban> = { ...(await this.#file.read()) };
    for (const [place, ban] of Object.entries(this.#ofGroup()))
      if (ban.until > (bans[place]?.until ?? 0)) bans[place] = ban;
    return bans;
  }

  #ofGroup(): BansByPlace {
    const offsetMs = this.#clock.now() - this.#clock.monotonic();
    const bans = this.#group?.bans ?? [];
    return Object.fromEntries(bans.map(({ place, until, why }) => [place, { until: until + offsetMs, why }]));
  }

  #write(place: string, ban: Ban): Promise<void> {
    return this.#file.update((bans) => {
      const now = this.#clock.now();
      const lasting = Object.entries(bans).filter(([, { until }]) => until > now);
      const known = bans[place];
      const longer = known !== undefined && known.until > ban.until ? known : ban;
      return { ...Object.fromEntries(lasting), [place]: longer };
    });
  }
}

/** The place of a ban: bucket, and host with port. A host bans the address that it sees, so each of several proxies (`via`) has places of its own. */
export function placeOf(bucket: string, url: string, via?: string): string {
  return `${via === undefined ? bucket : `${bucket}@${via}`} ${hostOf(url)}`;
}

/** The bucket of a place. */
export function bucketOfPlace(place: string): string {
  return place.slice(0, Math.max(0, place.indexOf(' ')));
}

/** The host of a place. Names of buckets contain no blank. */
function hostOfPlace(place: string): string {
  return place.slice(place.indexOf(' ') + 1);
}

function parseBans(content: unknown): BansByPlace | undefined {
  return isRecord(content) && Object.values(content).every(isBan) ? (content as BansByPlace) : undefined;
}

function isBan(ban: unknown): ban is Ban {
  const { until, why } = fieldsOf(ban);
  // A number beyond the dates of JavaScript is no time.
  return typeof until === 'number' && !Number.isNaN(new Date(until).getTime()) && typeof why === 'string';
}
