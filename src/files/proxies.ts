/** The proxies of a run. */
import { readFileSync } from 'node:fs';
import { usage } from '../model/errors.js';
import { unreadable } from '../text/path-faults.js';
import { absolutePath } from '../text/printable.js';

export interface Proxies {
  /** The proxy for `http:` addresses; empty for none. */
  readonly http: string;
  readonly https: string;
  /** Hosts without a proxy, in the syntax of `NO_PROXY`. */
  readonly except: string;
  /** The proxies that share the requests, if there is more than one; otherwise empty. */
  readonly several: readonly string[];
}

export const NO_PROXIES: Proxies = { http: '', https: '', except: '', several: [] };

/** Variables with the address of a proxy. The name in small letters comes first, as for other programs. */
export const PROXY_VARIABLES = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'] as const;

/**
 * The proxies of a run: `--proxy` replaces both proxies of the environment, `none` removes them, and `NO_PROXY` still applies. `@FILE` has
 * one proxy per line, and `#` begins a comment. `http` and `https` are the first of several. Throws usage errors without the addresses, because they may have
 * passwords.
 */
export function proxiesOf(
  given: readonly string[] | undefined,
  { proxies, home }: { readonly proxies: Proxies; readonly home: string | undefined },
): Proxies {
  if (given === undefined) return proxies;
  const all = [
    ...new Set(given.flatMap((word) => (word.startsWith('@') ? proxiesIn(word.slice(1), home) : word))),
  ];
  const [first = ''] = all;
  if (first === 'none' && all.length === 1) return NO_PROXIES;
  if (all.includes('none'))
    throw usage('--proxy: none stands beside the address of a proxy', 'leave one of them out');
  return { ...proxies, http: first, https: first, several: all.length > 1 ? all : [] };
}

function proxiesIn(file: string, home: string | undefined): string[] {
  let text: string;
  try {
    text = readFileSync(absolutePath(file, home), 'utf8');
  } catch (error) {
    throw unreadable('--proxy', file, error, 'name a file with one proxy per line');
  }
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.replace(/(?:^|\s)#.*/s, '').trim())
    .filter((line) => line !== '');
  const found = lines.map(readProxy).filter((address) => address !== undefined);
  if (found.length > 0 && found.length === lines.length) return found;
  throw usage(
    `--proxy: ${file} is not a list of proxies`,
    'write one address per line: http://127.0.0.1:3128',
  );
}

export const HOST_AND_PORT = /^[\w.-]+:\d{1,5}$/;
/** `socks5`: this machine resolves names; `socks5h`, and `socks` of desktops: the proxy does. */
const PROXY_SCHEMES = ['http:', 'https:', 'socks5:', 'socks5h:', 'socks:'];
/** The bytes of a user or a password in SOCKS5. */
const LONGEST_LOGIN = 255;

/** The address of a proxy; `host:port` is http. Undefined for any other text. */
export function readProxy(text: string): string | undefined {
  const value = HOST_AND_PORT.test(text) ? `http://${text}` : text;
  if (!URL.canParse(value)) return undefined;
  const { protocol, hostname, pathname, search, hash, username, password } = new URL(value);
  const isWhole = hostname !== '' && /^\/?$/.test(pathname) && search + hash === '';
  const isLogin = [username, password].every((part) => part.length <= LONGEST_LOGIN && isDecodable(part));
  return PROXY_SCHEMES.includes(protocol) && isWhole && isLogin ? value : undefined;
}

function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}

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
