/** The listing of one run: its pages, or copies from earlier runs if its host does not answer. */
import { isNoAnswer } from '../model/errors.js';
import { DAY_MS } from '../model/calendar.js';
import type { Clock } from '../model/clock.js';
import type { Observer } from '../model/observer.js';
import type { ResponseCache } from '../http/response-cache.js';
import { agoText } from '../model/units.js';
import { getListing, type ArchiveAccess } from './archive-client.js';
import { parseListingCopy } from './listing-copy.js';
import { createListing, type Listing, type ListingCopies } from './listing.js';

export interface ListingContext {
  readonly access: ArchiveAccess;
  /** Without a slash at its end. */
  readonly url: string;
  readonly copies: ResponseCache;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  readonly clock: Clock;
  readonly observer: Observer;
}

export function openListing(context: ListingContext): Listing {
  const { access, url, clock } = context;
  const { listing, sidecar } = access.archive;
  return createListing((address) => getListing(access, url, address), listing, {
    copies: copiesOf(context),
    sidecarSuffix: sidecar?.suffix,
    monotonic: () => clock.monotonic(),
  });
}

/** Copies above this age are not used. */
const MAX_AGE_MS = 30 * DAY_MS;

function copiesOf({ url, copies, nowMs, observer }: ListingContext): ListingCopies {
  let hasWarned = false;
  const nameOf = (prefix: string): string => `names ${url} ${prefix}`;
  return {
    nowMs,
    read: async (prefix) => (await copies.read(nameOf(prefix), parseListingCopy))?.value,
    keep: (prefix, copy) => copies.keep(nameOf(prefix), copy),
    mayReplace: (error, at) => {
      if (!isNoAnswer(error) || nowMs - at > MAX_AGE_MS) return false;
      if (!hasWarned)
        observer.warn(
          `the listing at ${new URL(url).host} is not available (${error.message}): its copy of ${agoText(at, nowMs)} is used; newer objects are checked one by one, later changes and removals are not noticed`,
        );
      hasWarned = true;
      return true;
    },
  };
}
