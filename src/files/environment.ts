/** Variables of the environment that are not options: home folder, state folder, proxies. */
import { userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { errnoOf, usage } from '../model/errors.js';
import { absolutePath } from '../text/printable.js';
import { readProxy, type Proxies, type PROXY_VARIABLES } from './proxies.js';

export type Surroundings = Readonly<ReturnType<typeof surroundingsOf>>;

type Environment = Readonly<Record<string, string | undefined>>;

export const homeOf = (environment: Environment): string | undefined => folderOf(environment['HOME']);

/** The folder that a variable names. An empty or relative path is ignored, as the XDG Base Directory Specification says. */
export function folderOf(value: string | undefined): string | undefined {
  return value !== undefined && isAbsolute(value) ? value : undefined;
}

/** `home`: the folder that `~` stands for in paths. Throws a usage error for a proxy variable that is not the address of a proxy. */
export function surroundingsOf(environment: Environment) {
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
  const proxies: Proxies = {
    http: proxy('HTTP_PROXY') || proxy('ALL_PROXY'),
    https: proxy('HTTPS_PROXY') || proxy('ALL_PROXY'),
    except: environment[variableOf('NO_PROXY')] ?? '',
    several: [],
  };
  return { home: homeOf(environment), stateHome: folderOf(environment['XDG_STATE_HOME']), proxies };
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
