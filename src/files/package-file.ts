/** The address of a file of this package, for example of `config/`. The compiled files and the bundle lie two folders below the package. */
export function packageFile(path: string): URL {
  return new URL(`../../${path}`, import.meta.url);
}
