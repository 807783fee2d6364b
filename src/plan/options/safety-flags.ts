/** Flags of the group Safety: checks, and limits of a run. */
import { duration, oneOf, section } from './flag-spec.js';
import * as numbers from './numbers.js';

export const SAFETY_FLAGS = section({ group: 'Safety' })({
  deep: 'read every row again; checks values, times, order and row counts',
  yes: 'remove; without this flag, print what would be removed',
  fix: 'move damaged files and files that no manifest line names into OUT/_quarantine, and remove leftovers of killed runs; cryptodl repair then fetches the missing objects',
  verify: oneOf('HOW', ['sha256', 'etag', 'none'])(
    'check of each object: sha256, etag or none; sha256 uses the digest of the sidecar, etag the MD5 of the listing',
    { isCarried: true, default: 'sha256' },
  ),
  revisions: oneOf('HOW', ['check', 'take', 'ignore', 'only'])(
    'objects that changed upstream: check, take, ignore or only; check: fetch them again and replace the rows, unless rows of the lake would be lost; take: always replace the rows; ignore: keep the rows of the lake; only: like check, but fetch no other objects',
    { isCarried: true, default: 'check' },
  ),
  'recheck-days': {
    isCarried: true,
    value: 'N',
    doc: 'check the last N days for revisions; if the range ends within these days, the run also checks held days of these N days that are outside of the range, and fetches missing days between a held day and the end of the range',
    parse: numbers.integer(0, 'day'),
    default: '7',
  },
  'stale-checksum': oneOf('WHAT', ['fail', 'warn'])(
    'for an object that does not match its sidecar, but has the size and ETag of the listing: fail, or warn and use it',
    { isCarried: true, default: 'fail' },
  ),
  'max-bytes': {
    value: 'SIZE',
    doc: 'end before the first download if the plan is larger',
    parse: numbers.bytes,
    unit: 'Bytes',
    aka: ['max-transfer', 'max-size'],
  },
  strict: {
    isCarried: true,
    doc: 'end with exit code 4 if a series of the run lacks data; what is proven to be absent does not count, and neither does what is not due yet',
  },
  'error-on-nothing': 'end with exit code 5 if nothing new was written',
  'wait-lock': duration(
    'wait this long for the lock of the lake; without this flag, a locked lake ends the run at once with exit code 6',
  ),
  min: {
    value: 'PERCENT',
    doc: 'end with exit code 4 if a series has less than this percentage of the expected data',
    parse: numbers.percent,
    unit: 'Percent',
    aka: ['threshold', 'minimum', 'fail-under'],
  },
});
