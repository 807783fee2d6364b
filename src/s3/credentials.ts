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

/** A place of credentials. Resolves with undefined if the place has none, and rejects if it has wrong ones. */
export type FindCredentials = (signal: AbortSignal) => Promise<Credentials | undefined>;

/** Credentials are fetched again when they have less time left than this, so that no request outlives them. */
const REFRESH_MS = 5 * 60_000;

/** Finds credentials once, and again before they expire. */
export class CredentialSource {
  readonly #places: readonly FindCredentials[];
  readonly #clock: Pick<Clock, 'now'>;
  #known: Promise<Credentials> | undefined;
  #expiresAt = Number.POSITIVE_INFINITY;

  constructor(places: readonly FindCredentials[], clock: Pick<Clock, 'now'>) {
    this.#places = places;
    this.#clock = clock;
  }

  /** Rejects with `lake-refused` if no place has credentials. */
  current(signal: AbortSignal): Promise<Credentials> {
    const isOld = this.#clock.now() > this.#expiresAt - REFRESH_MS;
    if (this.#known === undefined || isOld) {
      this.#expiresAt = Number.POSITIVE_INFINITY;
      const known = this.#find(signal);
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

  async #find(signal: AbortSignal): Promise<Credentials> {
    for (const find of this.#places) {
      const credentials = await find(signal);
      if (credentials === undefined) continue;
      this.#expiresAt = credentials.expiresAt ?? Number.POSITIVE_INFINITY;
      return trimmed(credentials);
    }
    throw new CryptodlError('lake-refused', 'no credentials for the bucket were found', {
      hint: 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE',
    });
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

type Environment = Readonly<Record<string, string | undefined>>;

export function fromEnvironment(environment: Environment): FindCredentials {
  return () => {
    const accessKeyId = environment['AWS_ACCESS_KEY_ID'] ?? '';
    const secretAccessKey = environment['AWS_SECRET_ACCESS_KEY'] ?? '';
    const sessionToken = environment['AWS_SESSION_TOKEN'] ?? '';
    if (accessKeyId === '' && secretAccessKey === '') return Promise.resolve(undefined);
    if (accessKeyId === '' || secretAccessKey === '') {
      const missing = accessKeyId === '' ? 'AWS_ACCESS_KEY_ID' : 'AWS_SECRET_ACCESS_KEY';
      return Promise.reject(
        new CryptodlError('lake-refused', `${missing} is not set, but the other half of the credentials is`, {
          hint: `set ${missing} too, or unset both`,
        }),
      );
    }
    return Promise.resolve({
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === '' ? {} : { sessionToken }),
    });
  };
}
