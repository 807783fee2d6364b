/** The layers of one attempt, from the permit to the wire. */
import type { ExchangeHosts } from './exchange-hosts.js';
import { hostOf, type Fetch } from '../model/fetch.js';
import { Throttle } from './throttle/throttle.js';
import { measure, type RequestFollower } from './transport/measure.js';
import { createPools, type Pools } from './transport/pool.js';
import { redirect } from './transport/redirect.js';
import { poolOptions } from './transport/sockets.js';
import { limitBandwidth, UNLIMITED } from './transport/bandwidth.js';
import { withSockets } from './transport/in-flight.js';
import { timeout } from './transport/timeout.js';
import { createTransport, type TransportOptions } from './transport/transport.js';
import type { AttemptOptions } from './stack-options.js';

export interface Layers {
  readonly throttle: Throttle;
  readonly fetch: Fetch;
}

export function openWire(
  stack: AttemptOptions,
  bandwidth = bandwidthOf(stack),
): { pools: Pools; wire: Fetch } {
  const { clock, hosts } = stack;
  const pools = createPools(poolOptions(stack));
  const own = createTransport({ clock, pools, bandwidth, readRefusal: hosts.readRefusal });
  return { pools, wire: stack.wire ?? own };
}

export function attemptOver(
  wire: Fetch,
  stack: AttemptOptions,
  onAttempt: NonNullable<RequestFollower['onAttempt']>,
  sockets = withSockets(stack),
): Layers {
  const { options, clock } = stack;
  const throttle = new Throttle(stack);
  const timed = timeout(clock, options);
  const measured = measure(clock, onAttempt);
  const signed = stack.sign?.(wire) ?? wire;
  const sent = timed(measured(redirect(knownHosts(stack.hosts))(signed)));
  return { throttle, fetch: throttle.layer(sockets(sent)) };
}

export function bandwidthOf({
  options,
  clock,
  signal,
  common,
}: AttemptOptions): TransportOptions['bandwidth'] {
  const { bwlimitBytesPerSecond: limit } = options;
  if (limit === undefined) return UNLIMITED;
  const used = common?.once(`bandwidth ${limit}`, () => ({ untilMs: clock.monotonic() }));
  return limitBandwidth(limit, clock, signal, used);
}

function knownHosts(hosts: ExchangeHosts): ReadonlySet<string> {
  const { archiveUrl, listingUrl, fallbackUrl = archiveUrl, restUrls, knownUrls } = hosts;
  return new Set([archiveUrl, listingUrl, fallbackUrl, ...Object.values(restUrls), ...knownUrls].map(hostOf));
}
