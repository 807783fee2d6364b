/** The file of `--trace`: lines of spans, written while the run goes on. */
import { appendFileSync, closeSync, ftruncateSync } from 'node:fs';
import { openOutputFile } from '../files/output-file.js';
import { errnoOf } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { shownPath } from '../text/printable.js';
import { resourceSpansLine } from './otlp.js';

/** A line has at most so many spans, and is written when its first one is this old. */
const SPANS_PER_LINE = 200;
const LONGEST_MS = 1000;

export class TraceFile {
  readonly #path: string;
  readonly #descriptor: number;
  readonly #now: () => number;
  #spans: string[] = [];
  #firstAt = 0;
  #bytes = 0;
  #failure: string | undefined;

  /** Throws a usage error if the file cannot be opened. `now`: milliseconds of a monotonic clock. */
  constructor(path: string, now: () => number) {
    this.#path = path;
    this.#now = now;
    this.#descriptor = openOutputFile({ flag: 'trace', path, mode: 'replace' });
  }

  /** False after a failed write: further spans are dropped. */
  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  add(span: string): void {
    if (!this.isOpen) return;
    const now = this.#now();
    if (this.#spans.length === 0) this.#firstAt = now;
    this.#spans.push(span);
    if (this.#spans.length >= SPANS_PER_LINE || now - this.#firstAt >= LONGEST_MS) this.#write();
  }

  /** Writes the rest. Returns a warning if a write failed. */
  close(): string | undefined {
    this.#write();
    closeSync(this.#descriptor);
    if (this.#failure === undefined) return undefined;
    return `--trace ${shownPath(this.#path)} cannot be written (${this.#failure}): the trace is incomplete`;
  }

  #write(): void {
    if (this.#spans.length === 0 || !this.isOpen) return;
    const line = Buffer.from(`${resourceSpansLine(this.#spans)}\n`);
    this.#spans = [];
    try {
      appendFileSync(this.#descriptor, line);
      this.#bytes += line.length;
    } catch (error) {
      this.#failure = reasonOf(errnoOf(error));
      this.#dropPart();
    }
  }

  /** A full disk takes a part of a line, which no program can read. */
  #dropPart(): void {
    try {
      ftruncateSync(this.#descriptor, this.#bytes);
    } catch {
      // A device or a pipe has no end that can be moved.
    }
  }
}
