import { describe, expect, it } from 'vitest';
import { Bans } from '../../src/state/bans.js';
import { scratchFolder } from '../helpers/folders.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const scratch = scratchFolder();
const PLACE = 'archive archive.test';

describe('D18 bans of other runs of this machine', () => {
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
    other.remember(PLACE, { until: clock.now() + 60_000, why: 'said by the test' });
    await other.written();
    await clock.advance(1000);
    expect(await mine.leftMs(PLACE)).toBe(59_000);
    expect(await mine.leftMs('archive elsewhere.test')).toBe(0);
    await clock.advance(59_000);
    expect(await mine.leftMs(PLACE)).toBe(0);
  });
});
