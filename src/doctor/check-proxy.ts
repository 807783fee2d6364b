/** Finds the proxy for an address, checks whether it accepts connections, and opens tunnels through it. */
import { connect } from 'node:net';
import { request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { Clock } from '../model/clock.js';
import { errnoOf } from '../model/errors.js';
import { proxyLabels, proxyOf } from '../http/proxies/no-proxy.js';
import type { ProxyRules } from '../http/proxies/no-proxy.js';
import { checkResult } from './check-result.js';
import type { CheckResult } from './check-result.js';

export interface ProxyInput {
  readonly rules: ProxyRules & { readonly several: readonly string[] };
  /** The addresses of all hosts of a run. */
  readonly addresses: readonly string[];
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Fails when a proxy of the run accepts no connection. */
export async function checkProxy(input: ProxyInput): Promise<CheckResult> {
  const { rules, addresses } = input;
  const first = [...new Set(addresses.flatMap((address) => proxyOf(address, rules) ?? []))];
  const used = first.length > 0 && rules.several.length > 0 ? rules.several : first;
  if (used.length === 0) {
    const isSet = rules.http !== '' || rules.https !== '';
    const except = rules.except === '' ? '' : ` (NO_PROXY ${rules.except})`;
    return checkResult('proxy', 'ok', isSet ? `none for the addresses of this run${except}` : 'none');
  }
  const reached = await Promise.all(used.map(async (proxy) => ({ proxy, ...(await reach(proxy, input)) })));
  const bad = reached.find(({ error }) => error !== undefined);
  if (rules.several.length > 0) return ofSeveral(reached);
  if (bad !== undefined) {
    return checkResult('proxy', 'fail', `${bad.proxy} cannot be reached (${bad.error ?? ''})`, {
      next: 'check --proxy, HTTPS_PROXY and HTTP_PROXY; --proxy none uses no proxy',
    });
  }
  const except = rules.except === '' ? '' : `, not for ${rules.except}`;
  const connectMs = Math.round(Math.max(...reached.map(({ ms }) => ms)));
  const found = `${used.join(' and ')} connects in ${connectMs} ms${except}`;
  return checkResult('proxy', 'ok', found, { figures: { connectMs } });
}

interface Reached {
  readonly proxy: string;
  readonly ms: number;
  readonly error: string | undefined;
}

/** A run takes out the proxies that do not work, so the check fails only if none works. */
function ofSeveral(reached: readonly Reached[]): CheckResult {
  const labels = proxyLabels(reached.map(({ proxy }) => proxy));
  const texts = reached.map(({ ms, error }, at) => {
    const label = labels[at] ?? '';
    return error === undefined
      ? `${label} connects in ${Math.round(ms)} ms`
      : `${label} cannot be reached (${error})`;
  });
  const bad = reached.filter(({ error }) => error !== undefined).length;
  const status = bad === 0 ? 'ok' : bad === reached.length ? 'fail' : 'warn';
  return checkResult('proxy', status, texts.join('; '), bad === 0 ? {} : { next: 'check --proxy' });
}

function reach(
  proxy: string,
  { clock, timeoutMs }: ProxyInput,
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
  /** `host:port` at the end of the tunnel. */
  readonly target: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Opens a connection through an HTTP proxy. Rejects with the status of the proxy, or with the socket's error. */
export function openTunnel({ proxy, target, timeoutMs, signal }: TunnelOptions): Promise<Socket> {
  const { protocol, hostname, port, username, password } = new URL(proxy);
  const isSecure = protocol === 'https:';
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  return new Promise((resolve, reject) => {
    const request = (isSecure ? secureRequest : plainRequest)({
      host: hostname.replaceAll(/[[\]]/g, ''),
      port: port === '' ? (isSecure ? 443 : 80) : port,
      method: 'CONNECT',
      path: target,
      headers: { host: target, ...(username === '' ? {} : { 'proxy-authorization': authorization }) },
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
