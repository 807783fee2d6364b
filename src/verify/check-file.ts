/** Checks one file of a series against the manifest lines that name it. */
import { basename, dirname } from 'node:path';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { entryAt, firstSymlink, irregularText } from '../lake/path-checks.js';
import type { HeldObjects } from '../lake/held-objects.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { fileFacts, fileSize } from '../lake/publish.js';
import type { FileFacts } from '../lake/publish.js';
import type { Format, Series } from '../model/task.js';
import type { Footer } from '../write/footer.js';

/** Reads Parquet footers and, with `--deep`, all rows of a file. */
export interface FileReader {
  /** Rejects when the footer cannot be read. */
  readonly footer: (path: string) => Promise<Footer>;
  /** Resolves with one text for each fault of the rows. */
  readonly rows?: (file: RowsOf) => Promise<readonly string[]>;
}

export interface RowsOf {
  readonly series: Series;
  readonly path: string;
  readonly lines: readonly ObjectLine[];
  readonly columns: ReadonlySet<string> | undefined;
}

/** Errno values with which the file system refuses to read a file. */
export const UNREADABLE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EIO']);

export interface FileCheck {
  readonly kind: 'missing' | 'damaged' | 'unreadable';
  readonly text: string;
}

/**
 * Compares a file with its last commit: size, digest, row count and, with `--deep`, the rows. Of a zip, only size and digest.
 * `lines` are the manifest lines of the objects in the file. Resolves with undefined when nothing differs.
 */
export async function checkFile(
  reader: FileReader,
  series: Series,
  {
    path,
    format,
    lines,
    held,
  }: { path: string; format: Format; lines: readonly ObjectLine[]; held: HeldObjects },
): Promise<FileCheck | undefined> {
  const committed = held.lastOfFile(lines[0]?.file ?? '');
  if (committed === undefined) return undefined;
  try {
    const size = await fileSize(path);
    if (size === undefined) return await missing(path);
    const facts = await fileFacts(path);
    const text =
      format === 'zip'
        ? differenceOf(facts, committed, '')
        : await differenceInRows(reader, { facts, committed, path, format, lines, series });
    return text === undefined ? undefined : { kind: 'damaged', text };
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
  const entry = await entryAt(path);
  const irregular = entry === undefined ? undefined : irregularText(entry);
  // Only the user can move it away: repair writes no file in its place.
  if (irregular !== undefined) return { kind: 'unreadable', text: `${irregular}: move it away` };
  return { kind: 'missing', text: 'the file does not exist' };
}

function differenceOf(facts: FileFacts, committed: ObjectLine, rows: string): string | undefined {
  if (facts.bytes !== committed.fileBytes)
    return `the file has ${facts.bytes} bytes, the committed file had ${committed.fileBytes}${rows}`;
  if (facts.sha256 !== committed.fileSha256)
    return `the SHA-256 of the file is ${facts.sha256.slice(0, 12)}…, that of the committed file was ${committed.fileSha256.slice(0, 12)}…${rows}`;
  return undefined;
}

const NOT_PARQUET = 'the file cannot be read as Parquet';

interface Compared {
  readonly facts: FileFacts;
  readonly committed: ObjectLine;
  readonly path: string;
  readonly format: Format;
  readonly lines: readonly ObjectLine[];
  readonly series: Series;
}

async function differenceInRows(reader: FileReader, compared: Compared): Promise<string | undefined> {
  const { facts, committed, path, format, lines, series } = compared;
  let footer: Footer | undefined;
  let unread: unknown;
  try {
    if (format === 'parquet') footer = await reader.footer(path);
  } catch (error) {
    // A typed error other than `disk` is not about this file.
    if (error instanceof CryptodlError && error.code !== 'disk') throw error;
    unread = error;
  }
  // The first line of a CSV file is its header.
  const rows = format === 'csv' ? facts.newlines - 1 : footer?.rows;
  const differs = rows !== undefined && committed.fileRows !== undefined && rows !== committed.fileRows;
  const rowText = differs
    ? `the file has ${rows} rows, the committed file had ${committed.fileRows ?? 0}`
    : undefined;
  const detail = rowText ?? (unread === undefined ? undefined : NOT_PARQUET);
  const changed = differenceOf(facts, committed, detail === undefined ? '' : `; ${detail}`);
  if (changed !== undefined) return changed;
  // The bytes are those of the commit, so a disk error is not damage of the file.
  if (unread instanceof CryptodlError) throw unread;
  if (unread !== undefined) return NOT_PARQUET;
  if (rowText !== undefined) return rowText;
  const sum = lines.reduce((total, line) => total + (line.rows ?? 0), 0);
  if (committed.fileRows !== undefined && sum !== committed.fileRows)
    return `the file has ${committed.fileRows} rows, its manifest lines name ${sum}: a manifest line is missing`;
  if (reader.rows === undefined) return undefined;
  const columns = footer === undefined ? undefined : new Set(footer.columns.keys());
  const wrong = await reader.rows({ series, path, lines, columns });
  return wrong.length === 0 ? undefined : wrong.join('; ');
}
