/** Caches DNS answers for all direct connections, for any family. A name is resolved again after five minutes, or after a failed connection. */
import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../../model/clock.js';

type Answer = readonly LookupAddress[];

const KEEP_MS = 300_000;

export class DnsCache {
  /** `queriedAt`: time of the monotonic clock. */
  readonly #entries = new Map<string, { readonly answer: Promise<Answer>; readonly queriedAt: number }>();
  /** The last good answers, which are used if a query fails. */
  readonly #last = new Map<string, Answer>();
  #hits = 0;
  #misses = 0;
  #failures = 0;
  #inFlight = 0;
  #inFlightSince = 0;
  #queriedMs = 0;

  constructor(
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly resolver = systemLookup,
  ) {}

  /** `hits`: look-ups that the cache or a query in flight answered. `misses`: queries. `ms`: milliseconds with at least one query in flight. */
  get figures() {
    const now = this.clock.monotonic();
    const ms = this.#queriedMs + (this.#inFlight > 0 ? now - this.#inFlightSince : 0);
    const [hits, misses] = [this.#hits, this.#misses];
    return { lookups: hits + misses, hits, misses, failures: this.#failures, ms: Math.round(ms) };
  }

  /** The `lookup` option of `net.connect`, which tries all addresses of a name. */
  readonly lookup: LookupFunction = (hostname, options, reply) => {
    this.addresses(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all === true) reply(null, [...addresses]);
        else reply(null, first?.address ?? '', first?.family);
      },
      (error: unknown) => reply(error as NodeJS.ErrnoException, ''),
    );
  };

  /** Removes a name, so that the next connection queries the resolver. */
  remove(hostname: string): void {
    this.#entries.delete(hostname);
  }

  addresses(hostname: string): Promise<Answer> {
    const known = this.#entries.get(hostname);
    const now = this.clock.monotonic();
    if (known !== undefined && now - known.queriedAt < KEEP_MS) {
      this.#hits += 1;
      return known.answer;
    }
    const answer = this.#query(hostname).catch((error: unknown) => {
      // A newer query keeps its entry.
      if (this.#entries.get(hostname)?.answer === answer) this.#entries.delete(hostname);
      const last = this.#last.get(hostname);
      if (last === undefined) throw error;
      return last;
    });
    this.#entries.set(hostname, { answer, queriedAt: now });
    return answer;
  }

  #query(hostname: string): Promise<Answer> {
    this.#misses += 1;
    if (this.#inFlight === 0) this.#inFlightSince = this.clock.monotonic();
    this.#inFlight += 1;
    return new Promise((resolve, reject) => {
      this.resolver(hostname, { all: true }, (error, addresses) => {
        this.#inFlight -= 1;
        if (this.#inFlight === 0) this.#queriedMs += this.clock.monotonic() - this.#inFlightSince;
        if (error !== null) {
          this.#failures += 1;
          reject(error);
          return;
        }
        this.#last.set(hostname, addresses);
        resolve(addresses);
      });
    });
  }
}
