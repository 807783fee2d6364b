/**
 * A copy of the listing below one prefix, as stretches of names. The copy does not store one answer per request, because walks
 * begin at a marker that moves from day to day.
 */
import { isDeepStrictEqual } from 'node:util';
import { byKey } from './keys.js';
import type { ListedObject } from './source.js';

/** Comes after each name that a listing can have. The empty text comes before them. */
export const END = '\u{10FFFF}';

/** All names after `after` up to and including `upTo`. */
export interface Stretch {
  readonly after: string;
  readonly upTo: string;
  /** Time at which its last names were listed, in epoch milliseconds. */
  readonly at: number;
  /** Sidecars are fields of their objects. */
  readonly objects: readonly ListedObject[];
  readonly prefixes: readonly string[];
}

/** The copy of one prefix. Gaps are between its stretches. */
export type ListingCopy = readonly Stretch[];

/** A copy that is older than this is written again although nothing has changed, so that its age stays near the truth. */
const REWRITE_AFTER_MS = 3_600_000;

/**
 * The copy with the names of a walked stretch. Older names in its range are replaced; stretches that touch it are merged with it.
 * Undefined if the copy has the same names and is not old.
 */
export function withStretch(
  copy: ListingCopy,
  walked: Stretch,
  sidecarSuffix: string | undefined,
): ListingCopy | undefined {
  let joined: Stretch = { ...walked, objects: withoutSidecars(walked.objects, sidecarSuffix) };
  if (hasSame(copy, joined)) return undefined;
  const apart: Stretch[] = [];
  for (const other of copy) {
    const hasGap = byKey(other.upTo, joined.after) < 0 || byKey(joined.upTo, other.after) < 0;
    if (hasGap) apart.push(other);
    else joined = join(joined, other);
  }
  return [...apart, joined];
}

function hasSame(copy: ListingCopy, walked: Stretch): boolean {
  const known = knownAfter(copy, walked.after);
  if (known === undefined || byKey(walked.upTo, known.upTo) > 0) return false;
  // The absolute difference, because a copy from a time when the clock was wrong must be replaced.
  if (Math.abs(walked.at - known.at) >= REWRITE_AFTER_MS) return false;
  const { objects, prefixes } = cut(known, walked.after, walked.upTo);
  return isDeepStrictEqual([objects, prefixes], [walked.objects, walked.prefixes]);
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

/** The names after `after` up to the first gap of the copy; undefined if a gap begins at `after`. */
export function knownAfter(copy: ListingCopy, after: string): Stretch | undefined {
  const stretch = copy.find((one) => byKey(one.after, after) <= 0 && byKey(after, one.upTo) < 0);
  return stretch && { ...stretch, after, ...cut(stretch, after, END) };
}

/** All names of `newer`, and the names of `older` outside of its range. */
function join(newer: Stretch, older: Stretch): Stretch {
  const before = cut(older, older.after, newer.after);
  const behind = cut(older, newer.upTo, older.upTo);
  const isEnd = byKey(older.upTo, newer.upTo) > 0;
  return {
    after: byKey(older.after, newer.after) < 0 ? older.after : newer.after,
    upTo: isEnd ? older.upTo : newer.upTo,
    at: isEnd ? Math.min(older.at, newer.at) : newer.at,
    objects: [...before.objects, ...newer.objects, ...behind.objects],
    prefixes: [...before.prefixes, ...newer.prefixes, ...behind.prefixes],
  };
}

function cut({ objects, prefixes }: Stretch, after: string, upTo: string) {
  const isIn = (name: string): boolean => byKey(name, after) > 0 && byKey(name, upTo) <= 0;
  return { objects: objects.filter(({ key }) => isIn(key)), prefixes: prefixes.filter(isIn) };
}

/** Reads a stored copy; undefined for any other content. The file itself has a checksum, so its entries are not checked. */
export function parseListingCopy(content: unknown): ListingCopy | undefined {
  return Array.isArray(content) ? (content as ListingCopy) : undefined;
}
