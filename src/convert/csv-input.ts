/** The published CSVs of a partition, one after the other, without their headers, as one input for the converter. */
import { open } from 'node:fs/promises';
import { CryptodlError } from '../model/errors.js';
import type { Body } from '../http/fetch.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { ArchiveObject } from '../model/task.js';
import type { ColumnSpec } from '../source/facts.js';
import { archivedColumns } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { LONGEST_LINE } from './check-rows.js';

/** A verified, unpacked object on its way into a file. */
export interface ReceivedObject {
  readonly object: ArchiveObject;
  readonly zip: Body;
  /** The rows; empty in memory when nothing is converted. */
  readonly csv: Body;
  /** Name of the CSV, for messages. */
  readonly name: string;
  /** Facts of the zip, for the manifest. */
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
  /** Holds, or gets, what the fast reader takes more lightly than the exact one: `1_000`, `+-1`, `1e-400`, a comma too many. */
  readonly needsCheck: boolean;
  /** No byte order mark, no carriage return and every column: the fast reader may read it where it is. */
  readonly isPlain: boolean;
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const UNDERSCORE = 0x5f;
const SPACE = 0x20;
const COMMA = 0x2c;
const QUOTE = 0x22;
/** Tab, vertical tab, form feed, a return without its line feed, NUL, doubled signs, spaces at quotes. */
const ODD_BYTES: readonly number[] = [0x09, 0x0b, 0x0c, RETURN, 0x00, 0x2b];
const ODD_TEXTS: readonly Buffer[] = ['" ', ' "'].map((text) => Buffer.from(text));
const EXPONENT_MARKS = [0x45, 0x65];
const [POINT, ZERO, NINE] = [0x2e, 0x30, 0x39];
/** Only in a longer line may a number without exponent be too small for a double. */
const LONG_LINE = 324;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** Columns of a CSV as it was received: files of the archive do not have those that only REST tells. */
export function receivedColumns({ verified }: ReceivedObject, spec: DatasetSpec): readonly ColumnSpec[] {
  return verified === 'rest' ? spec.columns : archivedColumns(spec);
}

/** Takes rows as text, in their order. */
export interface RowSink {
  appendFile(rows: Buffer | string): Promise<void>;
}

/**
 * Reads a published CSV from start to end. `sink` gets its rows without header, byte order mark and carriage returns,
 * the last one ended by a line feed, and blank where the archive has no such column. Throws `header-unknown` and `file-empty`. The header is told by its first byte
 * (facts, section 1.4).
 */
export async function inspectCsv(
  received: ReceivedObject,
  spec: DatasetSpec,
  symbol: string,
  sink?: RowSink,
): Promise<Inspected> {
  const columns = receivedColumns(received, spec);
  const counts = { rows: 0, underscores: 0, spaces: 0 };
  let isBlankEndSplit = false;
  const rowEnd = `${','.repeat(spec.columns.length - columns.length)}\n`;
  // The fast reader overlooks one blank cell too many, which is what a row of too many cells ends with then.
  let isOdd = rowEnd !== '\n';
  let isPlain = rowEnd === '\n';
  let headerLines = 0;
  let last = NEWLINE;
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
    }
    const ends = scanLineEnds(chunk, { commas: columns.length - 1, before: last });
    counts.rows += ends.lines;
    counts.underscores += count(chunk, UNDERSCORE);
    counts.spaces += count(chunk, SPACE);
    isBlankEndSplit ||= ends.isSplit;
    isOdd ||= ends.isOdd || hasOddBytes(chunk) || hasExponent(chunk, last);
    last = chunk.at(-1) ?? NEWLINE;
    await sink?.appendFile(copyIfShared(withRowEnds(chunk, rowEnd), received.csv));
  }
  if (last !== NEWLINE) {
    await sink?.appendFile(rowEnd);
    counts.rows += 1;
    isBlankEndSplit ||= last === COMMA;
    isOdd ||= last === QUOTE;
  }
  if (counts.rows === 0) throw new CryptodlError('file-empty', `${received.name} holds no row`);
  const lines = counts.rows + headerLines;
  isOdd ||= isBlankEndSplit && (await commasIn(received.csv)) !== lines * (columns.length - 1);
  return { rows: counts.rows, headerLines, needsCheck: isOdd || needsCheck(counts, spec, symbol), isPlain };
}

/** A sink may gather chunks; those of a file are only lent. */
function copyIfShared(chunk: Buffer, csv: Body): Buffer {
  return csv.kind === 'file' ? Buffer.from(chunk) : chunk;
}

function withRowEnds(chunk: Buffer, end: string): Buffer {
  return end === '\n' ? chunk : Buffer.from(chunk.toString('latin1').replaceAll('\n', end), 'latin1');
}

function hasOddBytes(chunk: Buffer): boolean {
  return ODD_BYTES.some((byte) => chunk.includes(byte)) || ODD_TEXTS.some((text) => chunk.includes(text));
}

/** An `e` behind a digit, or at the start of a chunk that a digit comes before. */
function hasExponent(chunk: Buffer, before: number): boolean {
  return EXPONENT_MARKS.some((mark) => {
    for (let at = chunk.indexOf(mark); at >= 0; at = chunk.indexOf(mark, at + 1)) {
      const previous = (at === 0 ? before : chunk[at - 1]) ?? 0;
      if ((previous >= ZERO && previous <= NINE) || previous === POINT) return true;
    }
    return false;
  });
}

function needsCheck(
  counts: { rows: number; underscores: number; spaces: number },
  spec: DatasetSpec,
  symbol: string,
): boolean {
  const symbols = spec.columns.filter((column) => column.type === 'symbol').length;
  const dates = spec.columns.filter((column) => column.type === 'datetime').length;
  const underscores = symbol.split('_').length - 1;
  return counts.underscores !== counts.rows * symbols * underscores || counts.spaces !== counts.rows * dates;
}

/** The header with which a CSV begins, if it has one (facts, section 1.4). Throws `header-unknown` for another one. */
export function headerOf(chunk: Buffer, columns: readonly ColumnSpec[], name: string): Buffer | undefined {
  if (!beginsWithHeader(chunk)) return undefined;
  const end = chunk.indexOf(NEWLINE);
  const header = chunk.subarray(0, end < 0 ? chunk.length : end);
  checkHeader(header, columns, name);
  return header;
}

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
    unknown.length === 0 ? '' : `unknown ${unknown.slice(0, 5).join(', ')}`,
    missing.length === 0 ? '' : `missing ${missing.slice(0, 5).join(', ')}`,
  ].filter((part) => part !== '');
  const text = difference.length === 0 ? 'the order of columns differs' : difference.join('; ');
  throw new CryptodlError(
    'header-unknown',
    `${name} line 1: header is not the declared one (${text.slice(0, 200)})`,
  );
}

function count(chunk: Buffer, byte: number): number {
  let found = 0;
  for (let at = chunk.indexOf(byte); at >= 0; at = chunk.indexOf(byte, at + 1)) found += 1;
  return found;
}

/**
 * The last cell of a line may be blank, or it is one too many: the line's commas tell. `isSplit`: such a line began in another
 * chunk. `before`: the byte before the chunk.
 */
function scanLineEnds(
  chunk: Buffer,
  { commas, before }: { commas: number; before: number },
): { lines: number; isOdd: boolean; isSplit: boolean } {
  let [lines, isOdd, isSplit] = [0, false, false];
  let start = before === NEWLINE ? 0 : -1;
  for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, end + 1)) {
    const last = end === 0 ? before : chunk[end - 1];
    if (last === COMMA && start < 0) isSplit = true;
    else if (last === COMMA) isOdd ||= commasWithin(chunk, start, end) !== commas;
    else if (last === QUOTE) isOdd ||= end < 3 || (chunk[end - 2] === QUOTE && chunk[end - 3] === COMMA);
    isOdd ||= end - start > LONG_LINE;
    lines += 1;
    start = end + 1;
  }
  return { lines, isOdd, isSplit };
}

async function commasIn(csv: Body): Promise<number> {
  let found = 0;
  for await (const chunk of readChunks(csv)) found += commasWithin(chunk, 0, chunk.length);
  return found;
}

/** They come every few bytes: too often for a search from one to the next. */
function commasWithin(chunk: Buffer, from: number, to: number): number {
  let found = 0;
  for (let at = from; at < to; at += 1) if (chunk[at] === COMMA) found += 1;
  return found;
}

const READ_BYTES = 1024 * 1024;

/** A chunk is looked at and left: of a file, the next one takes its place in memory. */
async function* readChunks(csv: Body): AsyncGenerator<Buffer> {
  if (csv.kind === 'memory') {
    yield csv.bytes;
    return;
  }
  const file = await open(csv.path);
  try {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    // A carriage return at the end of a chunk waits for its line feed.
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

/** Lines of rows, for the exact checker, up to the first that is too long for one. Only LF and CRLF end a line. */
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
    // A file without line ends would be joined anew with every chunk, until no string can hold it.
    if (rest.length > LONGEST_LINE) break;
  }
  rest += decoder.decode();
  if (rest !== '' && skip === 0) yield rest;
}
