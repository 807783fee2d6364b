/** An object in a bucket, as the headers of an answer describe it. */
import type { FetchResponse } from '../../model/fetch.js';

export interface BucketObject {
  /** Relative to the folder of the lake, with `/`. */
  readonly key: string;
  readonly bytes: number;
  /** Without its quotes. */
  readonly etag: string;
  /** As the server gives it. */
  readonly lastModified: string;
  /** The time since its last change in milliseconds, by the clock of the server; 0 if the server gives no dates. */
  readonly ageMs: number;
  /** SHA-256 in hex that this program stored with the object. A listing does not have it. */
  readonly sha256?: string;
  /** A text that this program stored with the object. A listing does not have it. */
  readonly note?: string;
}

/** The header in which an object keeps the SHA-256 of its bytes. The ETag is no digest after an upload in parts or with encryption. */
export const SHA256_HEADER = 'x-amz-meta-sha256';

/** A text in base64, because headers have ASCII characters only. */
const NOTE_HEADER = 'x-amz-meta-note';

/** By the clock of the server, because that of this machine may be wrong. */
export function ageMsOf(lastModified: string, date: string | undefined): number {
  const ageMs = Date.parse(date ?? '') - Date.parse(lastModified);
  return ageMs > 0 ? ageMs : 0;
}

export function objectOf(key: string, response: FetchResponse, bytes: number): BucketObject {
  const { [SHA256_HEADER]: sha256, [NOTE_HEADER]: note } = response.headers;
  const lastModified = response.headers['last-modified'] ?? '';
  return {
    key,
    bytes,
    etag: (response.headers['etag'] ?? '').replaceAll('"', ''),
    lastModified,
    ageMs: ageMsOf(lastModified, response.headers['date']),
    ...(sha256 === undefined ? {} : { sha256 }),
    ...(note === undefined ? {} : { note: Buffer.from(note, 'base64').toString() }),
  };
}
