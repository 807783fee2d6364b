import { array, assert, constantFrom, property } from 'fast-check';
import { expect, it } from 'vitest';
import { namesAfter, parseListingCopy, withWalk } from '../../../src/exchange/listing-copy.js';
import type { ListingCopy } from '../../../src/exchange/listing-copy.js';
import { byKey } from '../../../src/exchange/keys.js';

const NAMES = Array.from({ length: 12 }, (_, index) => `p/${String.fromCharCode(97 + index)}`);

function objectOf(key: string): { key: string; bytes: number; etag: string; lastModified: string } {
  return { key, bytes: 1, etag: 'e', lastModified: '' };
}

/** What lies after a name, as the bucket has it. */
const behind = (after: string): string[] => NAMES.filter((name) => byKey(name, after) > 0);

const start = constantFrom('', ...NAMES);

it('a copy made from any walks has all names of the bucket after the first marker of all', () => {
  assert(
    property(array(start, { maxLength: 8 }), start, (walks, asked) => {
      const copy = walks.reduce<ListingCopy | undefined>((known, after, at) => {
        const walked = { after, at, objects: behind(after).map(objectOf), prefixes: behind(after) };
        return withWalk(known, walked, '.CHECKSUM') ?? known;
      }, undefined);
      expect(parseListingCopy(JSON.parse(JSON.stringify(copy ?? null)))).toEqual(copy);
      const found = namesAfter(copy, asked);
      const isKnown = walks.some((after) => byKey(after, asked) <= 0);
      expect(found?.objects.map(({ key }) => key)).toEqual(isKnown ? behind(asked) : undefined);
      expect(found?.prefixes).toEqual(isKnown ? behind(asked) : undefined);
    }),
  );
});

it('a sidecar is kept as a field of its zip, and a file that is no copy is refused', () => {
  const objects = ['p/a.zip', 'p/a.zip.CHECKSUM'].map(objectOf);
  const walked = { after: '', at: 1, objects, prefixes: [] };
  const copy = withWalk(undefined, walked, '.CHECKSUM');
  expect(namesAfter(copy, '')?.objects).toEqual([
    { ...objectOf('p/a.zip'), sidecarEtag: objectOf('p/a.zip.CHECKSUM').etag },
  ]);
  expect(withWalk(copy, walked, '.CHECKSUM')).toBeUndefined();
  for (const wrong of [null, {}, 'text', []]) expect(parseListingCopy(wrong)).toBeUndefined();
});
