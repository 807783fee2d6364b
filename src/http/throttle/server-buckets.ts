/** The buckets of the servers, which the runs of one process share. */
import type { Clock } from '../../model/clock.js';
import { SharedResources } from '../../model/shared-resources.js';
import type { Observer } from '../../model/observer.js';
import type { Bans } from './bans.js';
import type { ExchangeHosts, LimitOptions, Quota } from './exchange-hosts.js';
import type { Failover } from './failover.js';
import type { EgressGroup } from './group.js';
import { GroupCount } from './group-count.js';
import { RateMeter } from './meter.js';
import { ProcessCount, SharedCount, type WindowCount } from './window-count.js';
import { WindowMeter, ServerClock } from './window-meter.js';
import { QuotaBucket, type QuotaBucketOptions } from './quota-bucket.js';

export interface ThrottleSetup {
  readonly options: LimitOptions & { readonly maxWaitMs: number };
  readonly clock: Clock;
  readonly hosts: ExchangeHosts;
  readonly bans: Pick<Bans, 'leftMs' | 'record'>;
  readonly observer: Pick<Observer, 'warn'>;
  readonly stateFolder: string | undefined;
  readonly failover?: Failover | undefined;
  readonly common?: SharedResources | undefined;
  readonly group?: EgressGroup | undefined;
  /** The proxy whose address the servers see, if there are several. */
  readonly via?: string | undefined;
}

export interface ServerBucket {
  readonly quota: Quota;
  readonly bucket: QuotaBucket;
  readonly time: ServerClock;
  /** Undefined for a rate. */
  readonly window: WindowMeter | undefined;
}

/** An egress group counts its windows in Redis, other runs of a machine count them in the state folder. */
export function countsOf(setup: ThrottleSetup): (bucket: string) => WindowCount {
  const { observer, stateFolder, clock, group, via } = setup;
  const ofProxy = via === undefined ? '' : `-via-${via.replaceAll(/[^\w.-]/g, '_')}`;
  const warn = (text: string): void => observer.warn(text);
  return (bucket) => {
    if (group !== undefined) return new GroupCount(group, bucket, clock);
    if (stateFolder === undefined) return new ProcessCount();
    return new SharedCount({ folder: stateFolder, name: bucket + ofProxy, warn });
  };
}

/** Jobs of one process share their buckets if they have the same hosts. */
export function sharedBuckets({ common, hosts, stateFolder, group, via }: ThrottleSetup): SharedResources {
  const urls = [hosts.archiveUrl, hosts.listingUrl, ...Object.values(hosts.restUrls)];
  const name = `buckets ${JSON.stringify([stateFolder, group?.id, via, ...urls])}`;
  return common?.once(name, () => new SharedResources()) ?? new SharedResources();
}

/**
 * A bucket that the runs of one process share. Buckets with equal options are one bucket. Buckets of one name with different
 * options share the count of permits, so that all runs together stay below the limit of the exchange.
 */
export function sharedBucket(
  quota: Quota,
  waits: Pick<QuotaBucketOptions, 'clock' | 'maxWaitMs' | 'name'>,
  countOf: (bucket: string) => WindowCount,
  shared: SharedResources,
): ServerBucket {
  const { clock, maxWaitMs, name } = waits;
  return shared.once(`bucket ${JSON.stringify([name, quota, maxWaitMs])}`, () => {
    const count = shared.once(`count ${name}`, () => countOf(name));
    const localOffsetMs = clock.now() - clock.monotonic();
    const time = new ServerClock(() => count.offsetMs ?? localOffsetMs);
    const { paces } = quota;
    if ('permitsPerSecond' in quota) {
      const meter = shared.once(`rate ${name}`, () => new RateMeter(quota, clock.monotonic()));
      return { quota, time, window: undefined, bucket: new QuotaBucket({ ...waits, paces, meter }) };
    }
    const budget = { permits: quota.permits, windowMs: quota.windowSeconds * 1000 };
    const window = new WindowMeter(budget, (nowMs) => time.at(nowMs), count);
    const bucket = new QuotaBucket({ ...waits, paces, meter: window });
    count.onChange?.(() => bucket.wake());
    return { quota, time, window, bucket };
  });
}
