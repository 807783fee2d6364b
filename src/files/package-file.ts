/** The files of this package. */

/** The address of a file, for example of `config/`. This file and the bundle lie two folders below the package. */
export const packageFile = (path: string): URL => new URL(`../../${path}`, import.meta.url);
