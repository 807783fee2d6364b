/** The value of `--target`, checked before the work. */
import { readFile, stat } from 'node:fs/promises';
import { usage } from '../model/errors.js';
import type { Options } from '../options/flags.js';
import { refuseInLake } from '../select/refuse-in-lake.js';
import { absolutePath, shownPath } from '../text/printable.js';
import { isPairlist } from './pairlist.js';

const EXAMPLES = { parquet: 'universe.parquet', freqtrade: 'pairlists' } as const;

/** The absolute path of --target; undefined for a form that is printed. Throws a usage error for a missing or an idle --target. */
export function targetOf(
  { as, target }: Pick<Options, 'as' | 'target'>,
  home: string | undefined,
): string | undefined {
  if (as === 'csv' || as === 'list') {
    if (target === undefined) return undefined;
    throw usage(
      `--target changes nothing with --as ${as}, which is printed`,
      `${as}: > ${target}; or add --as parquet or --as freqtrade`,
    );
  }
  if (target !== undefined) return absolutePath(target, home);
  throw usage(
    `--as ${as} writes ${as === 'parquet' ? 'a file' : 'a folder of files'}, and needs --target`,
    `--target ${EXAMPLES[as]}`,
  );
}

/** Throws a usage error for a place where the files cannot be written, and for one in the lake, before anything is read. */
export async function refuseTarget(
  path: string,
  { as, lake, venue }: { readonly as: Options['as']; readonly lake: string; readonly venue: string },
): Promise<void> {
  await refuseInLake(path, lake, venue);
  // A link to a folder is a folder. A place that cannot be used is refused when the file is written.
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory();
  if (as === 'freqtrade' && isFolder === false)
    throw usage(
      `--target ${shownPath(path)} is a file, and --as freqtrade writes a folder of files`,
      'name another folder',
    );
  if (as === 'parquet' && isFolder === true)
    throw usage(`--target ${shownPath(path)} is a folder, and --as parquet writes a file`, 'name a file');
}

/** Whether a file is a list of pairs of this verb. */
export async function isOwnPairlist(path: string): Promise<boolean> {
  try {
    return isPairlist(await readFile(path, 'utf8'));
  } catch {
    return false;
  }
}
