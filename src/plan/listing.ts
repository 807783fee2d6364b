/** Walks of the archive's bucket listing, page by page. Source: facts, section 3. */
import { CryptodlError } from '../errors.js';
import { byKey } from '../venue/keys.js';
import type { ListedObject, ListingPage } from './listing-xml.js';

/** Fetches one page; the query is without the leading `?`. */
export type GetListing = (query: string) => Promise<ListingPage>;

export interface Listing {
  /** Names of the folders directly below a prefix. */
  folders(prefix: string): AsyncGenerator<string>;
  /** Objects directly below a prefix, in key order, after `marker` (exclusive; need not exist). */
  objects(prefix: string, marker?: string, pageSize?: number): AsyncGenerator<ListedObject>;
}

export function createListing(get: GetListing): Listing {
  return {
    async *folders(prefix) {
      for await (const page of pages(get, prefix)) {
        for (const folder of page.prefixes) {
          if (folder.startsWith(prefix) && folder.endsWith('/')) yield folder.slice(prefix.length, -1);
        }
      }
    },
    async *objects(prefix, marker, pageSize) {
      for await (const page of pages(get, prefix, marker, pageSize)) yield* page.objects;
    },
  };
}

async function* pages(
  get: GetListing,
  prefix: string,
  marker?: string,
  pageSize?: number,
): AsyncGenerator<ListingPage> {
  const base = `delimiter=%2F&prefix=${encodeURIComponent(prefix)}${pageSize === undefined ? '' : `&max-keys=${pageSize}`}`;
  let position = marker;
  let seen: string | undefined;
  let query = position === undefined ? base : `${base}&marker=${encodeURIComponent(position)}`;
  for (;;) {
    const page = await get(query);
    assertOrder(page, prefix);
    yield page;
    if (!page.truncated) return;
    // A store that speaks only v2 pages by token; the others by marker.
    const last = lastName(page);
    const next = page.continuationToken ?? page.nextMarker ?? last;
    const advances =
      page.continuationToken === undefined
        ? next !== undefined && isAfter(next, position)
        : next !== position && (last === undefined || isAfter(last, seen));
    if (next === undefined || !advances) {
      throw new CryptodlError(
        'listing-malformed',
        `the listing of ${prefix} does not advance past ${position ?? 'its start'}`,
      );
    }
    position = next;
    seen = last ?? seen;
    query =
      page.continuationToken === undefined
        ? `${base}&marker=${encodeURIComponent(next)}`
        : `${base}&list-type=2&continuation-token=${encodeURIComponent(next)}`;
  }
}

/** Names come in byte order, each once and below the prefix: a page that does not keep to it is damaged. */
function assertOrder(page: ListingPage, prefix: string): void {
  for (const names of [page.objects.map(({ key }) => key), page.prefixes]) {
    for (const [index, name] of names.entries()) {
      const previous = names[index - 1];
      const isRight = name.startsWith(prefix) && (previous === undefined || byKey(name, previous) > 0);
      if (isRight) continue;
      throw new CryptodlError(
        'listing-malformed',
        `the listing of ${prefix} has ${name.slice(0, 200)} out of its place`,
      );
    }
  }
}

function lastName(page: ListingPage): string | undefined {
  const names = [page.objects.at(-1)?.key, page.prefixes.at(-1)].filter((name) => name !== undefined);
  return names.sort(byKey).at(-1);
}

function isAfter(next: string, position: string | undefined): boolean {
  return position === undefined || byKey(next, position) > 0;
}
