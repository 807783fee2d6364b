/** `cryptodl metrics` within this process, the venue and the program on one virtual clock. */
import { VERBS } from '../../src/main.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';
import { join } from 'node:path';
import { SILENT_OBSERVER } from '../../src/model/observer.js';
import type { RawValues } from '../../src/plan/options/resolve.js';
import { resolveOptions } from '../../src/plan/options/resolve.js';
import { NO_PROXIES } from '../../src/files/proxies.js';
import { LiveRun } from '../../src/run/report/live-run.js';
import { summaryOf } from '../../src/run/report/run-summary.js';
import type { RunSummary } from '../../src/run/report/run-summary.js';
import { forEachItem } from '../../src/run/verb/items.js';
import { startRun } from '../../src/run/run.js';
import { IdleClock } from './idle-clock.js';
import { NOW } from './metrics-scene.js';
import { randoms } from './randoms.js';
import { RestVenue } from './rest-venue.js';
import type { RestVenueOptions } from './rest-venue.js';
import { VENUE_PLACES, venueWire } from './venue-wire.js';

export const PLACES = 10;
const LATENCY_MS = 80;

export interface VirtualMetrics {
  readonly clock: IdleClock;
  readonly venue: RestVenue;
  readonly lake: string;
  /** Warnings of all runs. */
  readonly warnings: readonly string[];
  /** A whole run, by its flags; where things are is added. */
  readonly run: (flags: RawValues, signal?: AbortSignal) => Promise<RunSummary>;
}

export interface VirtualOptions extends Omit<RestVenueOptions, 'now'> {
  /** Where it begins; `NOW` unless told otherwise. */
  readonly now?: string;
}

export function virtualMetrics(folder: string, { now = NOW, ...options }: VirtualOptions): VirtualMetrics {
  const clock = new IdleClock(Date.parse(now));
  clock.random = randoms(11);
  const venue = new RestVenue({ ...options, now: () => clock.now() });
  const wire = venueWire(venue, clock, LATENCY_MS);
  const lake = join(folder, 'lake');
  const warnings: string[] = [];
  const run: VirtualMetrics['run'] = async (flags, signal = new AbortController().signal) => {
    const values = {
      ...VENUE_PLACES,
      out: [lake],
      'state-dir': [join(folder, 'state')],
      now: [new Date(clock.now()).toISOString()],
      concurrency: [String(PLACES)],
      ...flags,
    };
    let told = 0;
    const live = new LiveRun(clock);
    const tell = (): void => {
      told += 1;
    };
    const started = startRun({
      exchange: loadBinance(),
      verb: 'metrics',
      resolved: resolveOptions(VERBS.metrics, [{ origin: 'flag', values, nameOf: (name) => `--${name}` }]),
      surroundings: { home: folder, stateHome: undefined, proxies: NO_PROXIES },
      observer: {
        ...SILENT_OBSERVER,
        warn: (message) => warnings.push(message),
        arrived: tell,
        event: tell,
      },
      live,
      clock,
      signal,
      wire: wire.fetch,
    });
    const end = clock.drive(
      forEachItem(started, () => undefined),
      {
        progress: () => told + wire.events(),
        isFull: () => (live.progress?.state().inFlight ?? 0) >= PLACES,
      },
    );
    return summaryOf(await end);
  };
  return { clock, venue, lake, warnings, run };
}
