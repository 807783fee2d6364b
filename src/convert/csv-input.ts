/** Reads published CSVs: removes headers, counts rows, and detects content that needs the exact checker. */
import { listText } from '../model/units.js';
import { open } from 'node:fs/promises';
import { CryptodlError } from '../model/errors.js';
import type { Body } from '../model/fetch.js';
import type { ObjectLine } from '../model/manifest-line.js';
import type { SourceObject } from '../model/task.js';
import type { ColumnSpec } from '../exchange/facts.js';
import { archivedColumns, type DatasetSpec } from '../exchange/exchange-spec.js';
import { LONGEST_LINE } from './check-rows.js';
import { LineScan } from './line-scan.js';
import { NEWLINE } from '../text/csv.js';

/** A received and verified object. */
export interface ReceivedObject {
  readonly object: SourceObject;
  /** The zip; of REST, the CSV. */
  readonly body: Body;
  /** The CSV as published. Empty for `--format zip` unless only CRC-32 could verify the zip, and for a worker that only fetches. */
  readonly csv: Body;
  /** Name of the CSV, for messages. */
  readonly name: string;
  /** Size of the body, for the manifest. */
  readonly bytes: number;
  readonly sha256: string;
  readonly etag?: string;
  readonly lastModified?: string;
  readonly verified: ObjectLine['verified'];
  readonly staleSidecar?: string;
}

export interface Inspected {
  readonly rows: number;
  readonly headerLines: number;
  /** The file may have invalid content that the fast reader accepts: `1_000`, `+-1`, `1e-400`, an extra comma. */
  readonly needsCheck: boolean;
  /** No byte order mark, no carriage return, and exactly the columns of the dataset: the fast reader can read the file directly. */
  readonly isPlain: boolean;
  /** Names of columns at the end of the header that the dataset does not have. Their cells are left out. */
  readonly newColumns: readonly string[];
}

const RETURN = 0x0d;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** The columns of a received CSV. Files of the archive lack the columns that only REST has. */
export const receivedColumns = ({ verified }: ReceivedObject, spec: DatasetSpec): readonly ColumnSpec[] =>
  verified === 'rest' ? spec.columns : archivedColumns(spec);

/** Receives rows as text, in order. A chunk of a file is valid only until the promise resolves, because all of them share one buffer. */
export type RowSink = (rows: Buffer) => Promise<void>;

/**
 * Reads a published CSV completely. `sink` receives its rows without header, byte order mark, cells of new columns, and carriage
 * returns before line feeds. Each row ends with a line feed, and columns that the archive lacks are blank. Rejects with
 * `header-unknown` or `file-empty`, and on disk errors.
 */
export async function inspectCsv(
  received: ReceivedObject,
  spec: DatasetSpec,
  symbol: string,
  sink?: RowSink,
): Promise<Inspected> {
  const columns = receivedColumns(received, spec);
  const rowEnd = `${','.repeat(spec.columns.length - columns.length)}\n`;
  // The fast reader ignores a blank cell after the last column. A row with one cell too many gets such a cell from the appended commas, so
  // the exact checker reads every file to which commas are appended.
  const scan = new LineScan(columns.length - 1, rowEnd !== '\n');
  let isPlain = rowEnd === '\n';
  let opened: OpenedCsv | undefined;
  for await (let chunk of readChunks(received.csv)) {
    if (opened === undefined) {
      opened = openCsv(chunk, columns, received.name);
      chunk = opened.rows;
      isPlain &&= opened.isPlain;
    }
    if (chunk.length === 0) continue;
    if (chunk.includes(RETURN)) {
      chunk = Buffer.from(chunk.toString('latin1').replaceAll('\r\n', '\n'), 'latin1');
      isPlain = false;
      scan.isSuspicious ||= chunk.includes(RETURN);
    }
    const { newColumns } = opened;
    const cut = (line: string): string => knownCells(line, columns.length, newColumns.length);
    if (newColumns.length > 0)
      chunk = Buffer.from(chunk.toString('latin1').split('\n').map(cut).join('\n'), 'latin1');
    scan.add(chunk);
    const rows =
      rowEnd === '\n' ? chunk : Buffer.from(chunk.toString('latin1').replaceAll('\n', rowEnd), 'latin1');
    await sink?.(rows);
  }
  if (scan.isOpen) await sink?.(Buffer.from(rowEnd));
  if (scan.rows === 0) throw new CryptodlError('file-empty', `${received.name} holds no row`);
  return {
    rows: scan.rows,
    headerLines: opened?.headerLines ?? 0,
    needsCheck: scan.isSuspicious || hasStraySigns(scan, spec, symbol),
    isPlain,
    newColumns: opened?.newColumns ?? [],
  };
}

interface OpenedCsv extends Pick<Inspected, 'headerLines' | 'newColumns' | 'isPlain'> {
  readonly rows: Buffer;
}

/**
 * The first chunk of a CSV without its byte order mark and its header: the archive publishes files with and without one. Throws
 * `header-unknown` for a header with other columns, unless they are new ones at its end.
 */
function openCsv(chunk: Buffer, columns: readonly ColumnSpec[], name: string): OpenedCsv {
  const hasMark = chunk.subarray(0, 3).equals(BOM);
  const text = hasMark ? chunk.subarray(3) : chunk;
  if (!beginsWithHeader(text)) return { rows: text, headerLines: 0, newColumns: [], isPlain: !hasMark };
  const end = text.indexOf(NEWLINE);
  const line = text.subarray(0, end < 0 ? text.length : end);
  const newColumns = namesAtEnd(line, columns, name);
  const isPlain = !hasMark && newColumns.length === 0 && !line.includes(RETURN);
  return { rows: text.subarray(Math.min(line.length + 1, text.length)), headerLines: 1, newColumns, isPlain };
}

/** A line without the cells of new columns at its end. A line that lacks these cells gets one cell too many, so that it is refused. */
export function knownCells(line: string, known: number, more: number): string {
  if (more === 0) return line;
  const cells = line.split(',');
  if (cells.length === known) return `${line},`;
  return cells.length === known + more ? cells.slice(0, known).join(',') : line;
}

function hasStraySigns(
  counts: Pick<LineScan, 'rows' | 'underscores' | 'spaces'>,
  { columns }: DatasetSpec,
  symbol: string,
): boolean {
  const [spaces = 0, symbols = 0] = ['datetime', 'symbol'].map(
    (type) => columns.filter((column) => column.type === type).length,
  );
  const underscores = symbols * (symbol.split('_').length - 1);
  return counts.underscores !== counts.rows * underscores || counts.spaces !== counts.rows * spaces;
}

/** Headers begin with a letter; rows begin with a digit, a sign or a blank cell. */
export const beginsWithHeader = (chunk: Buffer): boolean =>
  /^"?[a-z]/i.test(chunk.subarray(0, 2).toString('latin1'));

/** The form of the name of a new column. Manifests and messages have these names. */
const COLUMN_NAME = /^[a-z_][\w .%-]{0,63}$/i;

/** The names of new columns at the end. Throws `header-unknown` for a header with other columns. */
function namesAtEnd(line: Buffer, columns: readonly ColumnSpec[], name: string): string[] {
  const names = line
    .toString('utf8')
    .trim()
    .replaceAll('"', '')
    .split(',')
    .map((column) => column.trim());
  const expected = columns.map((column) => column.published ?? column.name);
  const more = names.slice(expected.length);
  const areNew = more.every((column) => COLUMN_NAME.test(column) && !expected.includes(column));
  if (areNew && expected.every((column, index) => column === names[index])) return more;
  const unknown = names.filter((column) => !expected.includes(column));
  const missing = expected.filter((column) => !names.includes(column));
  const difference = [
    unknown.length === 0 ? '' : `unknown ${listText(unknown)}`,
    missing.length === 0 ? '' : `missing ${listText(missing)}`,
  ].filter((part) => part !== '');
  const text = difference.length === 0 ? 'the order of columns differs' : difference.join('; ');
  throw new CryptodlError('header-unknown', `${name} line 1: unexpected header (${text.slice(0, 200)})`);
}

/** More than the longest line that can be valid. */
const READ_BYTES = LONGEST_LINE + 1024 * 1024;

/** A body in chunks of whole lines; a line that is too long is cut. Chunks of a file share one buffer: each is valid only until the next. */
async function* readChunks(csv: Body): AsyncGenerator<Buffer> {
  if (csv.kind === 'memory') {
    yield csv.bytes;
    return;
  }
  const file = await open(csv.path);
  try {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    let carried = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, carried, READ_BYTES - carried);
      const length = carried + bytesRead;
      const end = buffer.subarray(0, length).lastIndexOf(NEWLINE) + 1;
      const whole = bytesRead === 0 || (end === 0 && length === READ_BYTES) ? length : end;
      if (whole > 0) yield buffer.subarray(0, whole);
      if (bytesRead === 0) return;
      carried = length - whole;
      buffer.copyWithin(0, whole, length);
    }
  } finally {
    await file.close();
  }
}

/** The lines after the header, for the exact checker, as `cut` returns them. Only LF and CRLF end a line. The last may be the start of a long line. */
export async function* rowLines(
  received: ReceivedObject,
  headerLines: number,
  cut: (line: string) => string = (line) => line,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let skip = headerLines;
  let rest = '';
  for await (const chunk of readChunks(received.csv)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (skip > 0) skip -= 1;
      else yield cut(line.endsWith('\r') ? line.slice(0, -1) : line);
    }
    // A file without line ends would otherwise be copied with every chunk, up to the maximum length of a string.
    if (rest.length > LONGEST_LINE) break;
  }
  rest += decoder.decode();
  if (rest !== '' && skip === 0) yield cut(rest);
}
