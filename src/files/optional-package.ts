/** Loads packages that only some commands need, and that users install themselves. */
import { CryptodlError, errnoOf } from '../model/errors.js';

/** Rejects with `package-missing` if one of the packages is not installed. `load`: imports them. `what`: what needs them. */
export async function loadOptional<T>(
  what: string,
  packages: readonly string[],
  load: () => Promise<T>,
): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (errnoOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    const [needed, missing] = packages.length === 1 ? ['the package', 'is'] : ['the packages', 'are'];
    throw new CryptodlError(
      'package-missing',
      `${what} needs ${needed} ${packages.join(' and ')}, which ${missing} not installed`,
      { hint: `npm install ${packages.join(' ')} (with -g if cryptodl was installed with -g)` },
    );
  }
}
