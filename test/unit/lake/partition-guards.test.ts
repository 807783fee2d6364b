/** The guards of a write refuse what would lose held rows. */
import { describe, expect, it } from 'vitest';
import { HeldObjects } from '../../../src/lake/held-objects.js';
import { interleavedRevisions, refusal, without } from '../../../src/lake/write/existing-file.js';
import type { ExistingFile, PlannedWrite } from '../../../src/lake/write/existing-file.js';
import { CryptodlError } from '../../../src/model/errors.js';
import type { ObjectLine } from '../../../src/model/manifest-line.js';
import { objectLine, received, SETTINGS } from '../../helpers/conversion.js';

const [FIRST, SECOND, THIRD] = ['2024-01-01', '2024-01-02', '2024-01-03'] as const;
const LINES = [FIRST, SECOND, THIRD].map((day) =>
  objectLine(day, { first: `${day}T00:00:00Z`, last: `${day}T23:00:00Z` }),
);

/** A write of days into a month file with these lines. */
function writeOf(
  days: readonly string[],
  {
    lines = LINES,
    rebuild,
    missing = new Map(),
  }: Partial<PlannedWrite['plan'] & PlannedWrite> & {
    readonly lines?: readonly ObjectLine[];
  },
): PlannedWrite {
  const objects = new HeldObjects();
  for (const line of lines) objects.add(line);
  const isReplaced = ({ period }: ObjectLine): boolean => days.includes(period);
  const isAdded = rebuild === undefined;
  const existing: ExistingFile = {
    folder: '/lake/series',
    file: '2024-01.parquet',
    path: '/lake/series/2024-01.parquet',
    inFile: lines,
    kept: isAdded ? lines.filter((line) => !isReplaced(line)) : [],
    replaced: isAdded ? lines.filter(isReplaced) : [],
    objects,
  };
  return {
    plan: {
      series: { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' },
      settings: SETTINGS,
      label: '2024-01',
      tasks: [],
      ...(rebuild === undefined ? {} : { rebuild }),
    },
    existing,
    received: days.map((day) => received(day, '')),
    missing,
  };
}

const failureOf = (code: 'staged-zip-lost' | 'checksum-mismatch'): CryptodlError =>
  new CryptodlError(code, 'it failed');

describe('a write to a damaged file', () => {
  it('is refused while the zip of a lost object is fetched again, and not for an absent object', () => {
    const missing = new Map([[`${SECOND}.zip`, failureOf('staged-zip-lost')]]);
    const failed = refusal(writeOf([FIRST, THIRD], { rebuild: 'damaged', missing }))?.failed;
    expect([...(failed?.values() ?? [])]).toMatchObject([
      { code: 'partition-incomplete' },
      { code: 'partition-incomplete' },
    ]);
    const absent = new Map([[`${SECOND}.zip`, 'absent' as const]]);
    expect(refusal(writeOf([FIRST, THIRD], { rebuild: 'damaged', missing: absent }))).toBeUndefined();
  });
});

describe('a write that would leave out rows of an intact file', () => {
  it('is refused, and names the absent objects whose rows stay', () => {
    const missing = new Map([[`${SECOND}.zip`, 'absent' as const]]);
    const refused = refusal(writeOf([FIRST, THIRD], { rebuild: 'forced', missing }));
    expect([...(refused?.failed.keys() ?? [])]).toEqual([`${FIRST}.zip`, `${THIRD}.zip`]);
    expect(refused?.stillHeld).toEqual(new Set([`${SECOND}.zip`]));
  });

  it('is refused with the error of the object that cannot be read', () => {
    const broken = failureOf('checksum-mismatch');
    const all = writeOf([FIRST, SECOND, THIRD], { rebuild: 'forced' });
    const refused = refusal(without(all, new Map([[`${SECOND}.zip`, broken]])));
    expect(refused?.failed.get(`${FIRST}.zip`)?.cause).toBe(broken);
  });
});

describe('a revision', () => {
  it('is rejected only if its held rows are among rows that stay', () => {
    const late = objectLine(FIRST, { first: `${FIRST}T00:00:00Z`, last: `${SECOND}T12:00:00Z` });
    const lines = [late, ...LINES.slice(1)];
    expect([...interleavedRevisions(writeOf([FIRST], { lines })).keys()]).toEqual([`${FIRST}.zip`]);
    expect(interleavedRevisions(writeOf([THIRD], { lines })).size).toBe(0);
  });
});
