/** An object of a bucket, and the conditions of a write. */
import { CryptodlError } from '../model/errors.js';

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
  /** The text that this program stored with the object, with the same limits. */
  readonly note?: string;
}

/** `absent`: there is no object yet. `same`: the object still has this ETag, without its quotes. */
export type PutCondition = { readonly kind: 'absent' } | { readonly kind: 'same'; readonly etag: string };

export function holds(condition: PutCondition, there: BucketObject | undefined): boolean {
  return condition.kind === 'absent' ? there === undefined : there?.etag === condition.etag;
}

/** The error about an object that another writer has changed or removed. `name`: its address. */
export function changedElsewhere(name: string, there: BucketObject | undefined): CryptodlError {
  const state = there === undefined ? 'is not in the bucket any more' : 'was changed by another writer';
  return new CryptodlError('lake-conflict', `${name} ${state}`, {
    hint: 'try again; two runs that write the same series at the same time disturb each other',
  });
}
