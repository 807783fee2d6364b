/**
 * Spreads requests over several proxies. Each proxy has a lane of its own: breaker, permits, bans and connections. A proxy that does not
 * work is taken out, and gets a request again after a delay that grows.
 */
import type { Clock } from '../../model/clock.js';
import { CryptodlError, NO_CONNECTION } from '../../model/errors.js';
import type { ErrorCode } from '../../model/errors.js';
import type { Observer } from '../../model/observer.js';
import { durationText } from '../../model/units.js';
import type { Fetch, FetchRequest } from '../../model/fetch.js';

interface Lane {
  /** Host and port of the proxy. */
  readonly label: string;
  readonly fetch: Fetch;
  /** Milliseconds before the lane may send this request: a pause after a refusal, or a ban. */
  readonly pauseMs: (request: FetchRequest) => Promise<number>;
}

export interface SpreadOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly lanes: readonly Lane[];
  /** For hosts that NO_PROXY lists. */
  readonly direct: Fetch;
  readonly isDirect: (url: string) => boolean;
  readonly observer: Pick<Observer, 'event' | 'warn'>;
}

export interface ProxyFigures {
  /** Host and port. */
  readonly proxy: string;
  /** Requests that were sent through it, also to a proxy that did not work. */
  readonly requests: number;
  /** Requests that failed because the proxy did not work. */
  readonly failures: number;
  /** Requests that a host refused for the address of this proxy. */
  readonly refusals: number;
  readonly isDead: boolean;
  /** Milliseconds that are left of its longest pause or ban: a host has refused the address of this proxy. */
  readonly pausedMs: number;
}

/** No request of a lane reaches its host without the proxy, so these are faults of the proxy. */
const DEAD: ReadonlySet<ErrorCode> = new Set([...NO_CONNECTION, 'proxy-refused', 'unreachable']);
/** A host refuses the address of the proxy, which says nothing about the others. */
const REFUSED: ReadonlySet<ErrorCode> = new Set([
  'rate-limited',
  'banned',
  'wait-too-long',
  'breaker-open',
  'address-blocked',
]);

const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 300_000;
/** If no proxy has ever worked, the run ends when each has failed so many times. */
const FAILURES_TO_END = 2;

class ProxyLane {
  inFlight = 0;
  requests = 0;
  failures = 0;
  refusals = 0;
  /** Failures since the last answer. Requests that were in flight together count as one. */
  inARow = 0;
  isProbed = false;
  /** On the monotonic clock. */
  pausedUntil = 0;
  error: CryptodlError | undefined;
  #deadUntil = 0;

  constructor(
    readonly lane: Lane,
    readonly options: SpreadOptions,
  ) {}

  get leftMs(): number {
    return Math.max(0, this.#deadUntil - this.options.clock.monotonic());
  }

  get isUsable(): boolean {
    return this.error === undefined || (this.leftMs === 0 && !this.isProbed);
  }

  /** Milliseconds before it may send this request. */
  async pauseMs(request: FetchRequest): Promise<number> {
    const leftMs = await this.lane.pauseMs(request);
    if (leftMs > 0) this.pausedUntil = Math.max(this.pausedUntil, this.options.clock.monotonic() + leftMs);
    return leftMs;
  }

  /** An answer to a request that the proxy got before it was taken out does not say that it works now. */
  onAnswer(isProbe: boolean): void {
    if (!isProbe) return;
    this.inARow = 0;
    this.error = undefined;
    const { observer } = this.options;
    const { label } = this.lane;
    observer.event('proxy', { proxy: label, state: 'alive' });
    observer.warn(`the proxy ${label} works again`);
  }

  onDead(error: CryptodlError, isProbe: boolean): void {
    this.failures += 1;
    if (this.error !== undefined && !isProbe) return;
    const delayMs = Math.min(FIRST_DELAY_MS * 2 ** this.inARow, LONGEST_DELAY_MS);
    this.inARow += 1;
    this.#deadUntil = this.options.clock.monotonic() + delayMs;
    this.error = error;
    const { observer } = this.options;
    const { label } = this.lane;
    const reason = reasonOf(error);
    observer.event('proxy', { proxy: label, state: 'dead', reason, delayMs });
    if (isProbe) return;
    observer.warn(
      `the proxy ${label} is taken out, and gets a request again in ${durationText(delayMs)}: it ${reason}`,
    );
  }
}

/** Errors say `the proxy HOST cannot be reached` or `the proxy answered 407`. */
function reasonOf({ message }: CryptodlError): string {
  return message.replace(/^the proxy (?:\S+ (?=cannot be reached))?/, '');
}

export class Spread {
  readonly #lanes: readonly ProxyLane[];

  constructor(private readonly options: SpreadOptions) {
    this.#lanes = options.lanes.map((lane) => new ProxyLane(lane, options));
  }

  get figures(): ProxyFigures[] {
    const now = this.options.clock.monotonic();
    return this.#lanes.map(({ lane, requests, failures, refusals, error, pausedUntil }) => ({
      proxy: lane.label,
      requests,
      failures,
      refusals,
      isDead: error !== undefined,
      pausedMs: Math.max(0, pausedUntil - now),
    }));
  }

  /** A request that one proxy cannot send goes through another one at once. Rejects with the error of the last proxy, or with one for all. */
  readonly fetch: Fetch = async (request, context) => {
    if (this.options.isDirect(request.url)) return this.options.direct(request, context);
    const tried = new Set<ProxyLane>();
    let refusal: CryptodlError | undefined;
    for (;;) {
      const lane = await this.#choose(request, tried, refusal !== undefined);
      if (lane === undefined) throw refusal ?? this.#allDead();
      tried.add(lane);
      const isProbe = lane.isProbed;
      try {
        context.signal.throwIfAborted();
        const response = await lane.lane.fetch(request, context);
        lane.onAnswer(isProbe);
        return response;
      } catch (error) {
        if (!(error instanceof CryptodlError) || context.signal.aborted) throw error;
        if (REFUSED.has(error.code)) {
          refusal = error;
          // A breaker sends no request.
          if (error.code === 'breaker-open') lane.requests -= 1;
          else lane.refusals += 1;
        } else if (DEAD.has(error.code) || isProbe) lane.onDead(error, isProbe);
        else throw error;
      } finally {
        lane.inFlight -= 1;
        if (isProbe) lane.isProbed = false;
      }
    }
  };

  /** Takes the usable proxy with the shortest pause; of these, the one with the fewest requests in flight. With `atOnce`, only one without a pause. */
  async #choose(
    request: FetchRequest,
    tried: ReadonlySet<ProxyLane>,
    atOnce: boolean,
  ): Promise<ProxyLane | undefined> {
    const usable = this.#lanes.filter((lane) => !tried.has(lane) && lane.isUsable);
    const pauses = await Promise.all(usable.map((lane) => lane.pauseMs(request)));
    const found = usable
      .map((lane, at) => ({ lane, pauseMs: pauses[at] ?? 0 }))
      // While the pauses were read, another request may have taken the probe.
      .filter(({ lane, pauseMs }) => lane.isUsable && (!atOnce || pauseMs === 0))
      .sort(
        (a, b) =>
          a.pauseMs - b.pauseMs || a.lane.inFlight - b.lane.inFlight || a.lane.requests - b.lane.requests,
      );
    const lane = found[0]?.lane;
    if (lane === undefined) return undefined;
    // Before any other request chooses.
    lane.isProbed = lane.error !== undefined;
    lane.inFlight += 1;
    lane.requests += 1;
    return lane;
  }

  #allDead(): CryptodlError {
    const texts = this.#lanes.map(
      ({ lane, error }) => `${lane.label} ${error === undefined ? 'is not free' : reasonOf(error)}`,
    );
    const message = `none of the ${this.#lanes.length} proxies works: ${texts.join(', ')}`;
    const hint = 'check --proxy; cryptodl doctor shows the proxies one by one';
    const isHopeless = this.#lanes.every(
      ({ requests, failures, inARow }) => requests === failures && inARow >= FAILURES_TO_END,
    );
    if (isHopeless) return new CryptodlError('unreachable', message, { hint });
    const nextMs = Math.min(...this.#lanes.map(({ leftMs }) => leftMs));
    return new CryptodlError('proxy-unreachable', message, { hint, retryAfterMs: Math.max(nextMs, 100) });
  }
}
