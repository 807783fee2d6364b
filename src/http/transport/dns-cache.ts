/** Caches DNS answers for all direct connections. A name is resolved again after five minutes, or after a failed connection. */
import { lookup as systemLookup } from 'node:dns';
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../../model/clock.js';

type Resolver = typeof systemLookup;
type Answer = readonly LookupAddress[];

const KEEP_MS = 300_000;

export interface DnsFigures {
  /** Look-ups by connections. */
  readonly lookups: number;
  /** Look-ups that the cache or a query in flight answered. */
  readonly hits: number;
  /** Queries to the resolver. */
  readonly misses: number;
  /** Failed queries. */
  readonly failures: number;
  /** Milliseconds with at least one query in flight. */
  readonly ms: number;
}

interface Entry {
  readonly answer: Promise<Answer>;
  /** Time of the monotonic clock. */
  readonly queriedAt: number;
}

export class DnsCache {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #resolver: Resolver;
  readonly #entries = new Map<string, Entry>();
  /** The last good answers, which are used if a query fails. */
  readonly #last = new Map<string, Answer>();
  #hits = 0;
  #misses = 0;
  #failures = 0;
  #inFlight = 0;
  #inFlightSince = 0;
  #queriedMs = 0;

  constructor(clock: Pick<Clock, 'monotonic'>, resolver = systemLookup) {
    this.#clock = clock;
    this.#resolver = resolver;
  }

  get figures(): DnsFigures {
    const now = this.#clock.monotonic();
    const ms = this.#queriedMs + (this.#inFlight > 0 ? now - this.#inFlightSince : 0);
    const [hits, misses] = [this.#hits, this.#misses];
    return { lookups: hits + misses, hits, misses, failures: this.#failures, ms: Math.round(ms) };
  }

  /** The `lookup` option of `net.connect`, which tries all addresses of a name. */
  readonly lookup: LookupFunction = (hostname, options, reply) => {
    this.addresses(hostname, options).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all === true) reply(null, [...addresses]);
        else reply(null, first?.address ?? '', first?.family);
      },
      (error: unknown) => {
        reply(error as NodeJS.ErrnoException, '');
      },
    );
  };

  /** Removes a name, so that the next connection queries the resolver. */
  remove(hostname: string): void {
    for (const key of this.#entries.keys()) if (key.startsWith(`${hostname} `)) this.#entries.delete(key);
  }

  addresses(hostname: string, { family, hints }: Parameters<LookupFunction>[1]): Promise<Answer> {
    const key = `${hostname} ${family ?? 0} ${hints ?? 0}`;
    const known = this.#entries.get(key);
    const now = this.#clock.monotonic();
    if (known !== undefined && now - known.queriedAt < KEEP_MS) {
      this.#hits += 1;
      return known.answer;
    }
    const answer = this.#query(hostname, { family, hints }).then(
      (addresses) => {
        this.#last.set(key, addresses);
        return addresses;
      },
      (error: unknown) => {
        // A newer query keeps its entry.
        if (this.#entries.get(key)?.answer === answer) this.#entries.delete(key);
        const last = this.#last.get(key);
        if (last === undefined) throw error;
        return last;
      },
    );
    this.#entries.set(key, { answer, queriedAt: now });
    return answer;
  }

  #query(
    hostname: string,
    options: Pick<Parameters<LookupFunction>[1], 'family' | 'hints'>,
  ): Promise<Answer> {
    this.#misses += 1;
    if (this.#inFlight === 0) this.#inFlightSince = this.#clock.monotonic();
    this.#inFlight += 1;
    return new Promise((resolve, reject) => {
      const { family = 0, hints = 0 } = options;
      this.#resolver(hostname, { all: true, family, hints }, (error, addresses) => {
        this.#inFlight -= 1;
        if (this.#inFlight === 0) this.#queriedMs += this.#clock.monotonic() - this.#inFlightSince;
        if (error === null) {
          resolve(addresses);
          return;
        }
        this.#failures += 1;
        reject(error);
      });
    });
  }
}
