/** The files of `--target`: checked before the work, staged beside their places, and renamed when they are complete. */
import { createHash, randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { lstat, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../files/disk.js';
import { publish } from '../lake/publish.js';
import { CryptodlError, errnoOf, usage } from '../model/errors.js';
import type { Options } from '../options/flags.js';
import { refuseInLake } from '../select/refuse-in-lake.js';
import { isMirror } from '../text/mirror-roots.js';
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
    );
  }
  if (target !== undefined) return absolutePath(target, home);
  throw usage(
    `--as ${as} writes ${as === 'parquet' ? 'a file' : 'a folder of files'}, and needs --target`,
    `--target ${EXAMPLES[as]}`,
  );
}

/** Throws a usage error for a file in --out, which names the lake, if the file can only be meant for the output. */
export function refuseOutputFile(out: string, root: string): void {
  if (isMirror(root) || !/\.(csv|json|jsonl|ndjson|txt|parquet)$/i.test(out)) return;
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() === true) return;
  const isParquet = /\.parquet$/i.test(out);
  throw usage(
    `--out ${shownPath(out)}: --out names the folder of the lake, and not the file of the output`,
    isParquet ? `--as parquet --target ${out} writes a file` : `> ${out} writes the output to this file`,
  );
}

/** Throws a usage error for a place where the files cannot be written, and for one in the lake, before anything is read. */
export async function refuseTarget(
  path: string,
  { as, lake, venue }: { readonly as: Options['as']; readonly lake: string; readonly venue: string },
): Promise<void> {
  await refuseInLake(path, lake, venue);
  // A link to a folder is a folder.
  const facts = await factsOf(path, stat);
  if (facts === undefined) return;
  if (as === 'freqtrade' && !facts.isDirectory())
    throw usage(
      `--target ${shownPath(path)} is a file, and --as freqtrade writes a folder of files`,
      'name another folder',
    );
  if (as === 'parquet' && facts.isDirectory())
    throw usage(`--target ${shownPath(path)} is a folder, and --as parquet writes a file`, 'name a file');
}

/** Which files may be replaced. */
export interface Replacement {
  readonly force: boolean;
  /** Whether the verb has written the file. */
  readonly isOwn: (path: string) => Promise<boolean>;
  /** Such a file, for messages. */
  readonly what: string;
}

/** Throws a usage error for a file that is not to be replaced. */
export async function refuseForeign(path: string, { force, isOwn, what }: Replacement): Promise<void> {
  const facts = await factsOf(path);
  if (facts === undefined) return;
  const refuse = (problem: string): Error =>
    usage(`--target: ${shownPath(path)} ${problem}`, 'choose another --target, or add --force');
  if (!facts.isFile())
    throw usage(
      `--target: ${shownPath(path)} is ${facts.isSymbolicLink() ? 'a link' : 'not a file'}, and is not replaced`,
      'choose another --target',
    );
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

async function factsOf(
  path: string,
  read: (path: string) => Promise<Stats> = lstat,
): Promise<Stats | undefined> {
  try {
    return await read(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw usage(
      `--target ${shownPath(path)} cannot be used (${reasonOf(errnoOf(error))})`,
      'choose another --target',
    );
  }
}

/**
 * Calls `write` with the path of an empty staged file, and renames the file. After an error, the place is as before. Throws a usage error
 * for a file that is not to be replaced, also if it appeared while `write` worked.
 */
export async function writeTarget(
  path: string,
  replacement: Replacement,
  write: (staged: string) => Promise<void>,
): Promise<void> {
  const staged = join(dirname(path), stagedName(basename(path), process.pid, randomBytes(4).toString('hex')));
  try {
    await makeFolder(dirname(path));
    await removeLeftovers(path);
    // The system gives the reason of a failure; DuckDB gives only a text.
    await writeFile(staged, '', { flag: 'wx' });
    await write(staged);
    await refuseForeign(path, replacement);
    await publish(staged, path);
  } catch (error) {
    await rm(staged, { force: true }).catch(() => undefined);
    const isOfDuckDb = error instanceof CryptodlError && error.code === 'disk';
    if (!isOfDuckDb && (error instanceof CryptodlError || errnoOf(error) === 'unknown error')) throw error;
    const reason = isOfDuckDb ? error.message : reasonOf(errnoOf(error));
    throw new CryptodlError('disk', `--target ${shownPath(path)} cannot be written (${reason})`, {
      cause: error,
      hint: 'choose another place with --target',
    });
  }
}

export function writeText(path: string, replacement: Replacement, text: string): Promise<void> {
  return writeTarget(path, replacement, (staged) => writeFile(staged, text));
}

/** `.universe.parquet.1234-0a1b2c3d-4e5f60718293.partial`: process, random digits, and the digest of both with the name and the machine. */
function stagedName(name: string, pid: number | string, random: string): string {
  const proof = createHash('sha256').update(JSON.stringify([hostname(), name, String(pid), random]));
  return `.${name}.${pid}-${random}-${proof.digest('hex').slice(0, 12)}.partial`;
}

/** Removes the staged files of this path that processes of this machine left behind, which have ended. */
async function removeLeftovers(path: string): Promise<void> {
  const name = basename(path);
  for (const found of await readdir(dirname(path))) {
    const [, pid = '', random = ''] = /\.(\d+)-([0-9a-f]{8})-[0-9a-f]{12}\.partial$/.exec(found) ?? [];
    if (pid === '' || found !== stagedName(name, pid, random) || isAlive(Number(pid))) continue;
    await rm(join(dirname(path), found), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoOf(error) !== 'ESRCH';
  }
}
