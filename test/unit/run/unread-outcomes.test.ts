/** The outcomes of a run and their reader. */
import { VERBS } from '../../../src/main.js';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startRun } from '../../../src/run/run.js';
import { systemClock } from '../../../src/model/clock.js';
import { SILENT_OBSERVER } from '../../../src/model/observer.js';
import { NO_PROXIES } from '../../../src/files/proxies.js';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import { LiveRun } from '../../../src/run/report/live-run.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { scratchFolder } from '../../helpers/folders.js';
import { RestVenue } from '../../helpers/rest-venue.js';
import { VENUE_PLACES, venueWire } from '../../helpers/venue-wire.js';

const NOW = '2026-11-21T08:00:00.000Z';

it('a run waits while its reader takes no outcome, and no outcome is lost', async () => {
  const home = scratchFolder();
  const live = new LiveRun(systemClock);
  const venue = new RestVenue({
    now: () => Date.parse(NOW),
    symbols: [{ symbol: 'BTCUSDT', host: 'fapi' }],
  });
  const values = {
    ...VENUE_PLACES,
    out: [home],
    'state-dir': [home],
    symbols: ['BTCUSDT'],
    // REST no longer keeps these days: each of them is absent without a request.
    from: ['2020-01-01'],
    to: ['2023-12-31'],
    now: [NOW],
  };
  const run = startRun({
    exchange: loadBinance(),
    verb: 'metrics',
    resolved: resolveOptions(VERBS.metrics, [{ origin: 'flag', values, nameOf: (name) => `--${name}` }]),
    surroundings: { home, stateHome: undefined, proxies: NO_PROXIES },
    observer: SILENT_OBSERVER,
    live,
    clock: systemClock,
    signal: new AbortController().signal,
    wire: venueWire(venue, systemClock, 0).fetch,
  });
  const first = await run.next();
  expect(first.done).toBe(false);
  let undone = Number.NaN;
  for (let still = 0; still < 5000; still += 1) {
    if (live.objects.undone !== undone) still = 0;
    undone = live.objects.undone;
    await turn();
  }
  const { planned } = live.objects;
  expect(planned).toBeGreaterThan(2000);
  expect(planned - undone).toBeLessThan(1100);
  let rest = 0;
  while ((await run.next()).done !== true) rest += 1;
  expect([rest + 1, live.objects.undone]).toEqual([planned, 0]);
});
