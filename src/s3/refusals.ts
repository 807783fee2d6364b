/** Reads the errors of S3 servers: the code in the body, or the status of an answer without a body. */
import type { Refusal, ReadRefusal } from '../http/transport/error-map.js';
import type { ErrorCode } from '../model/errors.js';
import { durationText } from '../model/units.js';

const CREDENTIALS =
  'check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the profile of AWS_PROFILE';
const RIGHTS =
  'the credentials need s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload for this bucket';

/** In place of a code, for an answer to a request for a list. */
export const NO_LIST = 'with something other than a list of objects';

/** The next step after a refusal that no further attempt changes. */
const HINTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    SignatureDoesNotMatch: `${CREDENTIALS}; the secret key does not belong to the key, or a proxy changes the request`,
    InvalidAccessKeyId: `${CREDENTIALS}; the server does not know the key`,
    AuthorizationHeaderMalformed: 'give the region of the bucket with --s3-region',
    ExpiredToken:
      'the session token has expired: get new credentials and try again; committed files are kept',
    InvalidToken: CREDENTIALS,
    InvalidBucketName: 'check the name after s3://',
    PermanentRedirect: 'give the region of the bucket with --s3-region, or its server with --s3-endpoint',
    [NO_LIST]: 'check --s3-endpoint: it is the address of an S3 server, without the name of the bucket',
    NoSuchBucket: 'create the bucket, or check the name after s3:// and --s3-endpoint',
  }),
);

/** Codes of errors that a further attempt may not have. */
const RETRIED: ReadonlyMap<string, ErrorCode> = new Map(
  Object.entries({
    SlowDown: 'rate-limited',
    SlowDownRead: 'rate-limited',
    SlowDownWrite: 'rate-limited',
    TooManyRequests: 'rate-limited',
    RequestLimitExceeded: 'rate-limited',
    InternalError: 'http-server-error',
    ServiceUnavailable: 'http-server-error',
    // The server waited too long for the next bytes of the body.
    RequestTimeout: 'http-server-error',
    OperationAborted: 'http-server-error',
    ConditionalRequestConflict: 'http-server-error',
    IncompleteBody: 'connection-lost',
    BadDigest: 'body-damaged',
    XAmzContentSHA256Mismatch: 'body-damaged',
  } satisfies Record<string, ErrorCode>),
);

/** Changes that an answer asks for. The request is then sent again. */
export interface OnRefusal {
  /** The bucket is in another region. */
  readonly onRegion: (region: string) => void;
  /** The session token has expired. */
  readonly onExpired: () => void;
}

const REGION = /^[a-z0-9-]{2,40}$/;

export function readRefusals({ onRegion, onExpired }: OnRefusal): ReadRefusal {
  return ({ status, head, headers, receivedAt }): Refusal => {
    const name = errorName(head);
    const region = headers['x-amz-bucket-region'] ?? /<Region>([^<]{2,40})<\/Region>/.exec(head)?.[1];
    const isElsewhere = status === 301 || name === 'AuthorizationHeaderMalformed';
    if (isElsewhere && region !== undefined && REGION.test(region)) onRegion(region);
    if (name === 'ExpiredToken') onExpired();
    const retried = RETRIED.get(name ?? '');
    if (retried !== undefined) return { code: retried, isDecided: true, ...named(name) };
    if (name === 'RequestTimeTooSkewed') {
      const offMs = receivedAt - Date.parse(headers['date'] ?? '');
      const off = Number.isNaN(offMs) ? '' : ` by ${durationText(Math.abs(offMs))}`;
      const hint = `the clock of this machine differs from that of the server${off}: set it`;
      return { code: 'lake-refused', isDecided: true, hint, ...named(name) };
    }
    // A page of a firewall, or a redirect to another address, is not an answer of S3.
    const isOfS3 = name !== undefined || (head === '' && status < 500);
    if (!isOfS3 || status >= 500 || (status >= 300 && status < 400 && headers['location'] !== undefined))
      return {};
    const hint =
      HINTS.get(name ?? '') ?? (status === 401 || status === 403 ? `${CREDENTIALS}; ${RIGHTS}` : undefined);
    return {
      code: 'lake-refused',
      isDecided: status !== 429 && status !== 408,
      ...named(name),
      ...(hint === undefined ? {} : { hint }),
    };
  };
}

function named(name: string | undefined): Pick<Refusal, 'message'> {
  return name === undefined ? {} : { message: name };
}

/** The code of an error document; undefined for any other body. */
export function errorName(body: string): string | undefined {
  const start = body.search(/<Error\b/);
  return /<Code>([A-Za-z0-9]{1,60})<\/Code>/.exec(start < 0 ? '' : body.slice(start, start + 2500))?.[1];
}

/** The next step after an error of this name. */
export function hintAfter(name: string): string | undefined {
  return HINTS.get(name);
}
