/** 100,000 damaged bodies: none is taken for a sound one, none crashes, none hangs. */
import { setImmediate } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { Converter } from '../helpers/conversion.js';
import { scratchFolder } from '../helpers/folders.js';
import { ZIPS } from './bodies.js';
import { checked, converted } from './csv-trials.js';
import { readDamagedPage } from './listing-trials.js';
import { torture } from './torture.js';
import { commonLies, lonelyLies, watchAllocations } from './zip-sizes.js';
import {
  anyWayUnpacked,
  besideDamagedSidecar,
  besideItsDigest,
  bothDamaged,
  unpacked,
  withoutDigest,
  ZIP_BYTES,
} from './zip-trials.js';

const folder = scratchFolder();

/** What came of them, most frequent first; the trials themselves throw at everything that must not be. */
function outcomesOf(counts: ReadonlyMap<string, number>): string[] {
  return [...counts.keys()].toSorted();
}

describe('a damaged zip', () => {
  it.each([
    ['sidecar', 'refused as checksum-mismatch'],
    // It names the bytes that were sent: these are others.
    ['ETag', 'refused as body-damaged'],
  ] as const)('is refused, every one, beside its %s', async (known, refusal) => {
    const counts = await torture({ kind: `zip beside its ${known}`, count: 3000 }, (random) =>
      besideItsDigest(folder, random, known),
    );
    expect(outcomesOf(counts)).toEqual([refusal, 'refused as not-a-zip', 'refused as zip-truncated']);
  });

  it('is refused, or gives its own content, where no digest is published', async () => {
    const counts = await torture({ kind: 'zip without digest', count: 6000 }, (random) =>
      withoutDigest(folder, random),
    );
    expect(outcomesOf(counts)).toEqual([
      'harmless',
      'refused as length-mismatch',
      'refused as not-a-zip',
      'refused as zip-bomb',
      'refused as zip-broken',
      'refused as zip-truncated',
      'refused as zip-unsupported',
    ]);
  });

  it('is refused, or gives its own content, in memory and through a file', async () => {
    const counts = await torture({ kind: 'zip unpacked', count: 30_000 }, (random) =>
      anyWayUnpacked(folder, random),
    );
    expect(outcomesOf(counts)).toEqual([
      'harmless',
      'refused as zip-bomb',
      'refused as zip-broken',
      'refused as zip-unsupported',
    ]);
  });
});

describe('a zip that lies about a size, a length, a count or an offset', () => {
  const MEMORY_BYTES = 1 << 16;
  /** The unit of the streaming reader. */
  const CHUNK_BYTES = 256 * 1024;

  it('never makes the program allocate more than its limits', async () => {
    const [sound] = ZIPS;
    const lies = [...ZIP_BYTES.flatMap((zip) => lonelyLies(zip)), ...commonLies(sound.content)];
    const allocations = watchAllocations();
    let largest = 0;
    await torture({ kind: 'zip with a lie', count: lies.length, isList: true }, async (random, seed) => {
      const { how, zip } = lies[seed % lies.length] ?? { how: 'none', zip: sound.bytes };
      allocations.reset();
      const outcome = await unpacked(folder, zip, how, random.pick([0, MEMORY_BYTES]));
      largest = Math.max(largest, allocations.largest());
      return outcome;
    });
    allocations.stop();
    // Equal, not below: the watch is awake.
    expect(largest).toBe(CHUNK_BYTES);
  });
});

describe('a damaged sidecar', () => {
  it('is another digest or none, and vouches only for the zip that it names', async () => {
    const counts = await torture({ kind: 'sidecar', count: 12_000 }, (random) =>
      besideDamagedSidecar(folder, random),
    );
    expect(outcomesOf(counts)).toEqual([
      'refused as checksum-mismatch',
      'still the digest',
      'taken for none',
    ]);
  });

  it('never vouches for a damaged zip', async () => {
    const counts = await torture({ kind: 'sidecar and its zip', count: 6000 }, (random) =>
      bothDamaged(folder, random),
    );
    expect(outcomesOf(counts)).toContain('refused as checksum-mismatch');
    expect(outcomesOf(counts)).toContain('harmless');
  });
});

describe('a damaged listing', () => {
  it('is refused, or read as an XML library reads it', async () => {
    const counts = await torture({ kind: 'listing', count: 20_000 }, readDamagedPage);
    expect(outcomesOf(counts)).toContain('refused as listing-malformed');
    expect(outcomesOf(counts)).toContain('read, of the same names');
  });
});

describe('a damaged CSV', () => {
  const converter = new Converter(folder);
  afterAll(() => {
    converter.close();
  });
  const REFUSALS = [
    'refused as file-empty',
    'refused as header-unknown',
    'refused as row-malformed',
    'refused as symbol-mismatch',
  ];

  it('is refused by the checker at the line that another reader finds wrong, or by neither', async () => {
    const counts = await torture({ kind: 'CSV checked', count: 16_000 }, checked);
    expect(outcomesOf(counts)).toEqual(['legal all the same', ...REFUSALS]);
  });

  it('is refused at its wrong line, or every cell is written as it says', async () => {
    const counts = await torture({ kind: 'CSV converted', count: 4000 }, async (random) => {
      // DuckDB's promises alone would keep the event loop from its turn, and vitest from its messages.
      await setImmediate();
      return converted(folder, converter, random);
    });
    expect(outcomesOf(counts)).toEqual([...REFUSALS, 'written as it says']);
  });
});
