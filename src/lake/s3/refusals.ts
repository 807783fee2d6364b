/** Reads the errors of S3 servers: the code in the body, or the status of an answer without a body. */
import type { Body } from '../../model/fetch.js';
import type { Refusal, ReadRefusal } from '../../http/transport/error-map.js';

export const CREDENTIALS =
  'check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, which may have expired, or the profile of AWS_PROFILE';
const RIGHTS =
  'the credentials need s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload for this bucket';
const REGIONS = 'give the region of the bucket with --s3-region, or its server with --s3-endpoint';
const NAME = 'create the bucket, or check the name after s3:// and --s3-endpoint';

/** The next step after a refusal that no further attempt changes, by the name of the error. */
export const HINTS: ReadonlyMap<string, string> = new Map([
  ...['SignatureDoesNotMatch', 'InvalidAccessKeyId', 'ExpiredToken', 'InvalidToken'].map(
    (name) => [name, CREDENTIALS] as const,
  ),
  ['AuthorizationHeaderMalformed', REGIONS],
  ['PermanentRedirect', REGIONS],
  ['InvalidBucketName', NAME],
  ['NoSuchBucket', NAME],
  ['RequestTimeTooSkewed', 'set the clock of this machine'],
]);

const SLOW_DOWN = /^(?:SlowDown\w*|TooManyRequests|RequestLimitExceeded)$/;
/** Errors that a further attempt may not have, whatever their status. */
const REPEATED =
  /^(?:RequestTimeout|OperationAborted|ConditionalRequestConflict|IncompleteBody|BadDigest|XAmzContentSHA256Mismatch)$/;

const REGION = /^[a-z0-9-]{2,40}$/;

/**
 * Calls back for changes that an answer asks for; the request is then sent again. `onRegion`: the bucket is in another region. `onExpired`: the
 * session token has expired, or the request has waited for too long after it was signed.
 */
export function readRefusals(onRegion: (region: string) => void, onExpired: () => void): ReadRefusal {
  return ({ status, head, headers }): Refusal => {
    const name = errorName(head);
    const region = headers['x-amz-bucket-region'] ?? /<Region>([^<]{2,40})<\/Region>/.exec(head)?.[1];
    const isElsewhere = status === 301 || name === 'AuthorizationHeaderMalformed';
    if (isElsewhere && region !== undefined && REGION.test(region)) onRegion(region);
    if (name === 'ExpiredToken' || name === 'RequestTimeTooSkewed') onExpired();
    if (SLOW_DOWN.test(name ?? '')) return { code: 'rate-limited', isDecided: true, ...named(name) };
    if (REPEATED.test(name ?? '')) return { code: 'http-server-error', isDecided: true, ...named(name) };
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
export function errorName(body: string | Body): string | undefined {
  if (typeof body !== 'string')
    return body.kind === 'file' ? undefined : errorName(body.bytes.toString('utf8'));
  const start = body.search(/<Error\b/);
  return /<Code>([A-Za-z0-9]{1,60})<\/Code>/.exec(start < 0 ? '' : body.slice(start, start + 2500))?.[1];
}

/** A text of a server is cut, and a token in it too. So the beginning of a token is hidden, with all that follows it. */
const BEGINNING = 12;
const HIDDEN = '(not shown)';
/** Credentials and signatures in headers and in addresses. */
const SIGNED = /\b((?:X-Amz-)?(?:Signature|Credential|Security-Token)=)[^\s,&"'<>]+/gi;

/** Takes signatures and the session token out of the error and its causes, because observers and the log may have them. Returns the error. */
export function hideIn(error: unknown, token = ''): unknown {
  const starts =
    token === '' ? [] : [token, encodeURIComponent(token)].map((text) => text.slice(0, BEGINNING));
  const hidden = (text: string): string => {
    let result = text.replaceAll(SIGNED, `$1${HIDDEN}`);
    for (const start of starts) {
      const [before = '', ...after] = result.split(start);
      result = before + after.map((rest) => rest.replace(/^[\w+/=%-]*/, HIDDEN)).join('');
    }
    return result;
  };
  for (let each = error; each instanceof Error; each = each.cause) {
    each.message = hidden(each.message);
    if (each.stack !== undefined) each.stack = hidden(each.stack);
  }
  return error;
}
