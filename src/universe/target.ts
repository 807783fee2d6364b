/** The files of `--target`: checked before the work, staged beside their places, and renamed when they are complete. */
import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { lstat, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../files/disk.js';
import { publish } from '../lake/publish.js';
import { CryptodlError, errnoOf, usage } from '../model/errors.js';
import type { Options } from '../options/flags.js';
import { reasonOf } from '../text/path-faults.js';
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
      {
        flags: { target: null },
      },
    );
  }
  if (target !== undefined) return absolutePath(target, home);
  throw usage(
    `--as ${as} writes ${as === 'parquet' ? 'a file' : 'a folder of files'}, and needs --target`,
    `--target ${EXAMPLES[as]}`,
    { flags: { target: EXAMPLES[as] } },
  );
}

/** Throws a usage error for a place where the files cannot be written, before anything is read. */
export async function refuseTarget(path: string, as: Options['as']): Promise<void> {
  const facts = await factsOf(path);
  if (facts === undefined) return;
  if (as === 'freqtrade' && !facts.isDirectory())
    throw usage(
      `--target ${shownPath(path)} is a file, and --as freqtrade writes a folder of files`,
      'name a folder',
      {
        flags: { target: dirname(path) },
      },
    );
  if (as === 'parquet' && facts.isDirectory())
    throw usage(`--target ${shownPath(path)} is a folder, and --as parquet writes a file`, 'name a file', {
      flags: { target: join(path, EXAMPLES.parquet) },
    });
}

/** Throws a usage error for a file that is not to be replaced. `isOwn`: whether the verb has written the file. */
export async function refuseForeign(
  path: string,
  {
    force,
    isOwn,
    what,
  }: { readonly force: boolean; readonly isOwn: (path: string) => Promise<boolean>; readonly what: string },
): Promise<void> {
  const facts = await factsOf(path);
  if (facts === undefined) return;
  const refuse = (problem: string): Error =>
    usage(`--target: ${shownPath(path)} ${problem}`, 'choose another --target, or add --force');
  if (!facts.isFile())
    throw usage(`--target: ${shownPath(path)} is neither a file nor free`, 'choose another --target');
  if (!force && !(await isOwn(path))) throw refuse(`is not ${what}, and is not replaced`);
}

/** Whether a file is a list of pairs of this verb. */
export async function isOwnPairlist(path: string): Promise<boolean> {
  try {
    return isPairlist(await readFile(path, 'utf8'));
  } catch {
    return false;
  }
}

async function factsOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw usage(
      `--target ${shownPath(path)} cannot be used (${reasonOf(errnoOf(error))})`,
      'choose another --target',
    );
  }
}

/** Calls `write` with the path of a staged file, and renames the file. After an error, the place is as before. */
export async function writeTarget(path: string, write: (staged: string) => Promise<void>): Promise<void> {
  const staged = join(dirname(path), `.${basename(path)}.${randomBytes(4).toString('hex')}.partial`);
  try {
    await makeFolder(dirname(path));
    await write(staged);
    await publish(staged, path);
  } catch (error) {
    await rm(staged, { force: true }).catch(() => undefined);
    if (error instanceof CryptodlError || errnoOf(error) === '') throw error;
    throw new CryptodlError(
      'disk',
      `--target ${shownPath(path)} cannot be written (${reasonOf(errnoOf(error))})`,
      {
        cause: error,
        hint: 'choose another place with --target',
      },
    );
  }
}

export function writeText(path: string, text: string): Promise<void> {
  return writeTarget(path, (staged) => writeFile(staged, text, { flag: 'wx' }));
}
