/** Text for terminals, pipes, logs and reports: without passwords, and without characters that steer a terminal. */

/** A line of text, or a record that is written as a line of JSON. */
export type Line = string | object;

/** C0, DEL, C1, line and paragraph separators, and characters that change the direction of text. */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
/** `JSON.stringify` escapes those of C0 only. */
const STEERING_IN_JSON = /[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
const SHORT: Readonly<Record<string, string>> = { '\n': String.raw`\n`, '\r': String.raw`\r`, '\t': '\t' };

/** Each line ends with a line break, and holds no other. */
export function printLines(stream: Pick<NodeJS.WritableStream, 'write'>, lines: readonly Line[]): void {
  stream.write(linesText(lines));
}

export function linesText(lines: readonly Line[]): string {
  return lines.map((line) => `${typeof line === 'string' ? printable(line) : jsonText(line)}\n`).join('');
}

/** On one line; tabs stay, because they separate cells. */
export function printable(text: string): string {
  return withoutPassword(text).replaceAll(STEERING, (character) => SHORT[character] ?? escaped(character));
}

/** One line of cells; a tab within a cell separates nothing. */
export function tabbed(cells: readonly (string | number)[]): string {
  return cells.map((cell) => printable(String(cell)).replaceAll('\t', String.raw`\t`)).join('\t');
}

/** Still the same JSON to a reader, but for passwords. */
export function jsonText(value: object): string {
  const text = JSON.stringify(value);
  const masked =
    text.includes('://') && text.includes('@')
      ? JSON.stringify(value, (_, field: unknown) =>
          typeof field === 'string' ? withoutPassword(field) : field,
        )
      : text;
  return masked.replaceAll(STEERING_IN_JSON, (character) => String.raw`\u${hex(character, 4)}`);
}

/** An address keeps its user and loses its password, whatever that holds; `password` stands for one in a hint. */
export function withoutPassword(text: string): string {
  return text.replaceAll(/(\w:\/\/[^\s/:@]*):(?!password@)\S*@/g, '$1:***@');
}

function escaped(character: string): string {
  return character < '\u0100' ? String.raw`\x${hex(character, 2)}` : String.raw`\u${hex(character, 4)}`;
}

function hex(character: string, digits: number): string {
  return character.charCodeAt(0).toString(16).padStart(digits, '0');
}

/** As a POSIX shell takes it for one word. */
export function shellWord(word: string): string {
  return /^[\p{L}\p{N}_@%+=:,./-]+$/u.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
