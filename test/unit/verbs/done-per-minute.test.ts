import { describe, expect, it } from 'vitest';
import { donePerMinute } from '../../../src/verbs/queue/status.js';

const MINUTE = 60_000;
/** Seven jobs in minute 100, after three and four in the minutes before. */
const metrics = { meta: { count: 14, prevCount: 7, prevTS: 100 * MINUTE + 5000 }, data: [4, 3] };

describe('the jobs of the last full minutes', () => {
  it.each([
    ['in the minute of the last job', 100 * MINUTE + 59_999, [4, 3]],
    ['in the minute after it', 101 * MINUTE, [7, 4, 3]],
    ['three minutes later, with idle minutes', 103 * MINUTE + 1, [0, 0, 7, 4, 3]],
    ['an hour later', 160 * MINUTE, [0, 0, 0, 0, 0, 0]],
    ['with a clock that is behind that of the worker', 99 * MINUTE, [4, 3]],
  ])('%s', (_, now, minutes) => {
    expect(donePerMinute(metrics, now, 6)).toEqual(minutes);
  });

  it('are none before the first job', () => {
    expect(donePerMinute({ meta: { count: 0, prevCount: 0, prevTS: 0 }, data: [] }, MINUTE, 6)).toEqual([]);
  });
});
