/** Turns exceptions of undici and sockets, and HTTP statuses, into typed errors. */
import { CryptodlError, errnoOf, NO_CONNECTION, type ErrorCode } from '../../model/errors.js';
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
  if (error instanceof TunnelError)
    return new CryptodlError(error.kind, error.message, {
      cause: error,
      hint: error.hint,
      proxyFault: error.proxyFault,
    });
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
  return new CryptodlError(kind, `${new URL(url).host}: ${detail}`, {
    cause: error,
    ...(kind === 'tls-failed' ? { hint: OUT_OF_TIME.has(code) ? CLOCK_HINT : TRUST_HINT } : {}),
  });
}

/** Names of certificate errors that depend on the clock of this machine. */
const OUT_OF_TIME: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);
const CLOCK_HINT =
  'check the clock of this machine; if it is right, the operator of the host must renew the certificate';
const TRUST_HINT =
  'certificates are always checked; if your own proxy signs them, name its authority with --ca-file FILE';

export function proxyAnswered(status: number, url: string, cause?: Error): CryptodlError {
  const proxyFault = `answered ${status} to a request for ${new URL(url).host}`;
  const message = `the proxy ${proxyFault}`;
  if (status >= 500) return new CryptodlError('connect-failed', message, { cause, proxyFault });
  const hint =
    status === 407 ? 'give --proxy with user and password: http://user:password@host:port' : 'see --proxy';
  return new CryptodlError('proxy-refused', message, { cause, hint, proxyFault });
}
