/** Reads published CSVs: removes headers, counts rows, and detects content that needs the exact checker. */
import { listText } from '../model/units.js';
import { open } from 'node:fs/promises';
import { CryptodlError } from '../model/errors.js';
import type { Body } from '../http/fetch.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { ArchiveObject } from '../model/task.js';
import type { ColumnSpec } from '../source/facts.js';
import { archivedColumns } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { LONGEST_LINE } from './check-rows.js';
import { LineScan } from './line-scan.js';

/** A received and verified object. */
export interface ReceivedObject {
  readonly object: ArchiveObject;
  readonly zip: Body;
  /** The rows. Empty for `--format zip`, unless only CRC-32 could verify the zip. */
  readonly csv: Body;
  /** Name of the CSV, for messages. */
  readonly name: string;
  /** Size of the zip (of REST: of the CSV), for the manifest. */
  readonly zipBytes: number;
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
  /** Every number that the fast reader accepts is finite: no cell spells `inf` or `nan`, and no line is long enough for more than 308 digits. */
  readonly isFinite: boolean;
  /** No byte order mark, no carriage return and all columns: the fast reader can read the file directly. */
  readonly isPlain: boolean;
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;
/** The largest double has 309 digits before its point. */
const FINITE_LINE = 308;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** The columns of a received CSV. Files of the archive lack the columns that only REST has. */
export function receivedColumns({ verified }: ReceivedObject, spec: DatasetSpec): readonly ColumnSpec[] {
  return verified === 'rest' ? spec.columns : archivedColumns(spec);
}

/** Receives rows as text, in order. */
export interface RowSink {
  appendFile(rows: Buffer | string): Promise<void>;
}

/**
 * Reads a published CSV completely. `sink` receives its rows without header, byte order mark, and carriage returns before line
 * feeds; every row ends with a line feed, and columns that the archive lacks are blank. Rejects with `header-unknown` or
 * `file-empty`, and on disk errors.
 */
export async function inspectCsv(
  received: ReceivedObject,
  spec: DatasetSpec,
  symbol: string,
  sink?: RowSink,
): Promise<Inspected> {
  const columns = receivedColumns(received, spec);
  const rowEnd = `${','.repeat(spec.columns.length - columns.length)}\n`;
  // The fast reader ignores an extra blank cell at the end of a row. With appended commas, a row with too many cells ends with
  // such a cell.
  const scan = new LineScan(columns.length - 1, rowEnd !== '\n');
  let isPlain = rowEnd === '\n';
  let headerLines = 0;
  let isFirst = true;
  for await (let chunk of readChunks(received.csv)) {
    if (isFirst) {
      isFirst = false;
      if (chunk.subarray(0, 3).equals(BOM)) {
        chunk = chunk.subarray(3);
        isPlain = false;
      }
      const header = headerOf(chunk, columns, received.name);
      if (header !== undefined) {
        const end = chunk.indexOf(NEWLINE);
        isPlain &&= !header.includes(RETURN);
        chunk = end < 0 ? chunk.subarray(chunk.length) : chunk.subarray(end + 1);
        headerLines = 1;
      }
    }
    if (chunk.length === 0) continue;
    if (chunk.includes(RETURN)) {
      chunk = Buffer.from(chunk.toString('latin1').replaceAll('\r\n', '\n'), 'latin1');
      isPlain = false;
      scan.isSuspicious ||= chunk.includes(RETURN);
    }
    scan.add(chunk);
    await sink?.appendFile(copyIfShared(withRowEnds(chunk, rowEnd), received.csv));
  }
  if (scan.end()) await sink?.appendFile(rowEnd);
  if (scan.rows === 0) throw new CryptodlError('file-empty', `${received.name} holds no row`);
  return {
    rows: scan.rows,
    headerLines,
    needsCheck: scan.isSuspicious || needsCheck(scan, spec, symbol),
    isFinite:
      scan.longest <= FINITE_LINE && scan.lettersN === scan.rows * lettersOfSymbol(spec, symbol, /n/gi),
    isPlain,
  };
}

/** Copies chunks of a file, because their buffer is reused and a sink may keep them. */
function copyIfShared(chunk: Buffer, csv: Body): Buffer {
  return csv.kind === 'file' ? Buffer.from(chunk) : chunk;
}

function withRowEnds(chunk: Buffer, end: string): Buffer {
  return end === '\n' ? chunk : Buffer.from(chunk.toString('latin1').replaceAll('\n', end), 'latin1');
}

function needsCheck(
  counts: Pick<LineScan, 'rows' | 'underscores' | 'spaces'>,
  spec: DatasetSpec,
  symbol: string,
): boolean {
  const dates = spec.columns.filter((column) => column.type === 'datetime').length;
  const underscores = lettersOfSymbol(spec, symbol, /_/g);
  return counts.underscores !== counts.rows * underscores || counts.spaces !== counts.rows * dates;
}

/** How often the letter is in the symbols of one row. */
function lettersOfSymbol(spec: DatasetSpec, symbol: string, letter: RegExp): number {
  const symbols = spec.columns.filter((column) => column.type === 'symbol').length;
  return symbols * (symbol.match(letter)?.length ?? 0);
}

/**
 * The header line of a CSV; undefined when it has none: the archive publishes files with and without. Throws `header-unknown`
 * for a header with other columns.
 */
export function headerOf(chunk: Buffer, columns: readonly ColumnSpec[], name: string): Buffer | undefined {
  if (!beginsWithHeader(chunk)) return undefined;
  const end = chunk.indexOf(NEWLINE);
  const header = chunk.subarray(0, end < 0 ? chunk.length : end);
  checkHeader(header, columns, name);
  return header;
}

/** Headers begin with a letter; rows begin with a digit, a sign or a blank cell. */
export function beginsWithHeader(chunk: Buffer): boolean {
  return /^"?[a-z]/i.test(chunk.subarray(0, 2).toString('latin1'));
}

function checkHeader(line: Buffer, columns: readonly ColumnSpec[], name: string): void {
  const names = line.toString('utf8').trim().replaceAll('"', '').split(',');
  const expected = columns.map((column) => column.published ?? column.name);
  if (names.length === expected.length && names.every((column, index) => column.trim() === expected[index]))
    return;
  const unknown = names.filter((column) => !expected.includes(column.trim()));
  const missing = expected.filter((column) => !names.includes(column));
  const difference = [
    unknown.length === 0 ? '' : `unknown ${listText(unknown)}`,
    missing.length === 0 ? '' : `missing ${listText(missing)}`,
  ].filter((part) => part !== '');
  const text = difference.length === 0 ? 'the order of columns differs' : difference.join('; ');
  throw new CryptodlError('header-unknown', `${name} line 1: unexpected header (${text.slice(0, 200)})`);
}

const READ_BYTES = 1024 * 1024;

/** The chunks of a body. Chunks of a file share one buffer: each is valid only until the next. */
async function* readChunks(csv: Body): AsyncGenerator<Buffer> {
  if (csv.kind === 'memory') {
    yield csv.bytes;
    return;
  }
  const file = await open(csv.path);
  try {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    // A carriage return at the end of a chunk is moved to the next chunk, where its line feed may follow.
    let carried = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, carried, READ_BYTES - carried);
      const length = carried + bytesRead;
      if (bytesRead === 0) {
        if (carried > 0) yield buffer.subarray(0, carried);
        return;
      }
      carried = buffer[length - 1] === RETURN ? 1 : 0;
      yield buffer.subarray(0, length - carried);
      if (carried === 1) buffer[0] = RETURN;
    }
  } finally {
    await file.close();
  }
}

/** The lines after the header, for the exact checker. May end within a line that is too long. Only LF and CRLF end a line. */
export async function* rowLines(received: ReceivedObject, headerLines: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let skip = headerLines;
  let rest = '';
  for await (const chunk of readChunks(received.csv)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (skip > 0) skip -= 1;
      else yield line.endsWith('\r') ? line.slice(0, -1) : line;
    }
    // A file without line ends would otherwise be copied with every chunk, up to the maximum length of a string.
    if (rest.length > LONGEST_LINE) break;
  }
  rest += decoder.decode();
  if (rest !== '' && skip === 0) yield rest;
}
