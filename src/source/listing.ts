/** Walks of the archive's listing, page by page. */
import { CryptodlError } from '../model/errors.js';
import { byKey } from './keys.js';
import { knownAfter, knownPage, NO_COPY, withStretch } from './listing-copy.js';
import type { ListingCopy, Stretch } from './listing-copy.js';
import type { ListedObject, ListingFormat, ListingPage, PageRequest } from './source.js';

/** A page with the ETag of its response. `heldAt`: the time of the copy that has the same page, in epoch milliseconds. */
export type GotPage = ListingPage & { readonly pageEtag?: string; readonly heldAt?: number };

/** Fetches one page; `unchanged` if the page still has `heldEtag`. */
export type GetListing = (address: string, heldEtag?: string) => Promise<GotPage | 'unchanged'>;

export interface Listing {
  /** Names of the folders directly below a prefix. */
  folders(prefix: string): AsyncGenerator<string>;
  /**
   * Objects directly below a prefix, page by page in key order, after `marker` (exclusive; need not exist). A listing without
   * `startsAnywhere` ignores the marker.
   */
  objects(prefix: string, marker?: string, pageSize?: number): AsyncGenerator<readonly ListedObject[]>;
  /** Time of the oldest copy that replaced pages of this prefix, in epoch milliseconds; undefined if none did. */
  copiedAt?(prefix: string): number | undefined;
}

/** Copies of earlier walks. They replace a listing that does not answer. */
export interface ListingCopies {
  /** Epoch milliseconds. */
  readonly nowMs: number;
  read(prefix: string): Promise<ListingCopy | undefined>;
  keep(prefix: string, copy: ListingCopy): Promise<void>;
  /** Whether a copy of this time may replace the listing after this error. If so, warns once, and again for a much older copy. */
  mayReplace(error: unknown, at: number): boolean;
}

/** Whether the archive may still answer after this error of its listing. */
export function isListingFault(error: unknown): error is CryptodlError {
  return error instanceof CryptodlError && (!error.fatal || error.code === 'unreachable');
}

/** Turns failures of the listing except `wait-too-long` into `unreachable`, for verbs that need it. Returns other errors unchanged. */
export function asUnreachable(error: unknown): unknown {
  if (!isListingFault(error) || error.code === 'wait-too-long') return error;
  return new CryptodlError('unreachable', `the listing is not available: ${error.message}`, {
    cause: error,
    hint: 'check the network, --archive-url and --listing-url',
  });
}

export interface ListingOptions {
  readonly copies?: ListingCopies;
  /** The suffix of sidecars; undefined for an archive without sidecars. */
  readonly sidecarSuffix?: string | undefined;
  /** Monotonic milliseconds, for the pause after failures. */
  readonly monotonic?: () => number;
}

export function createListing(
  get: GetListing,
  format: Pick<ListingFormat, 'address' | 'startsAnywhere'>,
  options: ListingOptions = {},
): Listing {
  const { copies, sidecarSuffix, monotonic = () => 0 } = options;
  const copied = new Map<string, number>();
  const walk: Walk = {
    get: pauseAfterFailures(get, monotonic),
    format,
    copies,
    sidecarSuffix,
    onCopied: (prefix, at) => {
      copied.set(prefix, Math.min(at, copied.get(prefix) ?? at));
    },
  };
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
    copiedAt: (prefix) => copied.get(prefix),
  };
}

/** Consecutive failures before requests pause. */
const FAILURES_TO_PAUSE = 3;
const PAUSE_MS = 60_000;
/** After one of these errors, requests pause at once. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  'unreachable',
  'connect-failed',
  'proxy-unreachable',
  'dns-failed',
  'connect-timeout',
]);

/** During a pause, requests fail with the last error. Otherwise each series would wait for a listing that does not answer. */
function pauseAfterFailures(get: GetListing, monotonic: () => number): GetListing {
  let failures = 0;
  let last: { readonly error: CryptodlError; readonly at: number } | undefined;
  return async (address, heldEtag) => {
    if (last !== undefined && failures >= FAILURES_TO_PAUSE && monotonic() - last.at < PAUSE_MS)
      throw last.error;
    try {
      const page = await get(address, heldEtag);
      failures = 0;
      return page;
    } catch (error) {
      if (isListingFault(error)) {
        last = { error, at: monotonic() };
        failures = UNREACHABLE.has(error.code) ? FAILURES_TO_PAUSE : failures + 1;
      }
      throw error;
    }
  };
}

interface Walk {
  readonly get: GetListing;
  readonly format: Pick<ListingFormat, 'address' | 'startsAnywhere'>;
  readonly copies: ListingCopies | undefined;
  readonly sidecarSuffix: string | undefined;
  readonly onCopied: (prefix: string, at: number) => void;
}

/** A copy that is older than this is written again although nothing has changed, so that its age stays near the truth. */
const REWRITE_AFTER_MS = 3_600_000;

/** The names that one walk has read. They are stored in the copy also if the walk ends early. */
class Seen {
  readonly #objects: ListedObject[] = [];
  readonly #prefixes: string[] = [];
  readonly #pages: Record<string, ListingCopy['pages'][string]> = {};
  readonly after: string | null;
  /** Null: nothing was read yet, or everything to the end. */
  upTo: string | null = null;
  #isEmpty = true;
  /** Of the copy that has all pages of this walk; undefined if one page is new. */
  #heldAt: number | undefined = Number.POSITIVE_INFINITY;
  readonly #sidecarSuffix: string | undefined;

  constructor(after: string | null, sidecarSuffix: string | undefined) {
    this.after = after;
    this.#sidecarSuffix = sidecarSuffix;
  }

  add(address: string, page: GotPage, after: string | null): void {
    this.#isEmpty = false;
    this.#heldAt =
      page.heldAt === undefined || this.#heldAt === undefined
        ? undefined
        : Math.min(page.heldAt, this.#heldAt);
    for (const object of page.objects) this.#objects.push(object);
    for (const prefix of page.prefixes) this.#prefixes.push(prefix);
    this.upTo = page.truncated ? (lastName(page) ?? page.nextMarker ?? after) : null;
    const etag = page.pageEtag;
    if (etag !== undefined) this.#pages[address] = { etag, after, upTo: this.upTo };
  }

  async keepIn(copies: ListingCopies, prefix: string, known: ListingCopy): Promise<void> {
    if (this.#isEmpty || this.#isHeldSince(copies.nowMs)) return;
    const { after, upTo } = this;
    const stretch = { after, upTo, at: copies.nowMs, objects: this.#objects, prefixes: this.#prefixes };
    await copies.keep(prefix, withStretch(known, stretch, this.#pages, this.#sidecarSuffix));
  }

  /** The absolute difference, because a copy from a time when the clock was wrong must be replaced. */
  #isHeldSince(nowMs: number): boolean {
    return this.#heldAt !== undefined && Math.abs(nowMs - this.#heldAt) < REWRITE_AFTER_MS;
  }
}

async function* pages(
  { get, format, copies, sidecarSuffix, onCopied }: Walk,
  prefix: string,
  start?: string,
  pageSize?: number,
): AsyncGenerator<ListingPage> {
  const marker = format.startsAnywhere ? start : undefined;
  const known = (await copies?.read(prefix)) ?? NO_COPY;
  const seen = new Seen(marker ?? null, sidecarSuffix);
  let position = marker;
  let lastSeen: string | undefined;
  const guard = endlessGuard(prefix);
  let address = format.address({ prefix, marker, pageSize });
  try {
    for (;;) {
      const after = lastSeen ?? marker ?? null;
      let page: GotPage;
      try {
        page = await getPage(get, address, known);
        assertOrder(page, prefix);
        guard(page);
      } catch (error) {
        const rest = knownAfter(known, after);
        if (rest === undefined || copies?.mayReplace(error, rest.at) !== true) throw error;
        onCopied(prefix, rest.at);
        yield pageOf(rest);
        // The copy ends here, so a caller that reads on gets the error.
        if (rest.upTo !== null) throw error;
        return;
      }
      seen.add(address, page, after);
      yield page;
      if (!page.truncated) return;
      const next = nextPage(page, prefix, { position, lastSeen });
      position = next.position;
      lastSeen = next.lastSeen;
      address = format.address({ prefix, pageSize, ...next.request });
    }
  } finally {
    if (copies !== undefined) await seen.keepIn(copies, prefix, known);
  }
}

/** Sends a conditional request if the ETag of the page is known, and takes an unchanged page from the copy. */
async function getPage(get: GetListing, address: string, known: ListingCopy): Promise<GotPage> {
  const held = known.pages[address];
  const stretch = held === undefined ? undefined : knownPage(known, held);
  if (held === undefined || stretch === undefined) return assertPage(await get(address));
  const got = await get(address, held.etag);
  return got === 'unchanged' ? { ...pageOf(stretch), pageEtag: held.etag, heldAt: stretch.at } : got;
}

function assertPage(got: GotPage | 'unchanged'): GotPage {
  if (got === 'unchanged') throw new CryptodlError('bug', '304 for a page of the listing without a copy');
  return got;
}

function pageOf({ objects, prefixes, upTo }: Stretch): ListingPage {
  const truncated = upTo !== null;
  return { objects, prefixes, truncated, ...(upTo === null ? {} : { nextMarker: upTo }) };
}

interface Position {
  /** Marker or token of the request. */
  readonly position: string | undefined;
  readonly lastSeen: string | undefined;
}

/** The next position and its request. Throws `listing-malformed` if it is not after the current one. */
function nextPage(
  page: ListingPage,
  prefix: string,
  { position, lastSeen }: Position,
): Position & { request: Pick<PageRequest, 'marker' | 'token'> } {
  // A store with only ListObjectsV2 pages by token, any other by marker.
  const last = lastName(page);
  const next = page.continuationToken ?? page.nextMarker ?? last;
  const advances =
    page.continuationToken === undefined
      ? next !== undefined && isAfter(next, position)
      : next !== position && (last === undefined || isAfter(last, lastSeen));
  if (next === undefined || !advances) {
    throw new CryptodlError(
      'listing-malformed',
      `the listing of ${prefix} does not advance past ${position ?? 'its start'}`,
    );
  }
  const request = page.continuationToken === undefined ? { marker: next } : { token: next };
  return { position: next, lastSeen: last ?? lastSeen, request };
}

function lastName(page: ListingPage): string | undefined {
  const names = [page.objects.at(-1)?.key, page.prefixes.at(-1)].filter((name) => name !== undefined);
  return names.sort(byKey).at(-1);
}

function isAfter(next: string, position: string | undefined): boolean {
  return position === undefined || byKey(next, position) > 0;
}

// Checks of the pages of a walk.

/** About 30 times the longest real listings: a series of 3,100 days with sidecars, and the symbols of a market. */
const MOST_NAMES = 200_000;
/** Ends a walk over pages without names. */
const MOST_PAGES = 5000;

/** Throws `listing-malformed` for a walk that is too long. */
function endlessGuard(prefix: string): (page: ListingPage) => void {
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
function assertOrder(page: ListingPage, prefix: string): void {
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
