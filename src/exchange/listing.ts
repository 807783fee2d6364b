/** The archive's listing: its pages, walked and checked, and copies of earlier walks. */
import { fetchDocument } from '../http/fetch-document.js';
import { MAX_COPY_AGE_MS, type ResponseCache } from '../http/response-cache.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError, isNoAnswer, NO_CONNECTION } from '../model/errors.js';
import type { Observer } from '../model/observer.js';
import { agoText } from '../model/units.js';
import type { ArchiveAccess } from './archive-client.js';
import type { ListedObject, ListingFormat, ListingPage, PageRequest } from './exchange.js';
import { byKey } from './keys.js';
import { namesAfter, parseListingCopy, withWalk, type ListingCopy } from './listing-copy.js';

export interface Listing {
  /** Names of the folders directly below a prefix. */
  folders(prefix: string): AsyncGenerator<string>;
  /** Objects directly below a prefix, by page and key, after `marker` (exclusive; need not exist). Without `startsAnywhere`, the marker has no effect. */
  objects(prefix: string, marker?: string, pageSize?: number): AsyncGenerator<readonly ListedObject[]>;
  /** Time of the oldest copy that replaced pages of this prefix, in epoch milliseconds; undefined if none did. */
  copiedAtMs?(prefix: string): number | undefined;
}

export interface ListingOptions {
  readonly copies?: ListingCopies;
  /** The suffix of sidecars; undefined for an archive without sidecars. */
  readonly sidecarSuffix?: string | undefined;
  /** Monotonic milliseconds, for the pause after failures. */
  readonly monotonic?: () => number;
}

interface ListingContext {
  readonly access: ArchiveAccess;
  /** Without a slash at its end. */
  readonly url: string;
  readonly copies: ResponseCache;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  readonly clock: Clock;
  readonly observer: Observer;
}

/** The listing of one run: its pages, or copies from earlier runs if its host does not answer. */
export function openListing(context: ListingContext): Listing {
  const { access, url, clock } = context;
  const { listing, sidecar } = access.archive;
  return createListing((address) => getPage(access, url, address), listing, {
    copies: copiesOf(context),
    sidecarSuffix: sidecar?.suffix,
    monotonic: () => clock.monotonic(),
  });
}

export type GetListing = (address: string) => Promise<ListingPage>;

const PAGE_MAX_BYTES = 16 * 1024 * 1024;

/** Requests a page of the listing. A malformed page is retried like a failed request. */
function getPage(access: ArchiveAccess, base: string, address: string): Promise<ListingPage> {
  const { archive, options } = access;
  return fetchDocument(
    access,
    { url: base + address, bucket: 'listing', maxBytes: PAGE_MAX_BYTES, priority: options.priority },
    (bytes) => archive.listing.parse(bytes, address),
    () => new CryptodlError('listing-malformed', `${new URL(base).host} has no listing`),
  );
}

export type ListingCopies = ReturnType<typeof copiesOf>;

/** Copies of earlier walks to the end. They replace a listing that does not answer. */
function copiesOf({ url, copies, nowMs, observer }: ListingContext) {
  let hasWarned = false;
  const nameOf = (prefix: string): string => `names ${url} ${prefix}`;
  return {
    nowMs,
    read: async (prefix: string): Promise<ListingCopy | undefined> =>
      (await copies.read(nameOf(prefix), parseListingCopy))?.value,
    keep: (prefix: string, copy: ListingCopy): Promise<void> => copies.keep(nameOf(prefix), copy),
    /** Whether a copy of this time may replace the listing after this error. If so, warns once. */
    mayReplace: (error: unknown, atMs: number): boolean => {
      if (!isNoAnswer(error) || nowMs - atMs > MAX_COPY_AGE_MS) return false;
      if (!hasWarned)
        observer.warn(
          `the listing at ${new URL(url).host} is not available (${error.message}): its copy of ${agoText(atMs, nowMs)} is used; newer objects are checked one by one, later changes and removals are not noticed`,
        );
      hasWarned = true;
      return true;
    },
  };
}

export function createListing(
  get: GetListing,
  format: Walk['format'],
  options: ListingOptions = {},
): Listing {
  const copied = new Map<string, number>();
  const walk = { ...options, format, copied, get: pauseAfterFailures(get, options.monotonic) };
  return {
    async *folders(prefix) {
      for await (const page of pages(walk, prefix)) {
        for (const folder of page.prefixes) {
          if (folder.startsWith(prefix) && folder.endsWith('/')) yield folder.slice(prefix.length, -1);
        }
      }
    },
    async *objects(prefix, marker, pageSize) {
      for await (const page of pages(walk, prefix, marker, pageSize)) yield page.objects;
    },
    copiedAtMs: (prefix) => copied.get(prefix),
  };
}

/** Whether the archive may still answer after this error of its listing. */
export const isListingFault = (error: unknown): error is CryptodlError =>
  error instanceof CryptodlError && (!error.fatal || error.code === 'unreachable');

/** Undefined if the listing does not tell. */
export async function unlessListingFault<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (isListingFault(error)) return undefined;
    throw error;
  }
}

/** Turns failures of the listing except `wait-too-long` into `unreachable`, for verbs that need it. Returns other errors unchanged. */
export function asUnreachable(error: unknown): unknown {
  if (!isListingFault(error) || error.code === 'wait-too-long') return error;
  return new CryptodlError('unreachable', `the listing is not available: ${error.message}`, {
    cause: error,
    hint: 'check the network, --archive-url and --listing-url',
  });
}

/** Consecutive failures before requests pause. */
const FAILURES_TO_PAUSE = 3;
const PAUSE_MS = 60_000;

/** During a pause, requests fail with the last error. Otherwise each series would wait for a listing that does not answer. */
function pauseAfterFailures(get: GetListing, monotonic = () => 0): GetListing {
  let failures = 0;
  let last: { readonly error: CryptodlError; readonly atMs: number } | undefined;
  return async (address) => {
    if (last !== undefined && failures >= FAILURES_TO_PAUSE && monotonic() - last.atMs < PAUSE_MS)
      throw last.error;
    try {
      const page = await get(address);
      failures = 0;
      return page;
    } catch (error) {
      if (isListingFault(error)) {
        last = { error, atMs: monotonic() };
        const isDown = error.code === 'unreachable' || NO_CONNECTION.has(error.code);
        failures = isDown ? FAILURES_TO_PAUSE : failures + 1;
      }
      throw error;
    }
  };
}

interface Walk extends ListingOptions {
  readonly get: GetListing;
  readonly format: Pick<ListingFormat, 'address' | 'startsAnywhere'>;
  /** The time of the oldest used copy of each prefix. */
  readonly copied: Map<string, number>;
}

async function* pages(
  { get, format, copies, sidecarSuffix, copied }: Walk,
  prefix: string,
  start?: string,
  pageSize?: number,
): AsyncGenerator<ListingPage> {
  const marker = format.startsAnywhere ? start : undefined;
  const after = marker ?? '';
  const known = await copies?.read(prefix);
  const objects: ListedObject[] = [];
  const prefixes: string[] = [];
  const check = pageCheck(prefix);
  let position: Position = { reached: marker, lastSeen: undefined, request: { marker } };
  for (;;) {
    let page: ListingPage;
    try {
      page = await get(format.address({ prefix, pageSize, ...position.request }));
      check(page);
    } catch (error) {
      const rest = namesAfter(known, position.lastSeen ?? after);
      if (rest === undefined || copies?.mayReplace(error, rest.at) !== true) throw error;
      copied.set(prefix, Math.min(rest.at, copied.get(prefix) ?? rest.at));
      yield { ...rest, truncated: false };
      return;
    }
    for (const object of page.objects) objects.push(object);
    for (const folder of page.prefixes) prefixes.push(folder);
    // Before the page, because its reader may read no further.
    if (!page.truncated && copies !== undefined) {
      const copy = withWalk(known, { after, at: copies.nowMs, objects, prefixes }, sidecarSuffix);
      if (copy !== undefined) await copies.keep(prefix, copy);
    }
    yield page;
    if (!page.truncated) return;
    position = nextPosition(page, prefix, position);
  }
}

interface Position {
  /** Marker or token of the request. */
  readonly reached: string | undefined;
  readonly lastSeen: string | undefined;
  readonly request: Pick<PageRequest, 'marker' | 'token'>;
}

/** The position after a page. Throws `listing-malformed` if it is not after the one before. */
function nextPosition(page: ListingPage, prefix: string, { reached, lastSeen }: Position): Position {
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

const isAfter = (next: string | undefined, position: string | undefined): boolean =>
  next !== undefined && (position === undefined || byKey(next, position) > 0);

/** About 30 times the longest real listings: a series of 3,100 days with sidecars, and the symbols of a market. */
const MOST_NAMES = 200_000;
/** Ends a walk over pages without names. */
const MOST_PAGES = 5000;

/** Throws `listing-malformed` unless the names of a walk's pages are in byte order, each once, and below the prefix, and for a walk that is too long. */
function pageCheck(prefix: string): (page: ListingPage) => void {
  let [names, count] = [0, 0];
  return ({ objects, prefixes }) => {
    for (const list of [objects.map(({ key }) => key), prefixes]) {
      const wrong = list.find((name, index) => !name.startsWith(prefix) || !isAfter(name, list[index - 1]));
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
