/** Compares files of the lake with the digests of their last commits, before their rows leave the lake. */
import { isFileError } from '../../convert/load-duckdb.js';
import { fileFacts } from '../../files/file-facts.js';
import { memoized } from '../../model/by-name.js';
import { CryptodlError, errnoOf } from '../../model/errors.js';
import { mapOrdered } from '../../model/in-order.js';
import { listText } from '../../model/units.js';
import { reasonOf } from '../../text/path-faults.js';
import { lakeFlag, shownPath } from '../../text/printable.js';
import type { LakeFile, LeftOut } from './lake-file.js';

/** The commands that fetch the objects of damaged or missing files again. `root`: the lake. */
const fetchAgainText = (root: string): string =>
  `cryptodl verify --fix${lakeFlag(root)}, then cryptodl repair${lakeFlag(root)}, fetches its objects again`;

/** Why a series as a whole cannot be read, with the next step; undefined if all committed files are there, with their size, and hold each day once. */
export function faultOfSeries(root: string, { unsound, overlapping }: LeftOut): string | undefined {
  if (unsound.length > 0)
    return `${listText(unsound.map(shownPath), 1)} is missing or damaged; ${fetchAgainText(root)}`;
  const [both] = overlapping;
  return both === undefined
    ? undefined
    : `${shownPath(both)} has some days that Parquet files have too; keep one format of the series`;
}

/** The rows of a file of the lake must not be read. The message has the next step. */
export class UnreadableFile extends CryptodlError {
  constructor(text: string) {
    super('disk', text);
  }
}

/** The error of a query whose files of the lake, or rows in them, cannot be read; undefined for other errors. `root`: the lake. */
export function unreadableFile(error: unknown, root: string): UnreadableFile | undefined {
  if (error instanceof UnreadableFile) return error;
  if (!isFileError(error)) return undefined;
  const [why = ''] = error instanceof Error ? error.message.split('\n') : [];
  return new UnreadableFile(`${why}; cryptodl verify --deep${lakeFlag(root)} finds damaged files`);
}

const AT_ONCE = 16;

/** Errors of one file. Others, for example too many open files, concern the run. */
const FILE_ERRORS: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EIO']);

/** Returns the check of one run, which reads each file once. It rejects with `UnreadableFile` if a file is missing, has other content or cannot be read, and when interrupted. */
export function createDigestCheck(
  root: string,
  signal: AbortSignal,
): (files: readonly LakeFile[]) => Promise<void> {
  const once = memoized<string>();
  const faultOf = async ({ path, sha256 }: LakeFile): Promise<string | undefined> => {
    const name = shownPath(path);
    const damaged = `${name} does not have the content that was committed; ${fetchAgainText(root)}`;
    try {
      const found = await once(`${path}\n${sha256}`, async () => (await fileFacts(path, signal)).sha256);
      return found === sha256 ? undefined : damaged;
    } catch (error) {
      // A symbolic link, or an entry that is not a file.
      if (error instanceof CryptodlError && error.code === 'disk')
        return `${name} cannot be read: ${error.message}`;
      const code = errnoOf(error);
      if (!FILE_ERRORS.has(code)) throw error;
      return code === 'ENOENT' ? damaged : `${name} cannot be read: ${reasonOf(error)}`;
    }
  };
  return async (files) => {
    for await (const fault of mapOrdered(files, AT_ONCE, faultOf))
      if (fault !== undefined) throw new UnreadableFile(fault);
  };
}
