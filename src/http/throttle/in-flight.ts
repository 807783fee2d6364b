/** The layer in which requests wait for a socket. In the queue of undici, the wait would spend their timeouts. */
import type { Clock } from '../../model/clock.js';
import { hostOf, type FetchRequest, type Layer, type WaitReason } from '../../model/fetch.js';
import type { Meter } from './meter.js';
import { QuotaBucket } from './quota-bucket.js';
import type { SocketScope } from '../transport/sockets.js';

export function socketLayer({ options, clock, common }: SocketScope): Layer {
  const limited = (
    most: number | undefined,
    wait: WaitReason,
    groupOf: (request: FetchRequest) => string = () => '',
  ): Layer => {
    if (most === undefined) return (next) => next;
    const make = (): Layer => limitInFlight({ clock, most, groupOf, wait });
    return common?.once(`${wait} ${most}`, make) ?? make();
  };
  const ofHost = limited(options.poolLimitPerHost, 'socket-of-host', ({ url }) => hostOf(url));
  const ofAll = limited(options.poolLimit, 'socket');
  return (next) => ofHost(ofAll(next));
}

interface InFlightOptions {
  readonly clock: Clock;
  /** Requests in flight at most, in each group. */
  readonly most: number;
  /** The group of a request, for example its host. */
  readonly groupOf: (request: FetchRequest) => string;
  readonly wait: WaitReason;
}

/** The layer: a request in flight holds a permit. It stands outside of `timeout`, so waiting spends no timeout. */
export function limitInFlight({ clock, most, groupOf, wait }: InFlightOptions): Layer {
  const groups = new Map<string, QuotaBucket>();
  return (next) => async (request, context) => {
    const name = groupOf(request);
    const slots =
      groups.get(name) ??
      new QuotaBucket({ clock, name, meter: slotMeter(most), maxWaitMs: Number.POSITIVE_INFINITY });
    groups.set(name, slots);
    const { signal, waitSignal, onWait } = context;
    const { priority = 'normal' } = request;
    const permit = { weight: 1, priority, onWait: onWait && (() => onWait(wait)) };
    await slots.take(permit, signal, waitSignal);
    try {
      signal.throwIfAborted();
      return await next(request, context);
    } finally {
      slots.giveBack(1);
    }
  };
}

/** Counts the requests that are in flight. A permit becomes free only when one of them ends. */
function slotMeter(most: number): Meter {
  let free = most;
  return {
    most,
    take: () => {
      if (free === 0) return Number.POSITIVE_INFINITY;
      free -= 1;
      return 0;
    },
    giveBack: () => {
      free += 1;
    },
  };
}
