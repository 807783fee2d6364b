/**
 * Spreads requests over several proxies. Each proxy has a lane of its own: breaker, permits, bans and connections. A proxy that does not
 * work is taken out, and gets a request again after a delay that grows.
 */
import { CryptodlError, NO_CONNECTION, type ErrorCode } from '../../model/errors.js';
import type { Fetch, FetchRequest } from '../../model/fetch.js';
import { ProxyLane, type ProxyFigures, type SpreadOptions } from './proxy-lane.js';

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
/** If no proxy has ever worked, the run ends when each has failed so many times. */
const FAILURES_TO_END = 2;

export class Spread {
  readonly #lanes: readonly ProxyLane[];

  constructor(private readonly options: SpreadOptions) {
    this.#lanes = options.lanes.map((lane) => new ProxyLane(lane, options));
  }

  get figures(): ProxyFigures[] {
    return this.#lanes.map((lane) => lane.figures);
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
      .map((lane, index) => ({ lane, pauseMs: pauses[index] ?? 0 }))
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
      ({ lane, error }) =>
        `${lane.label} ${error === undefined ? 'is not free' : (error.proxyFault ?? error.message)}`,
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
