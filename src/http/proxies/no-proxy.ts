/** The proxy of an address, and names of proxies without their passwords. */

import type { Proxies } from '../../files/proxies.js';

export type ProxyRules = Omit<Proxies, 'several'>;

/** Undefined: no proxy. NO_PROXY has the syntax of undici. */
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

/** Host and port of each proxy. Proxies of one host that differ in user or password get a number. */
export function proxyLabels(addresses: readonly string[]): string[] {
  const seen = new Map<string, number>();
  return addresses.map((address) => {
    const { host } = new URL(address);
    const number = (seen.get(host) ?? 0) + 1;
    seen.set(host, number);
    return number === 1 ? host : `${host}#${number}`;
  });
}
