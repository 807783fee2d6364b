/** The order of the layers of a request. */
import type { AttemptEnd, Fetch, FetchRequest, Layer } from '../model/fetch.js';
import { breaker } from './retry/breaker.js';
import { retryBudget } from './retry/budget.js';
import { fallbackHost } from './retry/fallback-host.js';
import { isBadContent, retry } from './retry/retry.js';
import { follow } from './transport/measure.js';
import { loadSignOf } from './transport/load-sign.js';
import { verify } from './transport/verify-body.js';
import type { StackOptions } from './stack-options.js';
import { attemptOver, type Layers } from './attempt.js';

/** Retries in flight that the retry budget of a host allows at any concurrency. */
const LEAST_RETRIES_AT_ONCE = 5;

/** Outermost first: follow, retry, verify, retryBudget, fallbackHost, breaker, throttle, sockets, timeout, measure, redirect, sign, wire. */
export function layersOver(wire: Fetch, stack: StackOptions): Layers {
  const { throttle, fetch } = laneOver(wire, stack);
  return { throttle, fetch: around(fetch, stack) };
}

/** The layers from the breaker inward. */
export function laneOver(wire: Fetch, stack: StackOptions, sockets?: Layer): Layers {
  const { options, clock, observer, figures, followers, concurrency, via } = stack;
  const broken = breaker({
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
    if (isOfArchive(request)) concurrency?.onBegun();
    return (attempt) => {
      for (const end of ends) end?.(attempt);
      figures.ended?.(attempt);
      if (isOfArchive(request)) concurrency?.onEnded(loadSignOf(attempt, stack.isLate()));
      observer.attempt(attempt);
    };
  };
  const { throttle, fetch } = attemptOver(wire, stack, onAttempt, sockets);
  return { throttle, fetch: broken(fetch) };
}

/** The layers above the breakers. */
export function around(lanes: Fetch, stack: StackOptions): Fetch {
  const { options, clock, concurrency } = stack;
  const budgeted = retryBudget(
    {
      clock,
      maxWaitMs: options.maxWaitMs,
      mostAtOnce: () => Math.max(LEAST_RETRIES_AT_ONCE, Math.floor((concurrency?.limit ?? 0) / 10)),
      onWaiting: (change) => concurrency?.onWaiting(change),
    },
    stack.budgets,
  );
  const fallback = fallbackHost(stack.hosts.archiveUrl, stack.hosts.fallbackUrl);
  const retried = retryLayer(stack)(verify(budgeted(fallback(lanes))));
  return follow(stack.followers)(retried);
}

function retryLayer(stack: StackOptions): Layer {
  const { options, clock, observer, figures, concurrency, failover, waitSignal } = stack;
  return retry({
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
}

/** Only attempts for objects and sidecars count for the concurrency. The listing and REST have other hosts and limits. */
function isOfArchive({ bucket }: Pick<FetchRequest, 'bucket'>): boolean {
  return bucket === 'archive';
}
