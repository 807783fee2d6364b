import { array, assert, constantFrom, property, tuple } from 'fast-check';
import { expect, it } from 'vitest';
import { END, knownAfter, parseListingCopy, withStretch } from '../../src/exchange/listing.js';
import type { ListingCopy } from '../../src/exchange/listing.js';
import { byKey } from '../../src/exchange/keys.js';

const NAMES = Array.from({ length: 12 }, (_, index) => `p/${String.fromCharCode(97 + index)}`);

function objectOf(key: string): { key: string; bytes: number; etag: string; lastModified: string } {
  return { key, bytes: 1, etag: 'e', lastModified: '' };
}

/** What lies after a name up to another, as the bucket has it. */
function between(after: string, upTo: string): string[] {
  return NAMES.filter((name) => byKey(name, after) > 0 && byKey(name, upTo) <= 0);
}

const start = constantFrom('', ...NAMES);
const walk = tuple(start, constantFrom(END, ...NAMES)).filter(([after, upTo]) => byKey(after, upTo) < 0);

it('a copy made from any walks has all names of the bucket behind any name without a gap', () => {
  assert(
    property(array(walk, { maxLength: 8 }), start, (walks, asked) => {
      const copy = walks.reduce<ListingCopy>(
        (known, [after, upTo], at) =>
          withStretch(
            known,
            { after, upTo, at, objects: between(after, upTo).map(objectOf), prefixes: between(after, upTo) },
            '.CHECKSUM',
          ) ?? known,
        [],
      );
      expect(parseListingCopy(JSON.parse(JSON.stringify(copy)))).toEqual(copy);
      const found = knownAfter(copy, asked);
      if (found === undefined) {
        // No single walk knew what comes next either.
        const isKnown = walks.some(([after, upTo]) => byKey(after, asked) <= 0 && byKey(asked, upTo) < 0);
        expect(isKnown).toBe(false);
        return;
      }
      expect(found.objects.map(({ key }) => key)).toEqual(between(asked, found.upTo));
      expect(found.prefixes).toEqual(between(asked, found.upTo));
    }),
  );
});

it('a sidecar is kept as a field of its zip, and a file that is no copy is refused', () => {
  const objects = ['p/a.zip', 'p/a.zip.CHECKSUM'].map(objectOf);
  const stretch = { after: '', upTo: END, at: 1, objects, prefixes: [] };
  const copy = withStretch([], stretch, '.CHECKSUM') ?? [];
  expect(knownAfter(copy, '')?.objects).toEqual([
    { ...objectOf('p/a.zip'), sidecarEtag: objectOf('p/a.zip.CHECKSUM').etag },
  ]);
  expect(withStretch(copy, stretch, '.CHECKSUM')).toBeUndefined();
  for (const wrong of [null, {}, 'text']) expect(parseListingCopy(wrong)).toBeUndefined();
});
