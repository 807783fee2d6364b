/** Wire-level exceptions and HTTP statuses → typed errors. The only place that knows undici's and the sockets' codes. */
import { CryptodlError, errnoOf } from '../errors.js';
import type { ErrorCode } from '../errors.js';
import { retryAfterMs } from './retry-after.js';

const BY_CODE: Readonly<Record<string, ErrorCode>> = {
  ECONNREFUSED: 'connect-failed',
  EHOSTUNREACH: 'connect-failed',
  ENETUNREACH: 'connect-failed',
  EADDRNOTAVAIL: 'connect-failed',
  ENOTFOUND: 'dns-failed',
  EAI_AGAIN: 'dns-failed',
  ECONNRESET: 'connection-lost',
  EPIPE: 'connection-lost',
  UND_ERR_SOCKET: 'connection-lost',
  ETIMEDOUT: 'connect-timeout',
  UND_ERR_CONNECT_TIMEOUT: 'connect-timeout',
  UND_ERR_HEADERS_OVERFLOW: 'http-protocol',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'length-mismatch',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'length-mismatch',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls-failed',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls-failed',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls-failed',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls-failed',
  CERT_HAS_EXPIRED: 'tls-failed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls-failed',
  ERR_SSL_WRONG_VERSION_NUMBER: 'tls-failed',
};

/** Errors of ours and of the disk pass through; what nobody knows stays what it is (a bug). */
export function mapWireError(error: unknown, url: string): unknown {
  if (error instanceof CryptodlError || !(error instanceof Error)) return error;
  const code = errnoOf(error);
  const parser = code.startsWith('HPE_') || error.name === 'HTTPParserError';
  const known = parser ? 'http-protocol' : BY_CODE[code];
  if (known === undefined) return error;
  const detail = error.message === '' ? code : error.message;
  return new CryptodlError(known, `${new URL(url).host}: ${detail}`, { cause: error });
}

/** Undefined for the statuses that are answers (200, 404). */
export function statusError(
  status: number,
  headers: Readonly<Record<string, string>>,
  head: string,
  url: string,
): CryptodlError | undefined {
  if (status === 200 || status === 404) return undefined;
  const wait = retryAfterMs(headers);
  const details = wait === undefined ? {} : { retryAfterMs: wait };
  const said = head === '' ? '' : `: ${summary(head)}`;
  return new CryptodlError(statusCode(status), `${new URL(url).host} answered ${status}${said}`, details);
}

function statusCode(status: number): ErrorCode {
  if (status === 429 || status === 418) return 'rate-limited';
  if (status >= 500 || status === 408) return 'http-server-error';
  if (status === 403) return 'http-forbidden';
  if (status >= 400) return 'http-refused';
  if (status >= 300 && status !== 304) return 'redirect-refused';
  return 'http-protocol';
}

/** An S3 or HTML error document in one short line. */
function summary(head: string): string {
  const code =
    /<Code>([^<]{1,80})<\/Code>/.exec(head)?.[1] ?? /<title>([^<]{1,80})<\/title>/i.exec(head)?.[1];
  return (code ?? head).replaceAll(/\s+/g, ' ').trim().slice(0, 80);
}
