/** The built program, for tests that start it: `npm test` builds before it tests, a single file needs `npm run build` first. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Written last by `npm run build`. */
const LAST_BUILT = join(ROOT, 'dist/cryptodl.1');

/** Address of a file of `dist`. Throws when a file of `src` was changed after the last build. */
export function built(file: string): string {
  refuseOldBuild();
  return new URL(`../../dist/${file}`, import.meta.url).href;
}

/** Throws when a file of `src` was changed after the last build. */
export function refuseOldBuild(): void {
  // StrykerJS changes files of src only.
  if (process.env['CRYPTODL_TEST_MUTANTS'] !== undefined) return;
  const builtMs = statSync(LAST_BUILT, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const newer = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .find((path) => statSync(join(ROOT, 'src', path)).mtimeMs > builtMs);
  if (newer !== undefined) throw new Error(`dist is older than src/${newer}: run npm run build`);
}
