/** Turns exceptions of undici and sockets, and HTTP statuses, into typed errors. */
import {
  CryptodlError,
  errnoOf,
  hostError,
  NO_CONNECTION,
  LONGEST_WAIT_DAYS,
  LONGEST_WAIT_MS,
  type ErrorCode,
} from '../../model/errors.js';
import { PROXY_HINT, TunnelError } from './socks.js';

const BY_CODE: Readonly<Record<string, ErrorCode>> = {
  ECONNREFUSED: 'connect-failed',
  EHOSTUNREACH: 'connect-failed',
  EHOSTDOWN: 'connect-failed',
  ENETUNREACH: 'connect-failed',
  ENETDOWN: 'connect-failed',
  EADDRNOTAVAIL: 'connect-failed',
  // A firewall of this machine refused the connection.
  EPERM: 'connect-failed',
  EACCES: 'connect-failed',
  ENOTFOUND: 'host-unknown',
  EAI_AGAIN: 'dns-failed',
  EAI_FAIL: 'dns-failed',
  EAI_NODATA: 'dns-failed',
  ETIMEDOUT: 'connect-timeout',
  UND_ERR_CONNECT_TIMEOUT: 'connect-timeout',
  UND_ERR_HEADERS_OVERFLOW: 'http-protocol',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'length-mismatch',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'length-mismatch',
  ERR_SSL_WRONG_VERSION_NUMBER: 'tls-failed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls-failed',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls-failed',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls-failed',
  INVALID_CA: 'tls-failed',
  HOSTNAME_MISMATCH: 'tls-failed',
};

/** Families of certificate errors (OpenSSL's X509_V_ERR names, as Node gives them). */
const CERTIFICATE = /^(CERT_|CRL_|UNABLE_TO_|ERROR_IN_(CERT|CRL)_)/;
/** Wrong use of undici is a bug of this program. */
const MISUSE = /^UND_ERR_(INVALID_ARG|INVALID_RETURN_VALUE|NOT_SUPPORTED|DESTROYED|CLOSED)$/;

/**
 * The typed error for an error of a connection; an unknown code counts as a lost connection. An error without a code, except a TunnelError,
 * does not come from a connection. It is returned unchanged, and so are typed errors and errors that are bugs.
 */
export function mapWireError(error: Error, url: string, proxy?: URL): Error {
  const code = errnoOf(error);
  // undici reports the refusal of a proxy only in the text of its error. For `http:` addresses, its code is that of a misuse.
  const refused = /^Proxy (?:response|Authentication Required) \((\d+)\)/.exec(error.message);
  if (refused !== null) return proxyAnswered(Number(refused[1]), url, error);
  if (error instanceof TunnelError) {
    const { kind, message, hint, proxyFault } = error;
    return new CryptodlError(kind, message, { cause: error, hint, proxyFault });
  }
  if (error instanceof CryptodlError || error instanceof TypeError || MISUSE.test(code)) return error;
  if (!('code' in error)) return error;
  const kind =
    error.name === 'HTTPParserError'
      ? 'http-protocol'
      : (BY_CODE[code] ?? (CERTIFICATE.test(code) ? 'tls-failed' : 'connection-lost'));
  const detail = error.message === '' ? code : error.message;
  if (proxy !== undefined && NO_CONNECTION.has(kind)) {
    const proxyFault = `cannot be reached: ${detail}`;
    const message = `the proxy ${proxy.host} ${proxyFault}`;
    return new CryptodlError('proxy-unreachable', message, { cause: error, hint: PROXY_HINT, proxyFault });
  }
  const hint = OUT_OF_TIME.has(code) ? CLOCK_HINT : TRUST_HINT;
  const details = { cause: error, ...(kind === 'tls-failed' ? { hint } : {}) };
  return hostError(kind, new URL(url).host, detail, details, ':');
}

/** Names of certificate errors that depend on the clock of this machine. */
const OUT_OF_TIME: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);
const CLOCK_HINT =
  'check the clock of this machine; if it is right, the operator of the host must renew the certificate';
const TRUST_HINT =
  'certificates are always checked; if your own proxy signs them, name its authority with --ca-file FILE';

function proxyAnswered(status: number, url: string, cause?: Error): CryptodlError {
  const proxyFault = `answered ${status} to a request for ${new URL(url).host}`;
  const message = `the proxy ${proxyFault}`;
  if (status >= 500) return new CryptodlError('connect-failed', message, { cause, proxyFault });
  const hint =
    status === 407 ? 'give --proxy with user and password: http://user:password@host:port' : 'see --proxy';
  return new CryptodlError('proxy-refused', message, { cause, hint, proxyFault });
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The beginning of the body. */
  readonly head: string;
  /** Time of this machine, in epoch milliseconds. */
  readonly receivedAtMs: number;
}

/** The refusal of an exchange, read from the status and the start of the body. */
export interface Refusal {
  /** The error code, for a 4xx status without an error code of its own. */
  readonly code?: ErrorCode;
  /** The code counts for any status. */
  readonly isDecided?: boolean;
  readonly hint?: string;
  /** The reason that the exchange gives, in one line. */
  readonly message?: string;
  /** Requests from this address are refused until this time of the server's clock, in epoch milliseconds. */
  readonly untilMs?: number;
  /** The wait in milliseconds if the answer asks for none. */
  readonly leastMs?: number;
}

export type ReadRefusal = (answer: Answer) => Refusal;

/** The error for a status; undefined for the statuses 200, 206 and 404, which are answers. */
export function statusError(
  answer: Answer,
  url: string,
  readRefusal: ReadRefusal,
): CryptodlError | undefined {
  const { status, headers, head } = answer;
  if (status === 200 || status === 206 || status === 404) return undefined;
  if (status === 407) return proxyAnswered(status, url);
  const refusal = readRefusal(answer);
  const code =
    refusal.isDecided === true && refusal.code !== undefined ? refusal.code : statusCode(answer, refusal);
  const isLimit = code === 'rate-limited' || code === 'banned';
  const askedMs = isLimit ? limitMs(answer, refusal) : retryAfterMs(headers);
  const isAbsurd = (askedMs ?? 0) > LONGEST_WAIT_MS;
  const waitMs = isAbsurd ? LONGEST_WAIT_MS : askedMs;
  const location = code === 'redirect-refused' ? headers['location'] : undefined;
  const given = head === '' ? '' : `: ${refusal.message?.slice(0, 200) ?? summary(head)}`;
  const { host } = new URL(url);
  const reason =
    code === 'location-restricted' ? ': it does not serve the location of this IP address' : given;
  const clamped = isAbsurd ? ` (it asks for a longer wait than ${LONGEST_WAIT_DAYS} days)` : '';
  return hostError(code, host, `answered ${status}${reason}${clamped}`, {
    retryAfterMs: waitMs,
    location,
    hint: refusal.hint,
  });
}

/** The longer of the waits that header and body ask for, in milliseconds; if they ask for none, `leastMs`. */
function limitMs({ headers, receivedAtMs }: Answer, { untilMs = 0, leastMs }: Refusal): number | undefined {
  const serverNow = Date.parse(headers['date'] ?? '');
  // `untilMs` is compared with the `Date` header, which has whole seconds; without that header, with the clock of this machine.
  const now = Number.isNaN(serverNow) ? receivedAtMs : serverNow;
  const waits = [retryAfterMs(headers) ?? 0, untilMs - now + 1000].filter((ms) => ms > 0);
  return waits.length > 0 ? Math.max(...waits) : leastMs;
}

function statusCode({ status, head }: Answer, refusal: Refusal): ErrorCode {
  if (status === 429) return 'rate-limited';
  if (status >= 500 || status === 408) return 'http-server-error';
  // S3 answers about an object in XML. An HTML page comes from a firewall in front of it.
  if (status === 403) return /<html|<!doctype html/i.test(head) ? 'address-blocked' : 'http-forbidden';
  if (status === 416) return 'http-protocol';
  if (status === 451) return 'location-restricted';
  if (status >= 400) return refusal.code ?? 'http-refused';
  if (status >= 300 && status !== 304) return 'redirect-refused';
  return 'http-protocol';
}

/** One short line: the code of an error document of S3, the title of an HTML page, or the beginning of the body. */
function summary(head: string): string {
  const code =
    /<Code>([^<]{1,80})<\/Code>/.exec(head)?.[1] ?? /<title>([^<]{1,80})<\/title>/i.exec(head)?.[1];
  return (code ?? head).replaceAll(/\s+/g, ' ').trim().slice(0, 80);
}

/**
 * Milliseconds of `Retry-After`, which is a number of seconds (0 counts as 1) or an HTTP date relative to the server's own `Date`. A date
 * has whole seconds, so one second is added. The value is not limited here. Undefined if the header is absent, past or
 * invalid. Source: RFC 9110, section 10.2.3.
 */
export function retryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
  const value = headers['retry-after']?.trim();
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.max(1, Number(value)) * 1000;
  // Date.parse accepts almost any text with a number ("wait 35"). Dates in HTTP end in GMT.
  const until = value.endsWith('GMT') ? Date.parse(value) : Number.NaN;
  const serverNow = Date.parse(headers['date'] ?? '');
  const waitMs = until - serverNow + 1000;
  // NaN if one of the two is no date.
  return waitMs > 1000 ? waitMs : undefined;
}
