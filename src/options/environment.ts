/** Variables of the environment that are not options: home folder, state folder, proxies. */
import { userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { errnoOf, usage } from '../model/errors.js';
import { absolutePath } from '../text/printable.js';

export interface Proxies {
  /** The proxy for `http:` addresses; empty for none. */
  readonly http: string;
  readonly https: string;
  /** Hosts without a proxy, in the syntax of `NO_PROXY`. */
  readonly except: string;
}

/** The parts of the environment that a run needs besides its options. */
export interface Surroundings {
  /** The folder that `~` stands for in paths. */
  readonly home: string | undefined;
  /** The folder of `$XDG_STATE_HOME`. */
  readonly stateHome: string | undefined;
  readonly proxies: Proxies;
}

export const NO_PROXIES: Proxies = { http: '', https: '', except: '' };

type Environment = Readonly<Record<string, string | undefined>>;

/** The folder that `~` stands for in paths. */
export function homeOf(environment: Environment): string | undefined {
  return folderOf(environment['HOME']);
}

/** The folder that a variable names. An empty or relative path is ignored, as the XDG Base Directory Specification says. */
export function folderOf(value: string | undefined): string | undefined {
  return value !== undefined && isAbsolute(value) ? value : undefined;
}

/** Throws a usage error for a proxy variable that is not an http(s) address. */
export function surroundingsOf(environment: Environment): Surroundings {
  // An empty variable counts as not set.
  const variableOf = (name: string): string =>
    [name.toLowerCase(), name].find((candidate) => (environment[candidate] ?? '') !== '') ?? name;
  const proxy = (name: string): string => {
    const variable = variableOf(name);
    const value = environment[variable] ?? '';
    if (value !== '' && !isProxy(value))
      throw usage(`${variable} is not the address of a proxy`, `${variable}=http://127.0.0.1:3128`);
    return value;
  };
  return {
    home: homeOf(environment),
    stateHome: folderOf(environment['XDG_STATE_HOME']),
    proxies: {
      http: proxy('HTTP_PROXY'),
      https: proxy('HTTPS_PROXY'),
      except: environment[variableOf('NO_PROXY')] ?? '',
    },
  };
}

/** The proxies of a run: `--proxy` replaces both proxies of the environment, `none` removes them, and `NO_PROXY` still applies. */
export function proxiesOf(given: string | undefined, { proxies }: Surroundings): Proxies {
  if (given === undefined) return proxies;
  return given === 'none' ? NO_PROXIES : { ...proxies, http: given, https: given };
}

/** Whether the text is an http(s) address. */
export function isProxy(value: string): boolean {
  return URL.canParse(value) && ['http:', 'https:'].includes(new URL(value).protocol);
}

/** The folder that the runs of this machine share. */
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
