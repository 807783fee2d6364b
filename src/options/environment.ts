/** What the environment says besides the options' own variables. */
import { userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { errnoOf, usage } from '../model/errors.js';
import { absolutePath } from '../text/printable.js';

export interface Proxies {
  /** For `http:` addresses; empty is none. */
  readonly http: string;
  readonly https: string;
  /** Hosts that are asked directly, as `NO_PROXY` has them. */
  readonly except: string;
}

export interface Surroundings {
  /** Folder that `~` stands for. */
  readonly home: string | undefined;
  /** `$XDG_STATE_HOME`. */
  readonly stateHome: string | undefined;
  readonly proxies: Proxies;
}

export const NO_PROXIES: Proxies = { http: '', https: '', except: '' };

type Environment = Readonly<Record<string, string | undefined>>;

/** Folder that `~` stands for. */
export function homeOf(environment: Environment): string | undefined {
  return folderOf(environment['HOME']);
}

/** The XDG Base Directory Specification: an empty variable is not set, and a relative path is ignored. */
export function folderOf(value: string | undefined): string | undefined {
  return value !== undefined && isAbsolute(value) ? value : undefined;
}

/** Throws a usage error for a proxy variable that holds no address. */
export function surroundingsOf(environment: Environment): Surroundings {
  // An empty variable is none.
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

/** `--proxy` stands for all addresses but those that `NO_PROXY` names; `none` for none at all. */
export function proxiesOf(given: string | undefined, { proxies }: Surroundings): Proxies {
  if (given === undefined) return proxies;
  return given === 'none' ? NO_PROXIES : { ...proxies, http: given, https: given };
}

export function isProxy(value: string): boolean {
  return URL.canParse(value) && ['http:', 'https:'].includes(new URL(value).protocol);
}

/** What the runs of this machine share. */
export function stateFolder(
  { stateDir: given }: { readonly stateDir?: string | undefined },
  { home, stateHome }: Surroundings,
): string {
  if (given !== undefined) return absolutePath(given, home);
  return join(stateHome ?? join(home ?? homeOfUser(), '.local', 'state'), 'cryptodl');
}

/** Without HOME, as for some services. Not the temporary folder: other users could make a folder of that name first. */
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
