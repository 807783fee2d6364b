import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Bans } from '../../src/http/bans.js';
import { scratchFolder } from '../helpers/folders.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const scratch = scratchFolder();
const PLACE = 'archive archive.test';

describe('bans of other runs of this machine', () => {
  it('are seen within a second, for as long as they last', async () => {
    const clock = new VirtualClock();
    const run = () =>
      new Bans({
        folder: scratch,
        clock,
        warn: (message) => {
          throw new Error(message);
        },
      });
    const mine = run();
    const other = run();
    expect(await mine.leftMs(PLACE)).toBe(0);
    other.record(PLACE, { until: clock.now() + 60_000, why: 'said by the test' });
    await other.written();
    await clock.advance(1000);
    expect(await mine.leftMs(PLACE)).toBe(59_000);
    expect(await mine.leftMs('archive elsewhere.test')).toBe(0);
    await clock.advance(59_000);
    expect(await mine.leftMs(PLACE)).toBe(0);
  });

  it('are all remembered when a burst of requests is refused, without a wait for the own lock', async () => {
    const clock = new VirtualClock();
    const warnings: string[] = [];
    const bans = new Bans({ folder: join(scratch, 'burst'), clock, warn: (said) => warnings.push(said) });
    const until = clock.now() + 60_000;
    const places = Array.from({ length: 200 }, (_, host) => `archive host${host}.test`);
    for (const place of places) bans.record(place, { until, why: 'said by the test' });
    // On the virtual clock a wait for a lock would never end.
    await bans.written();
    expect(warnings).toEqual([]);
    const remembered = JSON.parse(readFileSync(join(scratch, 'burst', 'bans.json'), 'utf8')) as object;
    expect(Object.keys(remembered)).toEqual(places);
  });
});
