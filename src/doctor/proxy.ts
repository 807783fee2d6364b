/** Which proxy an address is asked through, and whether anybody listens there. */
import { connect } from 'node:net';
import { request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { Clock } from '../model/clock.js';
import { errnoOf } from '../model/errors.js';
import { finding } from './finding.js';
import type { Finding } from './finding.js';

export interface ProxyRules {
  /** For `http:` addresses; empty is none. */
  readonly http: string;
  readonly https: string;
  /** Hosts that are asked directly, as `NO_PROXY` has them. */
  readonly except: string;
}

/** Undefined: it is asked directly. The rules of NO_PROXY are those of undici, which does it in a run. */
export function proxyOf(address: string, rules: ProxyRules): string | undefined {
  const { protocol, hostname, port } = new URL(address);
  const proxy = protocol === 'https:' ? rules.https : rules.http;
  const portOf = port === '' ? (protocol === 'https:' ? '443' : '80') : port;
  return proxy === '' || isExcept(hostname.toLowerCase(), portOf, rules.except) ? undefined : proxy;
}

function isExcept(hostname: string, port: string, except: string): boolean {
  if (except === '*') return true;
  return except.split(/[,\s]/).some((entry) => {
    const [, name = entry, only] = /^(.+):(\d+)$/.exec(entry) ?? [];
    const host = name.replace(/^\*?\./, '').toLowerCase();
    if (host === '' || (only !== undefined && only !== port)) return false;
    return hostname === host || hostname.endsWith(`.${host}`);
  });
}

export interface ProxyQuestion {
  readonly rules: ProxyRules;
  /** Everything that a run may ask. */
  readonly addresses: readonly string[];
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export async function checkProxy(question: ProxyQuestion): Promise<Finding> {
  const { rules, addresses } = question;
  const used = [...new Set(addresses.flatMap((address) => proxyOf(address, rules) ?? []))];
  if (used.length === 0) {
    const isSet = rules.http !== '' || rules.https !== '';
    return finding('proxy', 'ok', isSet ? `none: NO_PROXY ${rules.except} has all hosts` : 'none');
  }
  const reached = await Promise.all(
    used.map(async (proxy) => ({ proxy, ...(await reach(proxy, question)) })),
  );
  const bad = reached.find(({ error }) => error !== undefined);
  if (bad !== undefined) {
    return finding('proxy', 'fail', `${bad.proxy} cannot be reached (${bad.error ?? ''})`, {
      next: 'check --proxy, HTTPS_PROXY and HTTP_PROXY; --proxy none asks directly',
    });
  }
  const except = rules.except === '' ? '' : `, not for ${rules.except}`;
  const connectMs = Math.round(Math.max(...reached.map(({ ms }) => ms)));
  const found = `${used.join(' and ')} connects in ${connectMs} ms${except}`;
  return finding('proxy', 'ok', found, { figures: { connectMs } });
}

function reach(
  proxy: string,
  { clock, timeoutMs }: ProxyQuestion,
): Promise<{ ms: number; error: string | undefined }> {
  const { protocol, hostname, port } = new URL(proxy);
  const begun = clock.monotonic();
  return new Promise((resolve) => {
    const socket = connect({
      host: hostname.replaceAll(/[[\]]/g, ''),
      port: Number(port === '' ? (protocol === 'https:' ? 443 : 80) : port),
      timeout: timeoutMs,
    });
    const end = (error: string | undefined): void => {
      socket.destroy();
      resolve({ ms: clock.monotonic() - begun, error });
    };
    socket.once('connect', () => {
      end(undefined);
    });
    socket.once('timeout', () => {
      end('no answer in time');
    });
    socket.once('error', (error) => {
      end(errnoOf(error));
    });
  });
}

export interface TunnelOptions {
  readonly proxy: string;
  /** `host:port` of where it leads to. */
  readonly target: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A connection through an HTTP proxy. Rejects with what the proxy answered, or with the error of the wire. */
export function openTunnel({ proxy, target, timeoutMs, signal }: TunnelOptions): Promise<Socket> {
  const { protocol, hostname, port, username, password } = new URL(proxy);
  const isSecure = protocol === 'https:';
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const who = `Basic ${Buffer.from(credentials).toString('base64')}`;
  return new Promise((resolve, reject) => {
    const request = (isSecure ? secureRequest : plainRequest)({
      host: hostname.replaceAll(/[[\]]/g, ''),
      port: port === '' ? (isSecure ? 443 : 80) : port,
      method: 'CONNECT',
      path: target,
      headers: { host: target, ...(username === '' ? {} : { 'proxy-authorization': who }) },
      agent: false,
      timeout: timeoutMs,
      signal,
    });
    request.once('connect', ({ statusCode }, socket: Socket) => {
      if (statusCode === 200) {
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(new Error(`the proxy answered ${statusCode ?? 'nothing'}`));
    });
    request.once('timeout', () => request.destroy(new Error('the proxy does not answer in time')));
    request.once('error', reject);
    request.end();
  });
}
