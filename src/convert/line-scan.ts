/** Finds signs that a CSV has invalid rows which the fast reader (DuckDB) may accept. The exact checker then reads the CSV. */
import { NEWLINE } from '../text/csv.js';

const UNDERSCORE = 0x5f;
const SPACE = 0x20;
const COMMA = 0x2c;
const QUOTE = 0x22;
/** Tab, vertical tab, form feed, NUL, plus sign. */
const SUSPICIOUS_BYTES: readonly number[] = [0x09, 0x0b, 0x0c, 0x00, 0x2b];
const SUSPICIOUS_TEXTS: readonly Buffer[] = ['" ', ' "'].map((text) => Buffer.from(text));
const EXPONENT_MARKS = [0x45, 0x65];
const [POINT, ZERO, NINE] = [0x2e, 0x30, 0x39];
/** Bytes. Only a longer line can have a number without an exponent that is too small for a double. */
const LONG_LINE = 324;

/** The counts and signs that decide whether the fast reader alone can check the rows of a CSV. */
export class LineScan {
  rows = 0;
  underscores = 0;
  spaces = 0;
  /** The bytes of the longest line. */
  longest = 0;
  /** Whether the last line has no line feed. */
  isOpen = false;

  /** `commas`: the number of commas in a valid line. */
  constructor(
    private readonly commas: number,
    /** Whether the fast reader may accept invalid content. */
    public isSuspicious: boolean,
  ) {}

  /** `chunk`: whole lines. Only the last line of the last chunk may have no line feed. */
  add(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#addLine(chunk, start, end);
      start = end + 1;
    }
    this.isOpen = start < chunk.length;
    if (this.isOpen) {
      this.#addLine(chunk, start, chunk.length);
      this.isSuspicious ||= [COMMA, QUOTE].includes(chunk.at(-1) ?? 0);
    }
    this.underscores += count(chunk, UNDERSCORE);
    this.spaces += count(chunk, SPACE);
    this.isSuspicious ||= this.longest > LONG_LINE || hasSuspiciousBytes(chunk) || hasExponent(chunk);
  }

  /**
   * Judges how a line ends. The comma before a blank last cell and an extra comma look the same, so the commas of the line are counted. `,""`
   * at the end may be an extra cell too, and is suspicious.
   */
  #addLine(chunk: Buffer, start: number, end: number): void {
    const last = chunk[end - 1];
    if (last === COMMA) this.isSuspicious ||= commasWithin(chunk, start, end) !== this.commas;
    else if (last === QUOTE) this.isSuspicious ||= chunk[end - 2] === QUOTE && chunk[end - 3] === COMMA;
    if (end - start > this.longest) this.longest = end - start;
    this.rows += 1;
  }
}

const hasSuspiciousBytes = (chunk: Buffer): boolean =>
  SUSPICIOUS_BYTES.some((byte) => chunk.includes(byte)) ||
  (chunk.includes(QUOTE) && SUSPICIOUS_TEXTS.some((text) => chunk.includes(text)));

/** Whether an `e` follows a digit or a point. */
const hasExponent = (chunk: Buffer): boolean =>
  EXPONENT_MARKS.some((mark) => {
    for (let at = chunk.indexOf(mark); at >= 0; at = chunk.indexOf(mark, at + 1)) {
      const previous = chunk[at - 1] ?? 0;
      if ((previous >= ZERO && previous <= NINE) || previous === POINT) return true;
    }
    return false;
  });

function count(chunk: Buffer, byte: number): number {
  let found = 0;
  for (let at = chunk.indexOf(byte); at >= 0; at = chunk.indexOf(byte, at + 1)) found += 1;
  return found;
}

/** Compares every byte: commas are so frequent that a search with `indexOf` is slower. */
function commasWithin(chunk: Buffer, from: number, to: number): number {
  let found = 0;
  for (let at = from; at < to; at += 1) if (chunk[at] === COMMA) found += 1;
  return found;
}
