/** An object of a bucket, and conditional writes: by the headers of HTTP, or by a comparison before the write where the server has none. */
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
}

/** By the clock of the server, because that of this machine may be wrong. */
export function ageMsOf(lastModified: string, date: string | undefined): number {
  const ageMs = Date.parse(date ?? '') - Date.parse(lastModified);
  return ageMs > 0 ? ageMs : 0;
}

/** `absent`: there is no object yet. `same`: the object still has this ETag, without its quotes. */
export type PutCondition = { readonly kind: 'absent' } | { readonly kind: 'same'; readonly etag: string };

export class Conditions {
  readonly #address: string;
  readonly #warn: (message: string) => void;
  #isSupported = true;

  constructor(address: string, warn: (message: string) => void) {
    this.#address = address;
    this.#warn = warn;
  }

  /** False after the server has refused the headers. */
  get isSupported(): boolean {
    return this.#isSupported;
  }

  /** The headers for a write. Undefined: the server has no conditions, so that the object must be compared before the write. */
  headers(condition: PutCondition): Record<string, string> | undefined {
    if (!this.#isSupported) return undefined;
    return condition.kind === 'absent' ? { 'if-none-match': '*' } : { 'if-match': `"${condition.etag}"` };
  }

  /** Takes a refusal of the headers with 501. Later writes are compared. */
  giveUp(): void {
    if (!this.#isSupported) return;
    this.#isSupported = false;
    this.#warn(
      `${this.#address}: the server has no conditional writes: each object is compared before it is written; let only one run at a time write a series (--shard)`,
    );
  }
}

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
