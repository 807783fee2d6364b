/** Parses the query string of a listing request. */
import { type Refusal, invalidArgument } from './refusal.js';

/** S3 returns at most 1000 entries per page. */
const PAGE_LIMIT = 1000;

/** A listing request, validated. */
export interface ListingQuery {
  readonly version: 1 | 2;
  readonly prefix: string;
  readonly delimiter: '' | '/';
  /** Entries up to and including this key are left out. */
  readonly after: string;
  readonly maxKeys: number;
  /** Keys are returned percent-encoded. */
  readonly urlEncoded: boolean;
  /** As sent; the response repeats it. */
  readonly marker: string;
  readonly startAfter: string | undefined;
  readonly continuationToken: string | undefined;
}

/** Reads the parameters of ListObjects (v1) and ListObjectsV2 (`list-type=2`). */
export function readListingQuery(query: ReadonlyMap<string, string>): ListingQuery | Refusal {
  const version = query.get('list-type') === '2' ? 2 : 1;
  const delimiter = query.get('delimiter') ?? '';
  if (delimiter !== '' && delimiter !== '/') {
    return { status: 501, refusal: 'NotImplemented', message: 'The only delimiter of this archive is /' };
  }
  const maxKeys = query.get('max-keys') ?? '';
  if (!/^\d{0,9}$/.test(maxKeys))
    return invalidArgument('Provided max-keys not an integer or within integer range');
  const encoding = query.get('encoding-type') ?? '';
  if (encoding !== '' && encoding !== 'url')
    return invalidArgument('Invalid Encoding Method specified in Request');
  const continuationToken = version === 2 ? query.get('continuation-token') : undefined;
  const resumed = continuationToken === undefined ? undefined : readToken(continuationToken);
  if (continuationToken !== undefined && resumed === undefined) {
    return invalidArgument('The continuation token provided is incorrect');
  }
  const marker = version === 1 ? (query.get('marker') ?? '') : '';
  const startAfter = version === 2 ? query.get('start-after') : undefined;
  return {
    version,
    prefix: query.get('prefix') ?? '',
    delimiter,
    after: resumed ?? startAfter ?? marker,
    maxKeys: maxKeys === '' ? PAGE_LIMIT : Math.min(Number(maxKeys), PAGE_LIMIT),
    urlEncoded: encoding === 'url',
    marker,
    startAfter,
    continuationToken,
  };
}

/** The opaque token that resumes a listing after this key. */
export function makeToken(key: string): string {
  return Buffer.from(key).toString('base64url');
}

function readToken(token: string): string | undefined {
  const key = Buffer.from(token, 'base64url').toString();
  return key !== '' && makeToken(key) === token ? key : undefined;
}
