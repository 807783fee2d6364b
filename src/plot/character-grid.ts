/** A picture of characters with colours, and a canvas of braille dots. */

/** Colours of the terminal, so that its theme decides about them. */
export type Colour = 'green' | 'red' | 'cyan' | 'grey' | 'bold';

const CODES: Readonly<Record<Colour, number>> = { green: 32, red: 31, cyan: 36, grey: 90, bold: 1 };

export class CharacterGrid {
  readonly #cells: { character: string; colour: Colour | undefined }[][];

  constructor(width: number, height: number) {
    this.#cells = Array.from({ length: height }, () =>
      Array.from({ length: width }, () => ({ character: ' ', colour: undefined })),
    );
  }

  /** Writes a text from this column on. Parts outside of the grid are left out. */
  put(column: number, row: number, text: string, colour?: Colour): void {
    for (const [at, character] of Array.from(text).entries()) {
      const cell = this.#cells[row]?.[column + at];
      if (cell !== undefined) Object.assign(cell, { character, colour });
    }
  }

  /** Lines without trailing spaces; with the codes of colours only if `hasColour`. */
  lines(hasColour: boolean): string[] {
    return this.#cells.map((row) => {
      const end = row.findLastIndex(({ character }) => character !== ' ') + 1;
      let line = '';
      let current: Colour | undefined;
      for (const { character, colour } of row.slice(0, end)) {
        // A space has no colour, so it does not end one.
        if (hasColour && character !== ' ' && colour !== current) {
          line +=
            colour === undefined ? RESET : (current === undefined ? '' : RESET) + `\u001b[${CODES[colour]}m`;
          current = colour;
        }
        line += character;
      }
      return current === undefined ? line : line + RESET;
    });
  }
}

const RESET = '\u001b[0m';

/** Bits of the dots of a braille character, by column and row. */
const DOTS = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
];

/** Dots, two in a column and four in a row of a character. */
export class DotCanvas {
  readonly #cells = new Map<number, number>();

  constructor(
    readonly width: number,
    readonly height: number,
  ) {}

  set(x: number, y: number): void {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return;
    const cell = Math.floor(y / 4) * this.width + Math.floor(x / 2);
    this.#cells.set(cell, (this.#cells.get(cell) ?? 0) | (DOTS[x % 2]?.[y % 4] ?? 0));
  }

  line(fromX: number, fromY: number, toX: number, toY: number): void {
    const steps = Math.max(Math.abs(toX - fromX), Math.abs(toY - fromY), 1);
    for (let step = 0; step <= steps; step += 1)
      this.set(
        Math.round(fromX + ((toX - fromX) * step) / steps),
        Math.round(fromY + ((toY - fromY) * step) / steps),
      );
  }

  /** Calls back for each character with a dot. */
  each(act: (column: number, row: number, character: string) => void): void {
    for (const [cell, bits] of this.#cells)
      act(cell % this.width, Math.floor(cell / this.width), String.fromCharCode(0x28_00 + bits));
  }
}
