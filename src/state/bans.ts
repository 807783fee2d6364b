/** What a host has asked not to be asked for, until when: remembered for the next run (mechanisms D18, N26). */
import type { Clock } from '../clock.js';
import { CryptodlError } from '../errors.js';
import { hostOf } from '../fetch.js';
import { StateFile } from './state-file.js';
import type { StateFileOptions } from './state-file.js';

export interface Ban {
  /** Epoch milliseconds. */
  readonly until: number;
  readonly why: string;
}

type BansByPlace = Readonly<Record<string, Ban>>;

/** Bans of other runs are seen this long after they were written. */
const READ_EVERY_MS = 1000;

export class Bans {
  readonly #file: StateFile<BansByPlace>;
  readonly #clock: Clock;
  readonly #writing = new Set<Promise<void>>();
  #known: { readonly at: number; readonly bans: Promise<BansByPlace> } | undefined;

  constructor(options: Omit<StateFileOptions, 'name'>) {
    this.#clock = options.clock;
    this.#file = new StateFile({ ...options, name: 'bans.json' }, parseBans, {});
  }

  /** Rejects with `wait-too-long` (exit code 7) while one of these places is banned. */
  async refuse(places: readonly string[]): Promise<void> {
    const bans = await this.#file.read();
    const now = this.#clock.now();
    for (const place of places) {
      const ban = bans[place];
      if (ban === undefined || ban.until <= now) continue;
      const until = new Date(ban.until).toISOString().replace('T', ' ').slice(0, 19);
      throw new CryptodlError('wait-too-long', `${ban.why}: nothing is asked of it before ${until} UTC`, {
        hint: 'run the same command after that',
      });
    }
  }

  /** All that last, by place. */
  async lasting(): Promise<ReadonlyMap<string, Ban>> {
    const now = this.#clock.now();
    return new Map(Object.entries(await this.#file.read()).filter(([, { until }]) => until > now));
  }

  /** How long a place is still banned, also by what other runs were told since this one began; 0 when it is not. */
  async leftMs(place: string): Promise<number> {
    const now = this.#clock.monotonic();
    if (this.#known === undefined || now - this.#known.at >= READ_EVERY_MS)
      this.#known = { at: now, bans: this.#file.read() };
    const { until = 0 } = (await this.#known.bans)[place] ?? {};
    return Math.max(0, until - this.#clock.now());
  }

  /** A shorter ban does not end a longer one. Written in the background; see `written`. */
  remember(place: string, ban: Ban): void {
    const writing = this.#write(place, ban).finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  /** Resolves when everything that was remembered is on the disk. */
  async written(): Promise<void> {
    await Promise.all(this.#writing);
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

/** What is counted together, and where: servers on one machine are not one server. */
export function placeOf(bucket: string, url: string): string {
  return `${bucket} ${hostOf(url)}`;
}

function parseBans(content: unknown): BansByPlace | undefined {
  if (typeof content !== 'object' || content === null || Array.isArray(content)) return undefined;
  const bans = Object.entries(content as Record<string, unknown>);
  return bans.every(([, ban]) => isBan(ban)) ? (content as BansByPlace) : undefined;
}

function isBan(ban: unknown): ban is Ban {
  if (typeof ban !== 'object' || ban === null) return false;
  const { until, why } = ban as Partial<Ban>;
  return typeof until === 'number' && Number.isFinite(until) && typeof why === 'string';
}
