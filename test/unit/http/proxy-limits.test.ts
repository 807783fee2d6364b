/** The throttle of a run: the permits of several proxies, which a server counts one by one, and the bans of hosts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { Throttle } from '../../../src/http/throttle/throttle.js';
import type { ThrottleSetup } from '../../../src/http/throttle/server-buckets.js';
import { EgressGroup } from '../../../src/http/throttle/group.js';
import { Failover } from '../../../src/http/throttle/failover.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { SharedResources } from '../../../src/model/shared-resources.js';
import { scratchFolder } from '../../helpers/folders.js';
import { answer, context, refusal } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const scratch = scratchFolder();
const clock = new VirtualClock();
const REQUEST = { url: 'http://host.test/a', bucket: 'futures' };
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

function throttleOf(changes: Partial<ThrottleSetup>) {
  return new Throttle({
    options: { maxWaitMs: 60_000 },
    clock,
    hosts: HOSTS,
    bans: { leftMs: () => Promise.resolve(0), record: () => undefined },
    observer: { warn: () => undefined },
    stateFolder: undefined,
    ...changes,
  });
}

const send = (throttle: Throttle, bucket = REQUEST.bucket) =>
  throttle.layer(() => Promise.resolve(answer()))({ ...REQUEST, bucket }, context());

/** The outcomes of one request through each of these proxies. */
async function outcomes(
  proxies: readonly string[],
  shared: { readonly stateFolder?: string; readonly common?: SharedResources },
): Promise<string[]> {
  const found: string[] = [];
  for (const via of proxies) {
    const fetch = throttleOf({ ...shared, via }).layer(() => Promise.resolve(answer()));
    const stop = new AbortController();
    const outcome = fetch(REQUEST, context(stop.signal)).then(
      () => 'sent',
      () => 'waits',
    );
    await clock.advance(0);
    stop.abort(new Error('enough'));
    found.push(await outcome);
  }
  return found;
}

describe('each proxy has permits of its own, which all runs through it share', () => {
  it('in the state folder of the machine', async () => {
    const found = await outcomes(['a:1', 'b:1', 'a:1', 'b:1'], { stateFolder: scratch });
    expect(found).toEqual(['sent', 'sent', 'waits', 'waits']);
  });

  it('among the jobs of a process', async () => {
    const common = new SharedResources();
    expect(await outcomes(['a:1', 'b:1', 'a:1'], { common })).toEqual(['sent', 'sent', 'waits']);
  });
});

describe('an egress group', () => {
  it('counts the windows in place of this process, and its bans pause the buckets of their hosts', async () => {
    const address = 'redis://127.0.0.1:1';
    const group = new EgressGroup({ address, name: 'office', clock, warn: () => undefined });
    const onBan = vi.spyOn(group, 'onBan');
    const throttle = throttleOf({ group });
    void send(throttle);
    onBan.mock.lastCall?.[0]({ place: 'futures host.test', untilMs: clock.monotonic() + 5000, why: 'why' });
    const state = { name: 'office', members: 10, isShared: false };
    expect(throttle.figures.group).toEqual(state);
    await clock.advance(0);
    expect(throttle.states).toMatchObject([{ waiting: 1, pausedMs: 5000, group: state }]);
    await clock.advance(6000);
    expect(throttle.states).toMatchObject([{ waiting: 1, pausedMs: 0 }]);
  });
});

describe('a run', () => {
  it('warns when it counts alone', async () => {
    const warnings: string[] = [];
    const stateFolder = join(scratch, 'file');
    writeFileSync(stateFolder, '');
    const throttle = throttleOf({ stateFolder, observer: { warn: (text) => void warnings.push(text) } });
    await send(throttle);
    expect(warnings).toEqual([expect.stringContaining('runs on this machine are not counted')]);
  });

  it('does not wait for a pause of the archive while another host has the objects', async () => {
    const throttle = throttleOf({
      hosts: { ...HOSTS, buckets: { archive: { permitsPerSecond: 1, burst: 1 } } },
      failover: new Failover(true),
      bans: { leftMs: () => Promise.resolve(20_000), record: () => undefined },
    });
    expect(await refusal(send(throttle, 'archive'))).toMatchObject({ isGivenUp: true });
  });
});

describe('a ban', () => {
  it('is recorded with its end for all hosts that ban together, as they see the proxy', async () => {
    const recorded: unknown[] = [];
    const throttle = throttleOf({
      via: 'a:1',
      hosts: { ...HOSTS, bannedWith: (url) => [url, 'http://other.test/'] },
      bans: { leftMs: () => Promise.resolve(0), record: (...ban) => void recorded.push(ban) },
    });
    const banned = new CryptodlError('banned', 'said by the test', { retryAfterMs: 5000 });
    await refusal(throttle.layer(() => Promise.reject(banned))(REQUEST, context()));
    const ban = { untilMs: clock.now() + 5000, why: 'said by the test' };
    expect(recorded).toEqual(['host.test', 'other.test'].map((host) => [`futures@a:1 ${host}`, ban]));
  });

  it.each([
    ['a:1', 'futures@a:1 host.test'],
    [undefined, 'futures host.test'],
  ])('of another run through the proxy %s is waited for', async (via, banned) => {
    const leftMs = (place: string) => Promise.resolve(place === banned ? 3000 : 0);
    const throttle = throttleOf({ via, bans: { leftMs, record: () => undefined } });
    const response = send(throttle);
    await clock.advance(3000);
    expect(await response).toMatchObject({ status: 200 });
    expect(throttle.figures).toMatchObject({ waits: 1, waitedMs: 3000 });
  });
});
