/** The permits of several proxies: a server counts the requests of each address on its own. */
import { describe, expect, it } from 'vitest';
import type { Fetch, FetchContext, FetchRequest } from '../../src/http/fetch.js';
import { createThrottle } from '../../src/http/throttle/create-throttle.js';
import { systemClock } from '../../src/model/clock.js';
import { SharedResources } from '../../src/model/io.js';
import { scratchFolder } from '../helpers/folders.js';

const scratch = scratchFolder();
const REQUEST = { url: 'http://host.test/a', bucket: 'futures' } as unknown as FetchRequest;
const ANSWER = { status: 200, headers: {} } as unknown as Awaited<ReturnType<Fetch>>;
const HOSTS = {
  // One permit in a window that does not end during the test.
  buckets: { futures: { permits: 1, windowSeconds: 1_000_000_000 } },
  archiveUrl: 'http://host.test',
  listingUrl: 'http://host.test',
  fallbackUrl: undefined,
  restUrls: {},
  knownUrls: [],
  bannedWith: (url: string) => [url],
  usedPermits: () => 0,
  readRefusal: () => ({}),
};

async function untilWaiting(isWaiting: () => boolean): Promise<void> {
  while (!isWaiting()) await new Promise((resolve) => setImmediate(resolve));
}

/** The outcomes of one request through each of these proxies. */
async function outcomes(
  proxies: readonly string[],
  shared: { readonly stateFolder?: string; readonly common?: SharedResources },
): Promise<string[]> {
  const found: string[] = [];
  for (const via of proxies) {
    const throttle = createThrottle({
      options: { maxWaitMs: 1 },
      clock: systemClock,
      hosts: HOSTS,
      bans: { leftMs: () => Promise.resolve(0), record: () => undefined },
      observer: { warn: () => undefined },
      stateFolder: shared.stateFolder,
      common: shared.common,
      via,
    });
    const fetch = throttle.layer(() => Promise.resolve(ANSWER));
    const stop = new AbortController();
    const outcome = fetch(REQUEST, { signal: stop.signal } as unknown as FetchContext).then(
      () => 'sent',
      () => 'waits',
    );
    // A request without a permit waits, and its bucket says so.
    await Promise.race([
      outcome,
      untilWaiting(() => stop.signal.aborted || throttle.states.some(({ waiting }) => waiting > 0)),
    ]);
    stop.abort();
    found.push(await outcome);
  }
  return found;
}

describe('each proxy has permits of its own, which all runs through it share', () => {
  it('in the state folder of the machine', async () => {
    expect(await outcomes(['a:1', 'b:1', 'a:1', 'b:1'], { stateFolder: scratch })).toEqual([
      'sent',
      'sent',
      'waits',
      'waits',
    ]);
  });

  it('among the jobs of a process', async () => {
    const common = new SharedResources();
    expect(await outcomes(['a:1', 'b:1', 'a:1'], { common })).toEqual(['sent', 'sent', 'waits']);
  });
});
