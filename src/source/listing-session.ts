/** The listing of one run: its pages, or copies from earlier runs if its host does not answer. */
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
import type { ArchiveAccess } from './archive-client.js';

export interface ListingSession {
  readonly access: ArchiveAccess;
  /** Without a slash at its end. */
  readonly url: string;
  readonly copies: Copies;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  readonly clock: Clock;
  readonly observer: Observer;
}

export function openListing(session: ListingSession): Listing {
  const { access, url, clock } = session;
  const { listing, sidecar } = access.archive;
  return createListing((address) => getListing(access, url, address), listing, {
    copies: copiesOf(session),
    sidecarSuffix: sidecar?.suffix,
    monotonic: () => clock.monotonic(),
  });
}

/** After a warning, only a copy that is older by this factor causes a further warning. */
const OLDER = 2;
/** Copies above this age are not used. */
const MAX_AGE_MS = 30 * DAY_MS;

function copiesOf({ url, copies, nowMs, observer }: ListingSession): ListingCopies {
  let warnedAgeMs = 0;
  const nameOf = (prefix: string): string => `listing ${url} ${prefix}`;
  return {
    nowMs,
    read: async (prefix) => (await copies.read(nameOf(prefix), parseListingCopy))?.value,
    keep: (prefix, copy) => copies.keep(nameOf(prefix), copy),
    mayReplace: (error, at) => {
      if (!isNoAnswer(error) || nowMs - at > MAX_AGE_MS) return false;
      const ageMs = Math.max(1, nowMs - at);
      if (warnedAgeMs === 0 || ageMs > warnedAgeMs * OLDER) {
        warnedAgeMs = ageMs;
        observer.warn(
          `the listing at ${new URL(url).host} is not available (${error.message}): its copy of ${agoText(at, nowMs)} is used; newer objects are checked one by one, later changes and removals are not noticed`,
        );
      }
      return true;
    },
  };
}
