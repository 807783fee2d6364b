/** The order of the layers of a request. */
import { hostOf, type AttemptEnd, type Fetch, type FetchRequest, type Layer } from '../model/fetch.js';
import { breakerLayer } from './retry/breaker.js';
import { budgetLayer } from './retry/budget.js';
import { fallbackLayer } from './retry/fallback-host.js';
import { isBadContent, retryLayer } from './retry/retry.js';
import { followLayer, measureLayer, type RequestFollower } from './transport/measure.js';
import { loadSignOf } from './load-sign.js';
import { verifyLayer } from './transport/verify-body.js';
import type { StackOptions, AttemptOptions } from './stack-options.js';
import { Throttle } from './throttle/throttle.js';
import { createPools } from './transport/pool.js';
import { redirectLayer } from './transport/redirect.js';
import { poolOptions } from './transport/sockets.js';
import { limitBandwidth, UNLIMITED, type Bandwidth } from './transport/bandwidth.js';
import { socketLayer } from './throttle/in-flight.js';
import { timeoutLayer } from './transport/timeout.js';
import { createTransport } from './transport/transport.js';

/** Retries in flight that the retry budget of a host allows at any concurrency. */
const LEAST_RETRIES_AT_ONCE = 5;

/** Outermost first: follow, retry, verify, budget, fallback, breaker, throttle, sockets, timeout, measure, redirect, sign, wire. */
export function layersOver(wire: Fetch, stack: StackOptions) {
  const { throttle, fetch } = laneOver(wire, stack);
  return { throttle, fetch: around(fetch, stack) };
}

/** The layers from the breaker inward. */
export function laneOver(wire: Fetch, stack: StackOptions, sockets?: Layer) {
  const { options, clock, observer, figures, followers, concurrency, via } = stack;
  const broken = breakerLayer({
    ...options,
    clock,
    onChange: (of, state, leftMs) => {
      const host = via === undefined ? of : `${of} via ${via}`;
      figures.onBreaker?.(host, state, leftMs);
      observer.event('breaker', { host, state });
    },
    failover: stack.failover,
    hint: stack.hosts.hint,
  });
  const onAttempt = (request: FetchRequest): ((attempt: AttemptEnd) => void) => {
    const ends = followers.map((follower) => follower.onAttempt?.(request));
    figures.begun?.();
    // The listing and REST have other hosts and limits than objects and sidecars.
    const load = request.bucket === 'archive' ? concurrency : undefined;
    load?.onBegun();
    return (attempt) => {
      for (const end of ends) end?.(attempt);
      figures.ended?.(attempt);
      load?.onEnded(loadSignOf(attempt, stack.isLate()));
      observer.attempt(attempt);
    };
  };
  const { throttle, fetch } = attemptOver(wire, stack, onAttempt, sockets);
  return { throttle, fetch: broken(fetch) };
}

/** The layers above the breakers. */
export function around(lanes: Fetch, stack: StackOptions): Fetch {
  const { options, clock, observer, figures, concurrency, failover, waitSignal } = stack;
  const budgeted = budgetLayer(
    {
      clock,
      maxWaitMs: options.maxWaitMs,
      mostAtOnce: () => Math.max(LEAST_RETRIES_AT_ONCE, Math.floor((concurrency?.limit ?? 0) / 10)),
      onWaiting: (change) => concurrency?.onWaiting(change),
    },
    stack.budgets,
  );
  const fallback = fallbackLayer(stack.hosts.archiveUrl, stack.hosts.fallbackUrl);
  const retried = retryLayer({
    ...options,
    clock,
    failover,
    waitSignal,
    onRetry: (event) => {
      figures.onRetry?.(event);
      if (isBadContent(event.error)) concurrency?.onBadContent(clock.monotonic());
      observer.retry(event);
    },
    onEnd: (retries, error) => figures.onRequestEnd?.(retries, error),
  });
  return followLayer(stack.followers)(retried(verifyLayer(budgeted(fallback(lanes)))));
}

/** The layers of one attempt, from the permit to the wire. */
export function attemptOver(
  wire: Fetch,
  stack: AttemptOptions,
  onAttempt: NonNullable<RequestFollower['onAttempt']>,
  sockets = socketLayer(stack),
) {
  const { options, clock, hosts } = stack;
  const { archiveUrl, listingUrl, fallbackUrl = archiveUrl, restUrls, knownUrls } = hosts;
  const urls = [archiveUrl, listingUrl, fallbackUrl, ...Object.values(restUrls), ...knownUrls];
  const throttle = new Throttle(stack);
  const signed = stack.sign?.(wire) ?? wire;
  const redirected = redirectLayer(new Set(urls.map(hostOf)))(signed);
  const sent = timeoutLayer(clock, options)(measureLayer(clock, onAttempt)(redirected));
  return { throttle, fetch: throttle.layer(sockets(sent)) };
}

export function openWire(stack: AttemptOptions, bandwidth = bandwidthOf(stack)) {
  const pools = createPools(poolOptions(stack));
  const { readRefusal } = stack.hosts;
  return {
    pools,
    wire: stack.wire ?? createTransport({ clock: stack.clock, pools, bandwidth, readRefusal }),
  };
}

export function bandwidthOf({ options, clock, signal, common }: AttemptOptions): Bandwidth {
  const { bwlimitBytesPerSecond: limit } = options;
  if (limit === undefined) return UNLIMITED;
  const used = common?.once(`bandwidth ${limit}`, () => ({ untilMs: clock.monotonic() }));
  return limitBandwidth(limit, clock, signal, used);
}
