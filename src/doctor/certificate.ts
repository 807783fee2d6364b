/** Whom TLS shows us, and for how long that is valid. Nothing is sent on the connection. */
import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect, rootCertificates } from 'node:tls';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { DAY_MS } from '../model/calendar.js';
import { errnoOf } from '../model/errors.js';
import { finding } from './finding.js';
import type { Finding } from './finding.js';
import { openTunnel } from './proxy.js';

export interface CertificateQuestion {
  /** `https://…` */
  readonly address: string;
  readonly proxy: string | undefined;
  /** PEM of authorities that are trusted besides the usual ones. */
  readonly authorities: string | undefined;
  readonly timeoutMs: number;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

const SOON_DAYS = 7;

export async function checkCertificate(question: CertificateQuestion): Promise<Finding> {
  const of = new URL(question.address).host;
  let socket: TLSSocket;
  try {
    socket = await handshake(question);
  } catch (error) {
    question.signal.throwIfAborted();
    return finding('tls', 'fail', handshakeText(error), { of, next: handshakeNext(error) });
  }
  const certificate = socket.getPeerCertificate();
  const protocol = socket.getProtocol() ?? 'TLS';
  // Of Node's types an Error; in fact its code.
  const refusal = socket.authorized ? undefined : String(socket.authorizationError);
  socket.destroy();
  if (refusal !== undefined) {
    const { found, next } = refusalText(refusal, certificate);
    return finding('tls', 'fail', `${found} (${refusal})`, { of, next });
  }
  const days = Math.floor((Date.parse(certificate.valid_to) - question.nowMs) / DAY_MS);
  const found = `${protocol}, certificate of ${nameOf(certificate.issuer)}, valid for another ${days} days`;
  const figures = { protocol, days };
  if (days >= SOON_DAYS) return finding('tls', 'ok', found, { of, figures });
  return finding('tls', 'warn', found, { of, figures, next: 'whoever runs that host should renew it' });
}

async function handshake(question: CertificateQuestion): Promise<TLSSocket> {
  const { address, proxy, authorities, timeoutMs, signal } = question;
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
      // What is wrong with a certificate is what we want to see.
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

/** Of the family of certificate refusals, each with what it means for people. */
function refusalText(code: string, certificate: PeerCertificate): { found: string; next: string } {
  const { valid_from: from, valid_to: to, subjectaltname = '' } = certificate;
  if (code === 'CERT_HAS_EXPIRED')
    return {
      found: `the certificate was valid until ${dayOf(to)}`,
      next: 'check the clock of this machine; if it is right, whoever runs that host must renew it',
    };
  if (code === 'CERT_NOT_YET_VALID')
    return {
      found: `the certificate is valid from ${dayOf(from)} on`,
      next: 'check the clock of this machine',
    };
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return {
      found: `the certificate is for ${subjectaltname}, not for this host`,
      next: 'check the address; somebody else may be answering in its place',
    };
  return {
    found: `the certificate is signed by ${nameOf(certificate.issuer)}, whom this machine does not trust`,
    next: 'where a proxy of your own signs certificates, give its authority with --ca-file FILE',
  };
}

/** A certificate may have no issuer's name, or be none at all. */
function nameOf(issuer: PeerCertificate['issuer'] | undefined): string {
  const names = (issuer ?? {}) as Partial<Record<string, string>>;
  return names['O'] ?? names['CN'] ?? 'somebody without a name';
}

function dayOf(text: string): string {
  const at = Date.parse(text);
  return Number.isNaN(at) ? text : new Date(at).toISOString().slice(0, 10);
}

function handshakeText(error: unknown): string {
  const code = errnoOf(error);
  if (NO_ADDRESS.has(code)) return `not tried: the host has no address (${code})`;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return `no TLS is spoken there (${code})`;
  const said = error instanceof Error ? error.message : String(error);
  return `no connection: ${said === '' ? code : said}`;
}

const NO_ADDRESS: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA']);

function handshakeNext(error: unknown): string {
  if (NO_ADDRESS.has(errnoOf(error))) return 'see its line of dns';
  if (error instanceof Error && error.message.includes('answered 407'))
    return 'give --proxy with user and password: http://user:password@host:port';
  return 'check the network, a firewall between, and the address (http: or https:)';
}
