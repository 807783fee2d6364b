/** One file of a series against the manifest lines that name it. */
import { basename, dirname } from 'node:path';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { linkOnTheWay } from '../lake/inside.js';
import type { Held } from '../lake/manifest.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { fileFacts, fileSize } from '../lake/publish.js';
import type { FileFacts } from '../lake/publish.js';
import type { Format, Series, Settings } from '../model/task.js';

/** How files are read: what a Parquet file says of itself, and all of its rows. */
export interface FileReader {
  /** Rows and origin by the footer; rejects when it cannot be read. */
  readonly footer: (path: string) => Promise<Footer>;
  /** What is wrong with its rows, in words. */
  readonly rows?: (file: RowsOf) => Promise<readonly string[]>;
}

export interface Footer {
  readonly rows: number;
  readonly columns: ReadonlyMap<string, string>;
  readonly provenance?: { readonly keys: readonly string[]; readonly settings?: Settings };
}

export interface RowsOf {
  readonly series: Series;
  readonly path: string;
  readonly lines: readonly ObjectLine[];
  readonly columns: ReadonlySet<string> | undefined;
}

/** The file system does not let us read it. */
export const UNREADABLE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EIO']);

export interface FileCheck {
  readonly kind: 'missing' | 'damaged' | 'unreadable';
  readonly text: string;
}

/** `lines`: the objects in the file. Undefined when it is what was committed, with the rows that its lines tell of. */
export async function checkFile(
  reader: FileReader,
  series: Series,
  { path, format, lines, held }: { path: string; format: Format; lines: readonly ObjectLine[]; held: Held },
): Promise<FileCheck | undefined> {
  const committed = held.lastOfFile(lines[0]?.file ?? '');
  if (committed === undefined) return undefined;
  try {
    const size = await fileSize(path);
    if (size === undefined) return { kind: 'missing', text: await missingText(path) };
    const facts = await fileFacts(path);
    const text =
      format === 'zip'
        ? differenceOf(facts, committed, '')
        : await differenceInRows(reader, { facts, committed, path, format, lines, series });
    return text === undefined ? undefined : { kind: 'damaged', text };
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return { kind: 'missing', text: 'the file is not there' };
    if (!UNREADABLE.has(errno)) throw error;
    return { kind: 'unreadable', text: `it cannot be read (${errno})` };
  }
}

async function missingText(path: string): Promise<string> {
  const isLink = (await linkOnTheWay(dirname(path), basename(path))) !== undefined;
  return isLink ? 'a symbolic link is in its place, which is not followed' : 'the file is not there';
}

function differenceOf(facts: FileFacts, committed: ObjectLine, rows: string): string | undefined {
  if (facts.bytes !== committed.fileBytes)
    return `it has ${facts.bytes} bytes, ${committed.fileBytes} were committed${rows}`;
  if (facts.sha256 !== committed.fileSha256)
    return `its digest is ${facts.sha256.slice(0, 12)}…, that of the commit is ${committed.fileSha256.slice(0, 12)}…${rows}`;
  return undefined;
}

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
    // Typed ones are not about the file, but about us or the disk.
    if (error instanceof CryptodlError && error.code !== 'disk') throw error;
    unread = error;
  }
  // The header is a line as well.
  const rows = format === 'csv' ? facts.newlines - 1 : footer?.rows;
  const isOther = rows !== undefined && committed.fileRows !== undefined && rows !== committed.fileRows;
  const other = isOther ? `it has ${rows} rows, ${committed.fileRows ?? 0} were committed` : undefined;
  const what = other ?? (unread === undefined ? undefined : 'it cannot be read as Parquet');
  const changed = differenceOf(facts, committed, what === undefined ? '' : `; ${what}`);
  if (changed !== undefined) return changed;
  // Every byte is what was committed.
  if (unread instanceof CryptodlError) throw unread;
  if (unread !== undefined) return 'it cannot be read as Parquet';
  if (other !== undefined) return other;
  const sum = lines.reduce((total, line) => total + (line.rows ?? 0), 0);
  if (committed.fileRows !== undefined && sum !== committed.fileRows)
    return `it has ${committed.fileRows} rows, the lines of its manifest tell of ${sum}: a line is missing`;
  if (reader.rows === undefined) return undefined;
  const columns = footer === undefined ? undefined : new Set(footer.columns.keys());
  const wrong = await reader.rows({ series, path, lines, columns });
  return wrong.length === 0 ? undefined : wrong.join('; ');
}
