import { request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import type { Socket } from 'node:net';

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
