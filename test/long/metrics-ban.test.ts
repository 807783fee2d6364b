/** A ban while one request in twenty fails: no run sends a request during the ban, and nothing is lost. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { expectWhole } from '../helpers/metrics-census.js';
import { metricsScene } from '../helpers/metrics-scene.js';
import type { MetricsScene } from '../helpers/metrics-scene.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';
import { oneInTwenty } from '../helpers/venue-faults.js';

const scratch = scratchFolder();
const SYMBOLS: readonly VenueSymbol[] = Array.from({ length: 12 }, (_, index) => ({
  symbol: `S${index}USDT`,
  host: 'fapi',
  fundingHours: index % 2 === 0 ? 8 : 4,
}));
const DAYS = { from: Date.parse('2026-11-09'), to: Date.parse('2026-11-21') };
const BAN_AT = 200;
/** Long enough for a process to begin and end meanwhile. */
const BAN_MS = 10_000;
/** A ban is told to the second of the clock, and believed a second longer. */
const BELIEVED_MS = BAN_MS + 2500;
const PLACES = 4;

let scene: MetricsScene | undefined;
afterEach(() => scene?.close());

describe('a ban of the whole exchange while one request in twenty fails', () => {
  it('ends the run, is kept by the next one without a request, and nothing is lost or doubled in the end', async () => {
    let bannedAt = Number.NaN;
    let endOfBan: Promise<void> | undefined;
    const opened: MetricsScene = await metricsScene(scratch, {
      symbols: SYMBOLS,
      isTicking: true,
      disturb: (asked) => {
        if (asked.number === BAN_AT) {
          opened.venue.ban(BAN_MS);
          bannedAt = asked.at;
          endOfBan = sleep(BELIEVED_MS, undefined, { ref: false });
        }
        // Whoever is banned gets no other answer.
        if (asked.at - bannedAt < BAN_MS) return undefined;
        return oneInTwenty(asked, (one) => opened.venue.usual(one));
      },
    });
    scene = opened;
    const { venue, lake, run } = opened;
    const state = { env: { CRYPTODL_STATE_DIR: join(scratch, randomUUID()) } };
    const flags = ['--symbols', 'all', '--days', '12', '--concurrency', String(PLACES), '--json'];

    const first = await run(['metrics', ...flags, '--max-wait', '5s'], state);
    expect(first.code).toBe(7);
    const { ok: kept = 0 } = (first.events.at(-1)?.['outcomes'] ?? {}) as { readonly ok?: number };
    expect(kept).toBeGreaterThan(0);
    // No more than what was under way already when the first of them was refused.
    const refused = venue.log.filter(({ number }) => number >= BAN_AT).length;
    expect(refused).toBe(venue.banned);
    expect(refused).toBeLessThanOrEqual(PLACES);

    const second = await run(['metrics', ...flags, '--max-wait', '5s'], state);
    expect([second.code, venue.log.length]).toEqual([7, BAN_AT - 1 + refused]);
    expect(second.stderr).toContain('418');

    await endOfBan;
    const third = await run(['metrics', ...flags], state);
    expect(third.code).toBe(0);
    expect(third.events.at(-1)).toMatchObject({ outcomes: { skipped: kept, failed: 0 } });
    expect({ refused: venue.refused, banned: venue.banned }).toEqual({ refused: 0, banned: refused });
    const during = venue.log.filter(({ at, number }) => number >= BAN_AT && at < bannedAt + BAN_MS);
    expect(during).toHaveLength(refused);

    await expectWhole(lake, SYMBOLS, DAYS);
  }, 120_000);
});
