/** A picture of characters with colours. */

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
