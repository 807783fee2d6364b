/** The buckets of a run without other runs, programs and bans. */
import { Throttle } from '../../src/http/throttle/throttle.js';
import type { ThrottleSetup } from '../../src/http/throttle/server-buckets.js';
import { BINANCE_ANSWERS } from '../../src/exchange/binance/answers.js';
import type { VirtualClock } from './virtual-clock.js';

export const NO_BANS: ThrottleSetup['bans'] = {
  leftMs: () => Promise.resolve(0),
  record: () => undefined,
};

/** These buckets, with the headers of Binance and a long patience unless the test says otherwise. */
export function throttleOf(
  clock: VirtualClock,
  buckets: ThrottleSetup['hosts']['buckets'],
  changes: Partial<ThrottleSetup> = {},
  countOf?: ConstructorParameters<typeof Throttle>[1],
): Throttle {
  const hosts = {
    ...BINANCE_ANSWERS,
    buckets,
    archiveUrl: 'http://host.test',
    listingUrl: 'http://host.test',
    fallbackUrl: undefined,
    restUrls: {},
    knownUrls: [],
    bannedWith: (url: string) => [url],
  };
  const options = { maxWaitMs: 3_600_000 };
  const observer = { warn: () => undefined };
  const setup = { options, clock, hosts, bans: NO_BANS, observer, stateFolder: undefined, ...changes };
  return new Throttle(setup, countOf);
}
