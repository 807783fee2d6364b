/** The credentials of a bucket. They never appear in output. */
import type { Clock } from '../model/clock.js';
import { CryptodlError } from '../model/errors.js';

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  /** Epoch milliseconds; undefined for credentials that do not expire. */
  readonly expiresAt?: number | undefined;
}

export type FindCredentials = () => Promise<Credentials>;

/** Credentials are fetched again when they have less time left than this, so that no request outlives them. */
const REFRESH_MS = 5 * 60_000;

/** Finds credentials once, and again before they expire. */
export class CredentialSource {
  readonly #find: FindCredentials;
  readonly #clock: Pick<Clock, 'now'>;
  #known: Promise<Credentials> | undefined;
  #expiresAt = Number.POSITIVE_INFINITY;

  constructor(find: FindCredentials, clock: Pick<Clock, 'now'>) {
    this.#find = find;
    this.#clock = clock;
  }

  current(): Promise<Credentials> {
    const isOld = this.#clock.now() > this.#expiresAt - REFRESH_MS;
    if (this.#known === undefined || isOld) {
      this.#expiresAt = Number.POSITIVE_INFINITY;
      const known = this.#find().then((credentials) => {
        this.#expiresAt = credentials.expiresAt ?? Number.POSITIVE_INFINITY;
        return trimmed(credentials);
      });
      this.#known = known;
      // After a failure, the next request looks again.
      known.catch(() => {
        if (this.#known === known) this.#known = undefined;
      });
    }
    return this.#known;
  }

  /** Forgets credentials that the server calls expired. */
  forget(): void {
    this.#known = undefined;
  }
}

const NAMES: readonly (readonly ['accessKeyId' | 'secretAccessKey' | 'sessionToken', string, string])[] = [
  ['accessKeyId', 'access key', 'AWS_ACCESS_KEY_ID'],
  ['secretAccessKey', 'secret key', 'AWS_SECRET_ACCESS_KEY'],
  ['sessionToken', 'session token', 'AWS_SESSION_TOKEN'],
];

/**
 * The credentials without blanks and line breaks at their ends, which files with one secret often have. Throws `lake-refused` for other
 * characters that a header cannot carry. The error does not contain the value.
 */
function trimmed(credentials: Credentials): Credentials {
  const result = { ...credentials };
  for (const [field, name, variable] of NAMES) {
    const value = credentials[field]?.trim();
    if (value === undefined) continue;
    if (!/^[\x20-\x7e]+$/.test(value))
      throw new CryptodlError(
        'lake-refused',
        `the ${name} of the bucket is empty, or has a line break or a character that is not ASCII`,
        { hint: `set ${variable} again (in a profile: ${variable.toLowerCase()})` },
      );
    result[field] = value;
  }
  return result;
}
