/** Jobs of one process share the buckets of the hosts that they ask. */
import { VERBS } from '../../../src/main.js';
import { expect, it } from 'vitest';
import { layersOver } from '../../../src/http/stack.js';
import type { Stack } from '../../../src/http/stack-options.js';
import { SharedResources } from '../../../src/model/shared-resources.js';
import { SILENT_OBSERVER } from '../../../src/model/observer.js';
import { NO_PROXIES } from '../../../src/files/proxies.js';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import type { RawValues } from '../../../src/plan/options/resolve.js';
import { Concurrency, mostInFlight } from '../../../src/run/pacing/concurrency.js';
import { Costs } from '../../../src/run/report/costs.js';
import { Figures } from '../../../src/run/report/figures.js';
import { LiveRun } from '../../../src/run/report/live-run.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { exchangeHosts } from '../../../src/exchange/hosts.js';
import { answer } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const { signal } = new AbortController();
const ONE_PER_SECOND = [{ text: 'archive=1/s', bucket: 'archive', permits: 1, windowMs: 1000 }];

interface Job {
  readonly stateFolder?: string;
  readonly flags?: RawValues;
}

const LISTING: RawValues = { 'listing-url': ['http://listing.test'] };

function layersOf(
  clock: VirtualClock,
  common: SharedResources,
  { stateFolder = '/nowhere', flags = {} }: Job,
): Pick<Stack, 'fetch' | 'throttle'> {
  const values = { ...LISTING, ...flags };
  const { options: given } = resolveOptions(VERBS.vision, [
    { origin: 'flag', values, nameOf: (name) => `--${name}` },
  ]);
  const options = { ...given, limits: ONE_PER_SECOND };
  return layersOver(() => Promise.resolve(answer('x')), {
    options: { ...options, mostInFlight: mostInFlight(options.concurrency) },
    clock,
    hosts: exchangeHosts(options, loadBinance()),
    observer: SILENT_OBSERVER,
    figures: new Figures(),
    followers: [new Costs(clock), new LiveRun(clock)],
    concurrency: new Concurrency({ choice: options.concurrency, start: 30 }),
    bans: { leftMs: () => Promise.resolve(0), record: () => undefined },
    proxies: NO_PROXIES,
    stateFolder,
    isLate: () => false,
    signal,
    common,
  });
}

it.each<[string, Job, number]>([
  ['the same hosts wait for one another', {}, 1],
  ['another --archive-url do not', { flags: { 'archive-url': ['http://mirror.test'] } }, 0],
  ['another --listing-url do not', { flags: { 'listing-url': ['http://mirror.test'] } }, 0],
  ['another --fapi-url do not', { flags: { 'fapi-url': ['http://rest.test'] } }, 0],
  ['another state folder do not', { stateFolder: '/elsewhere' }, 0],
])('jobs of %s', async (_, second, waits) => {
  const clock = new VirtualClock();
  const common = new SharedResources();
  const jobs = [layersOf(clock, common, {}), layersOf(clock, common, second)];
  const url = 'http://archive.test/object.zip';
  const done = Promise.all(
    jobs.map(({ fetch }) => fetch({ url, bucket: 'archive' }, { signal, traceId: url })),
  );
  for (let seconds = 0; seconds < 3; seconds += 1) await clock.advance(1000);
  await done;
  expect(jobs.reduce((sum, { throttle }) => sum + throttle.figures.waits, 0)).toBe(waits);
});

it('a shared resource that could not be made is made again', async () => {
  const common = new SharedResources();
  await common.once('a', () => Promise.reject(new Error('lost'))).catch(() => undefined);
  expect(await common.once('a', () => Promise.resolve(1))).toBe(1);
});
