/** The buckets of a run, with the count of their permits and the store of their bans. */
import type { Clock } from '../../model/clock.js';
import { SharedResources } from '../../model/io.js';
import type { Observer } from '../../model/observer.js';
import { bucketOfPlace, placeOf } from '../bans.js';
import type { Bans } from '../bans.js';
import { limitedBuckets } from '../exchange-hosts.js';
import type { ExchangeHosts, LimitOptions } from '../exchange-hosts.js';
import type { Failover } from '../retry/fallback-host.js';
import type { EgressGroup } from './group.js';
import { GroupCount } from './group-count.js';
import { SharedCount } from './shared-count.js';
import { Throttle } from './throttle.js';

interface ThrottleSetup {
  readonly options: LimitOptions & { readonly maxWaitMs: number };
  readonly clock: Clock;
  readonly hosts: ExchangeHosts;
  readonly bans: Pick<Bans, 'leftMs' | 'record'>;
  readonly observer: Pick<Observer, 'warn'>;
  readonly stateFolder: string | undefined;
  readonly failover?: Failover;
  readonly common?: SharedResources | undefined;
  readonly group?: EgressGroup | undefined;
  /** The proxy whose address the servers see, if there are several. */
  readonly via?: string | undefined;
}

/** An egress group counts its windows in Redis, other runs of a machine count them in the state folder. */
export function createThrottle(stack: ThrottleSetup): Throttle {
  const { options, clock, hosts, bans, observer, stateFolder, failover, group, via } = stack;
  const ofProxy = via === undefined ? '' : `-via-${via.replaceAll(/[^\w.-]/g, '_')}`;
  const placeIn = (bucket: string, url: string): string => banPlace(via, bucket, url);
  const warn = (text: string): void => {
    observer.warn(text);
  };
  const throttle = new Throttle({
    clock,
    buckets: limitedBuckets(hosts, options),
    usedPermits: hosts.usedPermits,
    maxWaitMs: options.maxWaitMs,
    shared: sharedBuckets(stack),
    // REST has no entry: a wait for its limits is usual.
    longestWaitMs: { archive: failover?.longestWaitMs, listing: failover?.longestWaitMs },
    ...(stateFolder !== undefined && {
      countOf: (name: string) => new SharedCount({ folder: stateFolder, name: name + ofProxy, warn }),
    }),
    ...(group !== undefined && {
      countOf: (name: string) => new GroupCount(group, name, clock),
      groupState: () => group.state,
    }),
    banLeftMs: ({ bucket, url }) => bans.leftMs(placeIn(bucket, url)),
    onBan: ({ bucket, url }, error, delayMs) => {
      const until = clock.now() + delayMs;
      for (const kin of hosts.bannedWith(url))
        bans.record(placeIn(bucket, kin), { until, why: error.message });
    },
  });
  group?.bans.onBan(({ place, until }) => {
    throttle.pause(bucketOfPlace(place), until - clock.monotonic());
  });
  return throttle;
}

/** A host bans the address that it sees, so each of several proxies has bans of its own. */
export function banPlace(via: string | undefined, bucket: string, url: string): string {
  return placeOf(via === undefined ? bucket : `${bucket}@${via}`, url);
}

/** Jobs of one process share their buckets if they have the same hosts. */
function sharedBuckets({
  common,
  hosts,
  stateFolder,
  group,
  via,
}: ThrottleSetup): SharedResources | undefined {
  const urls = [hosts.archiveUrl, hosts.listingUrl, ...Object.values(hosts.restUrls)];
  const name = `buckets ${JSON.stringify([stateFolder, group?.key, via, ...urls])}`;
  return common?.once(name, () => new SharedResources());
}
