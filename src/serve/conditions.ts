import type { IncomingHttpHeaders } from 'node:http';

/** The validators of one revision of an object. */
export interface Validators {
  /** Quoted. */
  readonly etag: string;
  /** HTTP date, whole seconds. */
  readonly lastModified: string;
}

/** True when the client's copy is current and 304 is the answer; an ETag beats a date (RFC 9110, 13.2.2). */
export function isNotModified(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined) {
    return tags.trim() === '*' || tags.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
  }
  const since = Date.parse(headers['if-modified-since'] ?? '');
  return Date.parse(lastModified) <= since;
}

/** True when a `Range` may be answered with a part: no `If-Range`, or one that names this very revision. */
export function rangeApplies(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const wanted = headers['if-range'];
  return wanted === undefined || wanted === etag || wanted === lastModified;
}
