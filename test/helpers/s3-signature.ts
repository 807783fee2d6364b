/** Checks AWS Signature Version 4 from scratch, so that a mistake of the client does not hide behind its own library. */
import { createHash, createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface SignedRequest {
  readonly method: string;
  /** Path and query, as they came over the wire. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface KnownKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly region: string;
}

/** An error of S3. */
export class S3Refusal extends Error {
  readonly status: number;
  readonly code: string;
  /** Further elements of the error document. */
  readonly more: Readonly<Record<string, string>>;

  constructor(status: number, code: string, more: Readonly<Record<string, string>> = {}) {
    super(code);
    this.status = status;
    this.code = code;
    this.more = more;
  }
}

const LONGEST_SKEW_MS = 15 * 60_000;

/** Throws an S3Refusal for a request that AWS would refuse. `nowMs`: the clock of the server. */
export function checkSignature(request: SignedRequest, key: KnownKey, nowMs: number): void {
  const { headers, body } = request;
  const authorization = headers.authorization ?? '';
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/.exec(
      authorization,
    );
  if (match === null) throw new S3Refusal(403, 'AccessDenied');
  const [, id, day = '', region = '', names = '', signature = ''] = match;
  if (id !== key.accessKeyId) throw new S3Refusal(403, 'InvalidAccessKeyId');
  if (headers['x-amz-security-token'] !== key.sessionToken) throw new S3Refusal(400, 'InvalidToken');
  if (region !== key.region) throw new S3Refusal(400, 'AuthorizationHeaderMalformed', { Region: key.region });
  const date = text(headers['x-amz-date']);
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date);
  if (parts === null || !date.startsWith(day)) throw new S3Refusal(403, 'AccessDenied');
  const [, year, month, dayOfMonth, hour, minute, second] = parts;
  const at = Date.parse(`${year}-${month}-${dayOfMonth}T${hour}:${minute}:${second}Z`);
  if (Math.abs(nowMs - at) > LONGEST_SKEW_MS) throw new S3Refusal(403, 'RequestTimeTooSkewed');
  const signed = names.split(';');
  const unsigned = Object.keys(headers).filter(
    (name) =>
      (name === 'host' || name.startsWith('x-amz-') || name === 'content-md5') && !signed.includes(name),
  );
  if (unsigned.length > 0) throw new S3Refusal(403, 'AccessDenied');
  // Some servers sign the path as it came, others decode it first. Both must find the same signature.
  if (request.target.split('?')[0] !== canonicalPath(request.target)) throw new S3Refusal(400, 'InvalidURI');
  const given = text(headers['x-amz-content-sha256']);
  const canonical = [
    request.method,
    canonicalPath(request.target),
    canonicalQuery(request.target),
    ...[...signed].sort().map((name) => `${name}:${text(headers[name]).trim().replaceAll(/\s+/g, ' ')}`),
    '',
    names,
    given,
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n');
  const signingKey = [day, region, 's3', 'aws4_request'].reduce<Buffer>(
    (secret, word) => createHmac('sha256', secret).update(word).digest(),
    Buffer.from(`AWS4${key.secretAccessKey}`),
  );
  if (createHmac('sha256', signingKey).update(toSign).digest('hex') !== signature)
    throw new S3Refusal(403, 'SignatureDoesNotMatch');
  // The client signs the digest of each body.
  if (given !== sha256(body)) throw new S3Refusal(400, 'XAmzContentSHA256Mismatch');
  const md5 = headers['content-md5'];
  if (md5 !== undefined && md5 !== createHash('md5').update(body).digest('base64'))
    throw new S3Refusal(400, 'BadDigest');
}

function text(value: string | string[] | undefined): string {
  return Array.isArray(value) ? value.join(',') : (value ?? '');
}

function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

function canonicalPath(target: string): string {
  const [path = ''] = target.split('?');
  return path
    .split('/')
    .map((segment) => encoded(decodeURIComponent(segment)))
    .join('/');
}

function canonicalQuery(target: string): string {
  const query = target.includes('?') ? target.slice(target.indexOf('?') + 1) : '';
  if (query === '') return '';
  return query
    .split('&')
    .map((word) => {
      const [name = '', value = ''] = word.split('=');
      return [encoded(decodeURIComponent(name)), encoded(decodeURIComponent(value))] as const;
    })
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map((pair) => pair.join('='))
    .join('&');
}

/** Byte by byte, after the AWS documentation "Create a signed AWS API request". */
function encoded(value: string): string {
  return [...Buffer.from(value)]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return /[A-Za-z0-9._~-]/.test(character)
        ? character
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');
}
