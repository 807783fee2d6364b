/** A run in bad weather that is ended, banned and refused on its way: in simulated time, to the last row. */
import { describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { expectWhole } from '../helpers/metrics-census.js';
import { refusal } from '../helpers/requests.js';
import type { Asked, VenueSymbol } from '../helpers/rest-venue-types.js';
import { oneInTwenty } from '../helpers/venue-faults.js';
import { PLACES, virtualMetrics } from '../helpers/virtual-metrics.js';
import type { VirtualMetrics } from '../helpers/virtual-metrics.js';

const SYMBOLS: readonly VenueSymbol[] = Array.from({ length: 40 }, (_, index) => ({
  symbol: `S${String(index).padStart(3, '0')}USDT`,
  host: 'fapi',
  fundingHours: [8, 4, 1][index % 3] ?? 8,
}));
const DAYS = { from: Date.parse('2026-10-23'), to: Date.parse('2026-11-21') };
const WHAT = { symbols: ['all'], days: ['29'] };
const STOP_AT = 700;
const BAN_MS = 600_000;
/** The first is longer than the run wants to wait, the second is waited for. */
const BANS_AT = [1400, 2800];

describe('40 symbols × 29 days while one request in twenty fails', () => {
  const scratch = scratchFolder();

  it('survive an abort and two bans with every row once, and nothing is asked while a ban lasts', async () => {
    const stop = new AbortController();
    const bans: Asked[] = [];
    const scene: VirtualMetrics = virtualMetrics(scratch, {
      symbols: SYMBOLS,
      disturb: (asked) => {
        if (asked.number === STOP_AT) stop.abort();
        if (BANS_AT.includes(asked.number)) {
          scene.venue.ban(BAN_MS);
          bans.push(asked);
        }
        // A banned address gets no other answer.
        if (asked.at - (bans.at(-1)?.at ?? 0) < BAN_MS) return undefined;
        return oneInTwenty(asked, (one) => scene.venue.usual(one));
      },
    });
    const { venue, clock, lake, run } = scene;

    const aborted = await run(WHAT, stop.signal);
    expect(aborted).toMatchObject({ exitCode: 1, outcomes: { failed: 0 } });
    expect(aborted.retries).toBeGreaterThan(STOP_AT / 50);
    expect(venue.log.length).toBeLessThan(STOP_AT + PLACES);

    const banned = await run({ ...WHAT, 'max-wait': ['5m'] });
    expect(banned).toMatchObject({ exitCode: 7, outcomes: { skipped: aborted.outcomes.ok } });
    const asked = venue.log.length;

    const refused = await refusal(run({ ...WHAT, 'max-wait': ['5m'] }));
    expect(refused.code).toBe('wait-too-long');
    expect(venue.log).toHaveLength(asked);

    await clock.advance(BAN_MS + 2000);
    const last = await run(WHAT);
    expect(last).toMatchObject({
      exitCode: 0,
      outcomes: { skipped: aborted.outcomes.ok + banned.outcomes.ok, failed: 0 },
    });
    expect(venue.refused).toBe(0);
    const during = bans.flatMap((first) =>
      venue.log.filter(({ at, number }) => number >= first.number && at < first.at + BAN_MS),
    );
    expect(bans).toHaveLength(BANS_AT.length);
    // No more than what was under way already when the first of them was refused.
    expect(during).toHaveLength(venue.banned);
    expect(during.length).toBeLessThanOrEqual(BANS_AT.length * PLACES);

    await expectWhole(lake, SYMBOLS, DAYS);
  });
});
