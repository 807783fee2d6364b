/** Checks one file of a series against the manifest lines that name it. */
import { basename, dirname } from 'node:path';
import { errnoOf } from '../model/errors.js';
import { entryAt, firstSymlink, isIrregular } from '../lake/path-checks.js';
import type { HeldObjects } from '../lake/held-objects.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { fileFacts, fileSize } from '../lake/publish.js';
import type { FileFacts } from '../lake/publish.js';
import type { Series } from '../model/task.js';
import { NOT_REGULAR } from './lake-finding.js';

/** The rows of a file and the manifest lines that describe them. */
export interface RowsOf {
  readonly series: Series;
  readonly path: string;
  readonly lines: readonly ObjectLine[];
}

/** Reads all rows of a Parquet or CSV file. Resolves with one text for each fault. */
export type RowReader = (file: RowsOf) => Promise<readonly string[]>;

/** Errno values with which the file system refuses to read a file. */
export const UNREADABLE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EIO']);

export interface FileCheck {
  readonly kind: 'missing' | 'damaged' | 'unreadable';
  readonly text: string;
}

/**
 * Compares a file with its last commit: size, digest, and the row counts of its manifest lines; with `readRows` also the rows. Of a zip,
 * only size and digest. `lines` are the manifest lines of the objects in the file. Resolves with undefined when nothing differs.
 */
export async function checkFile(
  readRows: RowReader | undefined,
  { series, path, lines }: RowsOf,
  held: HeldObjects,
): Promise<FileCheck | undefined> {
  const committed = held.lastOfFile(lines[0]?.file ?? '');
  if (committed === undefined) return undefined;
  try {
    const size = await fileSize(path);
    if (size === undefined) return await missing(path);
    const text = differenceOf(await fileFacts(path), committed) ?? missingLine(committed, lines);
    if (text !== undefined) return { kind: 'damaged', text };
    if (readRows === undefined || committed.settings.format === 'zip') return undefined;
    const wrong = await readRows({ series, path, lines });
    return wrong.length === 0 ? undefined : { kind: 'damaged', text: wrong.join('; ') };
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return { kind: 'missing', text: 'the file does not exist' };
    if (!UNREADABLE.has(errno)) throw error;
    return { kind: 'unreadable', text: `the file cannot be read (${errno})` };
  }
}

async function missing(path: string): Promise<FileCheck> {
  const isLink = firstSymlink(dirname(path), basename(path)) !== undefined;
  if (isLink)
    return {
      kind: 'missing',
      text: 'a symbolic link stands in place of the file; links are not followed',
    };
  // Only the user can move it away: repair writes no file in its place.
  if (isIrregular(await entryAt(path))) return { kind: 'unreadable', text: `${NOT_REGULAR}: move it away` };
  return { kind: 'missing', text: 'the file does not exist' };
}

function differenceOf(facts: FileFacts, committed: ObjectLine): string | undefined {
  if (facts.bytes !== committed.fileBytes)
    return `the file has ${facts.bytes} bytes, the committed file had ${committed.fileBytes}`;
  if (facts.sha256 !== committed.fileSha256)
    return `the SHA-256 of the file is ${facts.sha256.slice(0, 12)}…, that of the committed file was ${committed.fileSha256.slice(0, 12)}…`;
  return undefined;
}

function missingLine({ fileRows }: ObjectLine, lines: readonly ObjectLine[]): string | undefined {
  const rows = lines.reduce((total, line) => total + (line.rows ?? 0), 0);
  return fileRows === undefined || rows === fileRows
    ? undefined
    : `the file has ${fileRows} rows, its manifest lines name ${rows}: a manifest line is missing`;
}
