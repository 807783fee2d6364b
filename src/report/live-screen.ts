/** Lines that are redrawn in place on a terminal, below all lines that were printed before. */
import type { OutputStream } from '../model/io.js';

const ERASE_BELOW = '\u001b[J';
const ERASE_RIGHT = '\u001b[K';
/** Without wrapping, a character that is wider than counted cannot move the lines below it. */
const WRAP_OFF = '\u001b[?7l';
const WRAP_ON = '\u001b[?7h';
/** For a terminal that does not tell its size. */
const USUAL_SIZE = { columns: 80, rows: 24 };

/**
 * Between two frames the cursor is in an empty line above the lines. A terminal that becomes narrower breaks the lines anew, but all
 * their parts are below the cursor, so that the next frame erases them. Only rows that no longer fit on the screen stay: no program
 * can erase rows above it. An empty line is never broken; of a line with text, terminals move the cursor in different ways. No mode
 * of the terminal lasts longer than a frame: a process that is killed leaves nothing to restore.
 */
export class LiveScreen {
  readonly #stream: OutputStream;
  /** Undefined while nothing is shown. */
  #shown: string | undefined;

  constructor(stream: OutputStream) {
    this.#stream = stream;
  }

  get columns(): number {
    return this.#stream.columns || USUAL_SIZE.columns;
  }

  /** Lines that fit on the screen below the empty one. */
  get rows(): number {
    return Math.max(1, (this.#stream.rows || USUAL_SIZE.rows) - 1);
  }

  /** Shows these lines in place of the shown ones. Writes nothing if they and the size of the terminal are the same. */
  draw(lines: readonly string[]): void {
    const cut = lines.slice(0, this.rows).map((line) => cutTo(line, this.columns - 1));
    const frame = ['', ...cut].map((line) => `${line}${ERASE_RIGHT}`).join('\r\n');
    const sent = `\r${WRAP_OFF}${frame}${ERASE_BELOW}\u001b[${cut.length}A\r${WRAP_ON}`;
    // A terminal with another size has moved the lines, so they are drawn again.
    const shown = `${this.columns} ${this.rows} ${sent}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#stream.write(sent);
  }

  /** Erases the lines. */
  clear(): void {
    if (this.#shown === undefined) return;
    this.#shown = undefined;
    this.#stream.write(`\r${ERASE_BELOW}`);
  }
}

/** The beginning of a text that is too long, with an ellipsis. */
function cutTo(text: string, length: number): string {
  if (text.length <= length) return text;
  return length < 2 ? text.slice(0, Math.max(0, length)) : `${text.slice(0, length - 1)}…`;
}
