/** The listing of one run: its pages, or cached copies of earlier runs if its host does not answer. */
import { DAY_MS } from '../model/calendar.js';
import type { Clock } from '../model/clock.js';
import { isNoAnswer } from '../model/errors.js';
import type { Observer } from '../model/observer.js';
import { createListing } from './listing.js';
import type { Listing, ListingCopies } from './listing.js';
import { parseListingCopy } from './listing-copy.js';
import type { Copies } from '../http/response-cache.js';
import { agoText } from '../model/units.js';
import { getListing } from './archive-client.js';
import type { Asks } from './archive-client.js';

export interface ListingSession {
  readonly asks: Asks;
  /** Without a slash at its end. */
  readonly url: string;
  readonly copies: Copies;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  readonly clock: Clock;
  readonly observer: Observer;
}

export function openListing(session: ListingSession): Listing {
  const { asks, url, clock } = session;
  const { listing, sidecar } = asks.archive;
  return createListing((address, heldEtag) => getListing(asks, url, address, heldEtag), listing, {
    copies: copiesOf(session),
    sidecarSuffix: sidecar?.suffix,
    monotonic: () => clock.monotonic(),
  });
}

/** A copy that is older by this factor gets another warning. */
const OLDER = 2;
/** Older copies are not used. */
const MAX_AGE_MS = 30 * DAY_MS;

/** The cache name of the listing below a prefix. */
export function listingCopyName(url: string, prefix: string): string {
  return `listing ${url} ${prefix}`;
}

function copiesOf({ url, copies, nowMs, observer }: ListingSession): ListingCopies {
  let toldMs = 0;
  return {
    nowMs,
    read: async (prefix) => (await copies.read(listingCopyName(url, prefix), parseListingCopy))?.value,
    keep: (prefix, copy) => copies.keep(listingCopyName(url, prefix), copy),
    mayStandIn: (error, at) => {
      if (!isNoAnswer(error) || nowMs - at > MAX_AGE_MS) return false;
      const ageMs = Math.max(1, nowMs - at);
      if (toldMs === 0 || ageMs > toldMs * OLDER) {
        toldMs = ageMs;
        observer.warn(
          `the listing at ${new URL(url).host} is not available (${error.message}): its copy of ${agoText(at, nowMs)} is used; newer objects are probed for, later changes and removals are not noticed`,
        );
      }
      return true;
    },
  };
}
