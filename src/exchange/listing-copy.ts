/** A copy of the listing below one prefix. Walks begin at a marker that moves from day to day, so the copy has the names of the last walk and those before its marker. */
import { HOUR_MS } from '../model/units.js';
import { byKey } from './keys.js';
import type { ListedObject } from './exchange.js';
import { isRecord } from '../text/json.js';

/** All names after `after` up to the end of the prefix. */
export interface ListingCopy {
  readonly after: string;
  /** Time at which its last names were listed, in epoch milliseconds. The name is that in stored copies. */
  readonly at: number;
  /** Sidecars are fields of their objects. */
  readonly objects: readonly ListedObject[];
  readonly prefixes: readonly string[];
}

/** A younger copy that has all names of a walk is not written again. */
const REWRITE_AFTER_MS = HOUR_MS;

/** The copy with the names of a walk to the end, after the names that it has before that. Undefined if the copy is young enough. */
export function withWalk(
  copy: ListingCopy | undefined,
  walked: ListingCopy,
  sidecarSuffix: string | undefined,
): ListingCopy | undefined {
  const objects = withoutSidecars(walked.objects, sidecarSuffix);
  if (copy === undefined || byKey(copy.after, walked.after) > 0) return { ...walked, objects };
  // The absolute difference, because a copy from a time when the clock was wrong must be replaced.
  if (Math.abs(walked.at - copy.at) < REWRITE_AFTER_MS) return undefined;
  const isBefore = (name: string): boolean => byKey(name, walked.after) <= 0;
  return {
    after: copy.after,
    at: walked.at,
    objects: [...copy.objects.filter(({ key }) => isBefore(key)), ...objects],
    prefixes: [...copy.prefixes.filter(isBefore), ...walked.prefixes],
  };
}

/** Turns each sidecar into a field of its object. In key order, a sidecar follows its object. */
function withoutSidecars(
  objects: readonly ListedObject[],
  suffix: string | undefined,
): readonly ListedObject[] {
  if (suffix === undefined) return objects;
  const zips: ListedObject[] = [];
  for (const object of objects) {
    const last = zips.at(-1);
    if (!object.key.endsWith(suffix)) zips.push(object);
    else if (last !== undefined && object.key === last.key + suffix)
      zips[zips.length - 1] = { ...last, sidecarEtag: object.etag };
  }
  return zips;
}

/** The names of the copy after `after`; undefined if it does not have all of them. */
export function namesAfter(copy: ListingCopy | undefined, after: string): ListingCopy | undefined {
  if (copy === undefined || byKey(copy.after, after) > 0) return undefined;
  const isBehind = (name: string): boolean => byKey(name, after) > 0;
  const objects = copy.objects.filter(({ key }) => isBehind(key));
  return { after, at: copy.at, objects, prefixes: copy.prefixes.filter(isBehind) };
}

/** Reads a stored copy; undefined for any other content. The file itself has a checksum, so its entries are not checked. */
export function parseListingCopy(content: unknown): ListingCopy | undefined {
  return isRecord(content) && Array.isArray(content['objects'])
    ? (content as unknown as ListingCopy)
    : undefined;
}
