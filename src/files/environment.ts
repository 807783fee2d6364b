/** Variables of the environment that are not options: home folder, state folder, proxies. */
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { errnoOf, usage } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
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

export interface Surroundings {
  /** The folder that `~` stands for in paths. */
  readonly home: string | undefined;
  /** The folder of `$XDG_STATE_HOME`. */
  readonly stateHome: string | undefined;
  readonly proxies: Proxies;
}

export const NO_PROXIES: Proxies = { http: '', https: '', except: '', several: [] };

type Environment = Readonly<Record<string, string | undefined>>;

export function homeOf(environment: Environment): string | undefined {
  return folderOf(environment['HOME']);
}

/** The folder that a variable names. An empty or relative path is ignored, as the XDG Base Directory Specification says. */
export function folderOf(value: string | undefined): string | undefined {
  return value !== undefined && isAbsolute(value) ? value : undefined;
}

/** Variables with the address of a proxy. The name in small letters comes first, as for other programs. */
export const PROXY_VARIABLES = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'] as const;

/** Throws a usage error for a proxy variable that is not the address of a proxy. */
export function surroundingsOf(environment: Environment): Surroundings {
  // An empty variable counts as not set.
  const variableOf = (name: string): string =>
    [name.toLowerCase(), name].find((candidate) => (environment[candidate] ?? '') !== '') ?? name;
  const proxy = (name: (typeof PROXY_VARIABLES)[number]): string => {
    const variable = variableOf(name);
    const value = environment[variable] ?? '';
    const address = value === '' ? '' : readProxy(value);
    if (address === undefined)
      throw usage(`${variable} is not the address of a proxy`, `${variable}=http://127.0.0.1:3128`);
    return address;
  };
  return {
    home: homeOf(environment),
    stateHome: folderOf(environment['XDG_STATE_HOME']),
    proxies: {
      http: proxy('HTTP_PROXY') || proxy('ALL_PROXY'),
      https: proxy('HTTPS_PROXY') || proxy('ALL_PROXY'),
      except: environment[variableOf('NO_PROXY')] ?? '',
      several: [],
    },
  };
}

/**
 * The proxies of a run: `--proxy` replaces both proxies of the environment, `none` removes them, and `NO_PROXY` still applies. `@FILE` has
 * one proxy per line, and `#` begins a comment. `http` and `https` are the first of several. Throws usage errors without the addresses, because they may have
 * passwords.
 */
export function proxiesOf(given: readonly string[] | undefined, { proxies, home }: Surroundings): Proxies {
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
    throw usage(
      `--proxy: cannot read ${file} (${reasonOf(errnoOf(error))})`,
      'name a file with one proxy per line',
    );
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

/** The folder that the runs of this user on this machine share. */
export function stateFolder(
  { stateDir: given }: { readonly stateDir?: string | undefined },
  { home, stateHome }: Surroundings,
): string {
  if (given !== undefined) return absolutePath(given, home);
  return join(stateHome ?? join(home ?? homeOfUser(), '.local', 'state'), 'cryptodl');
}

/** Some services have no HOME. The temporary folder is not safe: other users could create a folder with the same name first. */
function homeOfUser(): string {
  try {
    return userInfo().homedir;
  } catch (error) {
    throw usage(
      `HOME is not set, and no home folder of this user is known (${errnoOf(error)})`,
      'give a folder that is your own with --state-dir DIR',
    );
  }
}
