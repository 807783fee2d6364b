/** Checks of the pages of a walk through a listing. */
import { CryptodlError } from '../model/errors.js';
import { byKey } from './keys.js';
import type { ListingPage } from './source.js';

/** About 30 times the longest real listings: a series of 3,100 days with sidecars, and the symbols of a market. */
const MOST_NAMES = 200_000;
/** Ends a walk over pages without names. */
const MOST_PAGES = 5000;

/** Throws `listing-malformed` for a walk that is too long. */
export function endlessGuard(prefix: string): (page: ListingPage) => void {
  let [names, count] = [0, 0];
  return ({ objects, prefixes }) => {
    names += objects.length + prefixes.length;
    count += 1;
    if (names <= MOST_NAMES && count <= MOST_PAGES) return;
    const text = `the listing of ${prefix} does not end: ${names} names on ${count} pages`;
    throw new CryptodlError('listing-malformed', text);
  };
}

/** Throws `listing-malformed` unless the names are in byte order, each once, and below the prefix. */
export function assertOrder(page: ListingPage, prefix: string): void {
  for (const names of [page.objects.map(({ key }) => key), page.prefixes]) {
    for (const [index, name] of names.entries()) {
      const previous = names[index - 1];
      const isRight = name.startsWith(prefix) && (previous === undefined || byKey(name, previous) > 0);
      if (isRight) continue;
      throw new CryptodlError(
        'listing-malformed',
        `the listing of ${prefix} has ${name.slice(0, 200)} in a wrong place`,
      );
    }
  }
}
