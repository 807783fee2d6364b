/** Checks the TLS certificate of a host: whether it is trusted and how long it is valid. Sends no HTTP request to the host. */
import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect, rootCertificates } from 'node:tls';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { DAY_MS } from '../model/calendar.js';
import { errnoOf } from '../model/errors.js';
import { checkResult } from './check-result.js';
import type { CheckResult } from './check-result.js';
import { openTunnel } from './check-proxy.js';

export interface CertificateInput {
  /** `https://…` */
  readonly address: string;
  readonly proxy: string | undefined;
  /** PEM of additional certificate authorities. */
  readonly authorities: string | undefined;
  readonly timeoutMs: number;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

const SOON_DAYS = 7;

/** Fails when the handshake fails or the certificate is not trusted; warns when it expires within 7 days. */
export async function checkCertificate(input: CertificateInput): Promise<CheckResult> {
  const of = new URL(input.address).host;
  let socket: TLSSocket;
  try {
    socket = await handshake(input);
  } catch (error) {
    input.signal.throwIfAborted();
    return checkResult('tls', 'fail', handshakeText(error), { of, next: handshakeNext(error) });
  }
  const certificate = socket.getPeerCertificate();
  const protocol = socket.getProtocol() ?? 'TLS';
  // Node's types declare an Error, but the value is its code.
  const refusal = socket.authorized ? undefined : String(socket.authorizationError);
  socket.destroy();
  if (refusal !== undefined) {
    const { found, next } = refusalText(refusal, certificate);
    return checkResult('tls', 'fail', `${found} (${refusal})`, { of, next });
  }
  const days = Math.floor((Date.parse(certificate.valid_to) - input.nowMs) / DAY_MS);
  const found = `${protocol}, certificate of ${nameOf(certificate.issuer)}, valid for another ${days} days`;
  const figures = { protocol, days };
  if (days >= SOON_DAYS) return checkResult('tls', 'ok', found, { of, figures });
  return checkResult('tls', 'warn', found, {
    of,
    figures,
    next: 'the operator of the host must renew the certificate',
  });
}

async function handshake(input: CertificateInput): Promise<TLSSocket> {
  const { address, proxy, authorities, timeoutMs, signal } = input;
  const url = new URL(address);
  const host = url.hostname.replaceAll(/[[\]]/g, '');
  const port = Number(url.port === '' ? 443 : url.port);
  const target = `${url.hostname}:${port}`;
  const tunnel = proxy === undefined ? undefined : await openTunnel({ proxy, target, timeoutMs, signal });
  return new Promise((resolve, reject) => {
    const socket = connect({
      ...place(host, port, tunnel),
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(authorities === undefined ? {} : { ca: [...rootCertificates, authorities] }),
      // The check describes invalid certificates too, so they must not end the handshake.
      rejectUnauthorized: false,
    });
    const stop = (): void => {
      socket.destroy(new Error('interrupted'));
    };
    signal.addEventListener('abort', stop, { once: true });
    socket.once('close', () => {
      signal.removeEventListener('abort', stop);
    });
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('no handshake in time')));
    socket.once('secureConnect', () => {
      resolve(socket);
    });
    socket.on('error', reject);
  });
}

function place(host: string, port: number, tunnel: Socket | undefined): object {
  return tunnel === undefined ? { host, port } : { host, socket: tunnel };
}

/** The meaning of a certificate error of Node, and the next step. */
function refusalText(code: string, certificate: PeerCertificate): { found: string; next: string } {
  const { valid_from: from, valid_to: to, subjectaltname = '' } = certificate;
  if (code === 'CERT_HAS_EXPIRED')
    return {
      found: `the certificate was valid until ${dayOf(to)}`,
      next: 'check the clock of this machine; if it is right, the operator of the host must renew the certificate',
    };
  if (code === 'CERT_NOT_YET_VALID')
    return {
      found: `the certificate is not valid before ${dayOf(from)}`,
      next: 'check the clock of this machine',
    };
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return {
      found: `the certificate is for ${subjectaltname}, not for this host`,
      next: 'check the address; another server may answer in place of the host',
    };
  return {
    found: `the certificate is signed by ${nameOf(certificate.issuer)}, which this machine does not trust`,
    next: 'if a proxy of your network signs certificates, name its certificate authority with --ca-file FILE',
  };
}

/** The organization or the common name. A certificate may have neither name, or no issuer. */
function nameOf(issuer: PeerCertificate['issuer'] | undefined): string {
  const names = (issuer ?? {}) as Partial<Record<string, string>>;
  return names['O'] ?? names['CN'] ?? 'an issuer without a name';
}

function dayOf(text: string): string {
  const at = Date.parse(text);
  return Number.isNaN(at) ? text : new Date(at).toISOString().slice(0, 10);
}

function handshakeText(error: unknown): string {
  const code = errnoOf(error);
  if (NO_ADDRESS.has(code)) return `no connection: a name has no address (${code})`;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return `the server does not speak TLS (${code})`;
  const message = error instanceof Error ? error.message : String(error);
  return `no connection: ${message === '' ? code : message}`;
}

const NO_ADDRESS: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA']);

function handshakeNext(error: unknown): string {
  if (NO_ADDRESS.has(errnoOf(error))) return 'see the lines "dns" and "proxy"';
  if (error instanceof Error && error.message.includes('answered 407'))
    return 'add user and password to --proxy: http://user:password@host:port';
  return 'check the network, firewalls, and the address (http: or https:)';
}
