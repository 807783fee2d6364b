import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Bans } from '../../../src/http/throttle/bans.js';
import { scratchFolder } from '../../helpers/folders.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

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
    other.record(PLACE, { untilMs: clock.now() + 60_000, why: 'said by the test' });
    await other.written();
    await clock.advance(1000);
    expect(await mine.leftMs(PLACE)).toBe(59_000);
    expect(await mine.leftMs('archive elsewhere.test')).toBe(0);
    await clock.advance(59_000);
    expect(await mine.leftMs(PLACE)).toBe(0);
  });

  it('are all remembered when a burst of requests is refused, each with its longest end, until they are over', async () => {
    const clock = new VirtualClock();
    const warnings: string[] = [];
    const folder = join(scratch, 'burst');
    const open = () => new Bans({ folder, clock, warn: (said) => warnings.push(said) });
    const bans = open();
    const until = clock.now() + 60_000;
    const places = Array.from({ length: 50 }, (_, host) => `archive host${host}.test`);
    const others = open();
    for (const end of [until - 1, until, until - 2])
      for (const place of places) {
        bans.record(place, { untilMs: end, why: 'said by the test' });
        others.record(place, { untilMs: end - 3, why: 'said by the test' });
      }
    await Promise.all([bans.written(), others.written()]);
    const remembered = await open().current();
    expect([...remembered.keys()].sort()).toEqual(places.sort());
    expect(new Set([...remembered.values()].map((ban) => ban.untilMs))).toEqual(new Set([until]));
    await clock.advance(60_000);
    bans.record(PLACE, { untilMs: clock.now() + 1, why: 'said by the test' });
    await bans.written();
    expect([readdirSync(join(folder, 'bans')).length, warnings]).toEqual([1, []]);
  });
});
