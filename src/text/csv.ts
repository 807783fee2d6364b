/** CSV as `sql`, `universe` and `coverage` print it. */

/** The byte that ends a line. */
export const NEWLINE = 0x0a;

/** A line of CSV. An empty cell is null, `""` is the empty text. */
export const csvLine = (cells: readonly (string | number | null)[]): string =>
  `${cells.map((cell) => (typeof cell === 'string' ? csvText(cell) : (cell ?? ''))).join(',')}\n`;

/** Control characters, which readers and terminals may take for the end of a line, are quoted like line breaks. */
function csvText(text: string): string {
  return text === '' || /[",\p{Cc}]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
