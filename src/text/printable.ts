/** Text for terminals, pipes, logs and reports: passwords are masked, control characters escaped, and paths written as people do. */
import { relative, resolve, sep } from 'node:path';
import { withAddresses } from './mirror-roots.js';
import { fitted, widthOf } from './wrap.js';

/** A line of text, or an object that is written as one line of JSON. */
export type Line = string | object;

/** C0, DEL, C1, line and paragraph separators, and characters that change the direction of text. */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
/** `STEERING` without C0, which `JSON.stringify` escapes. */
const STEERING_IN_JSON = /[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
const SHORT: Readonly<Record<string, string>> = { '\n': String.raw`\n`, '\r': String.raw`\r`, '\t': '\t' };

type Output = Pick<NodeJS.WritableStream, 'write'> & Parameters<typeof widthOf>[0];

/** Writes each element as one line, which a terminal that is narrower gets in several. */
export function printLines(stream: Output, lines: readonly Line[]): void {
  stream.write(linesText(lines, widthOf(stream)));
}

/** `width`: text that is longer is broken between words; Infinity for a pipe. */
export function linesText(lines: readonly Line[], width = Infinity): string {
  return lines
    .flatMap((line) => (typeof line === 'string' ? fitted(printable(line), width) : jsonText(line)))
    .map((line) => `${line}\n`)
    .join('');
}

/** Text on one line. Tabs stay, because they separate cells. */
export function printable(text: string): string {
  return withoutPassword(withAddresses(text)).replaceAll(
    STEERING,
    (character) => SHORT[character] ?? escaped(character),
  );
}

/** One line of cells, separated by tabs; tabs within cells are escaped. */
export const tabbed = (cells: readonly (string | number)[]): string =>
  cells.map((cell) => printable(String(cell)).replaceAll('\t', String.raw`\t`)).join('\t');

/** JSON with escaped control characters. A parser reads the same value, except for masked passwords. `indent`: blanks per level; without it, one line. */
export function jsonText(value: object, indent?: number): string {
  const text = withAddresses(JSON.stringify(value, undefined, indent));
  const masked =
    text.includes('://') && text.includes('@')
      ? JSON.stringify(
          value,
          (_, field: unknown) => (typeof field === 'string' ? withoutPassword(withAddresses(field)) : field),
          indent,
        )
      : text;
  return masked.replaceAll(STEERING_IN_JSON, (character) => String.raw`\u${hex(character, 4)}`);
}

/** Masks the password in URLs and keeps the user. The literal `password` stays, because hints use it as a placeholder. */
export function withoutPassword(text: string): string {
  if (!text.includes('@') || !text.includes('://')) return text;
  return text.replaceAll(/\S+/g, (word) => {
    const end = word.lastIndexOf('@');
    const user = /\w:\/\/[^/:@]*:(?!password@)/.exec(word);
    const start = user === null ? Infinity : user.index + user[0].length;
    return start > end ? word : `${word.slice(0, start)}***${word.slice(end)}`;
  });
}

function escaped(character: string): string {
  return character < '\u0100' ? String.raw`\x${hex(character, 2)}` : String.raw`\u${hex(character, 4)}`;
}

const hex = (character: string, digits: number): string =>
  character.charCodeAt(0).toString(16).padStart(digits, '0');

/** Text that a shell reads as one word. Characters that `printable` would change are written as in `$'…'`, which bash, zsh and ksh read. */
export function shellWord(word: string): string {
  if (/^[\p{L}\p{N}_@%+=:,./-]+$/u.test(word)) return word;
  if (word.search(STEERING) < 0) return `'${word.replaceAll("'", `'\\''`)}'`;
  const plain = word.replaceAll(/['\\]/g, String.raw`\$&`);
  return `$'${plain.replaceAll(STEERING, (character) => SHORT[character] ?? String.raw`\u${hex(character, 4)}`)}'`;
}

/** A command of this program as text for a shell, without passwords. `words`: the words after `cryptodl`. */
export const commandLine = (words: readonly string[]): string =>
  ['cryptodl', ...words].map((word) => shellWord(withoutPassword(word))).join(' ');

// Paths from user input, and paths in messages.

/** The absolute path, with `~/` replaced by the home folder: no shell expands it in config files and the environment. */
export function absolutePath(path: string, home: string | undefined): string {
  const expanded =
    home !== undefined && (path === '~' || path.startsWith(`~${sep}`)) ? home + path.slice(1) : path;
  return resolve(expanded);
}

/** A path below the working directory as a relative path, a path of a lake in a bucket as its address; any other path unchanged. */
export function shownPath(path: string): string {
  const address = withAddresses(path);
  if (address !== path) return address;
  const below = relative('.', path);
  return below === '' ? '.' : below.startsWith('..') ? path : below;
}

/** The default of `--out`. */
export const DEFAULT_LAKE = 'data';

/** ` --out DIR` for a command; empty for the default. */
export function lakeFlag(root: string): string {
  const lake = shownPath(root);
  return lake === DEFAULT_LAKE ? '' : ` --out ${shellWord(lake)}`;
}
