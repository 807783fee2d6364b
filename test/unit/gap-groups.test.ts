import { describe, expect, it } from 'vitest';
import { GapGroups } from '../../src/coverage/gap-groups.js';
import type { Gap } from '../../src/coverage/gaps.js';

const OF = { rowSeconds: 60, dayStartSeconds: 0 };
const gapAt = (minute: number, amount = 1): Gap => ({
  from: minute * 60,
  to: (minute + amount) * 60,
  reason: 'hole',
  amount,
  isMissing: true,
});

describe('very many different gaps', () => {
  const minutes = Array.from({ length: 60_001 }, (_, index) => gapAt(2 * index));

  it('keep the worst in memory, and count the others', () => {
    const groups = new GapGroups(false);
    groups.add('A', OF, [gapAt(1_000_000, 500), ...minutes]);
    groups.add(
      'B',
      OF,
      minutes.map(({ from }) => gapAt(from / 60 + 200_000)),
    );
    expect(groups.lines()).toHaveLength(12);
    expect(groups.lines()[1]).toBe('  1971-11-26 10:40 … 18:59: A, hole, 500 rows');
    expect(groups.lines().at(-1)).toContain('and 119,993 more gaps');
  });

  it('are all shown with --all', () => {
    const groups = new GapGroups(true);
    groups.add('A', OF, minutes);
    expect(groups.lines()).toHaveLength(60_002);
  });
});
