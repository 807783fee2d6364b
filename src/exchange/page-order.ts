/** The order of the pages of a listing, and of the names in them. */
import { CryptodlError } from '../model/errors.js';
import { byKey } from './keys.js';
import type { ListingPage, PageRequest } from './exchange.js';

export interface Position {
  /** Marker or token of the request. */
  readonly reached: string | undefined;
  readonly lastSeen: string | undefined;
  readonly request: Pick<PageRequest, 'marker' | 'token'>;
}

/** The position after a page. Throws `listing-malformed` if it is not after the one before. */
export function nextPosition(page: ListingPage, prefix: string, { reached, lastSeen }: Position): Position {
  // A store with only ListObjectsV2 pages by token, any other by marker.
  const { continuationToken: token } = page;
  const names = [page.objects.at(-1)?.key, page.prefixes.at(-1)].filter((name) => name !== undefined);
  const last = names.sort(byKey).at(-1);
  const next = token ?? page.nextMarker ?? last;
  const advances =
    token === undefined
      ? isAfter(next, reached)
      : next !== reached && (last === undefined || isAfter(last, lastSeen));
  if (next === undefined || !advances)
    throw malformed(prefix, `does not advance past ${reached ?? 'its start'}`);
  const request = token === undefined ? { marker: next } : { token };
  return { reached: next, lastSeen: last ?? lastSeen, request };
}

function isAfter(next: string | undefined, position: string | undefined): boolean {
  return next !== undefined && (position === undefined || byKey(next, position) > 0);
}

/** About 30 times the longest real listings: a series of 3,100 days with sidecars, and the symbols of a market. */
const MOST_NAMES = 200_000;
/** Ends a walk over pages without names. */
const MOST_PAGES = 5000;

/**
 * A check of the pages of one walk. Throws `listing-malformed` unless the names are in byte order, each once, and below the prefix, and
 * for a walk that is too long.
 */
export function pageCheck(prefix: string): (page: ListingPage) => void {
  let [names, count] = [0, 0];
  return ({ objects, prefixes }) => {
    for (const list of [objects.map(({ key }) => key), prefixes]) {
      const wrong = list.find((name, at) => !name.startsWith(prefix) || !isAfter(name, list[at - 1]));
      if (wrong !== undefined) throw malformed(prefix, `has ${wrong.slice(0, 200)} in a wrong place`);
      names += list.length;
    }
    count += 1;
    if (names > MOST_NAMES || count > MOST_PAGES)
      throw malformed(prefix, `does not end: ${names} names on ${count} pages`);
  };
}

function malformed(prefix: string, problem: string): CryptodlError {
  return new CryptodlError('listing-malformed', `the listing of ${prefix} ${problem}`);
}
