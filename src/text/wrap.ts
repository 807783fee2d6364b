/** Breaks text between words, so that a terminal does not break it inside of them. */

/** Lines of at most this width. A longer word has a line of its own. */
export const wrap = (text: string, width: number): string[] => joined(text.split(' '), width);

function joined(words: readonly string[], width: number): string[] {
  const lines: string[] = [];
  let room = 0;
  for (const word of words) {
    const needed = displayWidth(word);
    const last = lines.at(-1);
    if (last === undefined || needed + 1 > room) {
      // A line does not begin with the blanks before it.
      if (last !== undefined && word === '') continue;
      lines.push(word);
      room = width - needed;
    } else {
      lines[lines.length - 1] = `${last} ${word}`;
      room -= needed + 1;
    }
  }
  return lines;
}

/** The columns of a terminal; Infinity for a pipe or a file, whose lines are not broken. */
export function widthOf(stream: { readonly isTTY?: boolean; readonly columns?: number }): number {
  return stream.isTTY === true ? stream.columns || USUAL_WIDTH : Infinity;
}

/** Of a terminal that does not tell its width. */
const USUAL_WIDTH = 80;

/** Beside a term that leaves less room, the text would stand in a narrow column. */
const NARROWEST = 24;

/**
 * A line as lines that fit. Further lines begin below the text of the first one: behind its blanks and its first word, if two blanks
 * follow that. A command continues with a backslash, so that it can be copied. A line of cells between tabs stays.
 */
export function fitted(line: string, width: number): string[] {
  if (displayWidth(line) <= width || line.includes('\t')) return [line];
  const [term = '', blanks = ''] = /^( *)(?:- |\S+ {2,})?/.exec(line) ?? [];
  const head = width - term.length < NARROWEST ? blanks : term;
  const indent = ' '.repeat(head === term ? term.length || 2 : blanks.length + 2);
  const text = line.slice(head.length);
  const isCommand = text.startsWith('cryptodl ');
  const parts = isCommand
    ? // A quoted blank does not end a word.
      joined(text.match(/(?:\\.|'[^']*'|[^\s'\\])+/g) ?? [], width - indent.length - CONTINUED.length)
    : wrap(text, width - indent.length);
  return parts.map(
    (part, at) => `${at === 0 ? head : indent}${part}${isCommand && at < parts.length - 1 ? CONTINUED : ''}`,
  );
}

const CONTINUED = ' \\';

/** Terminals show East Asian characters in two columns; combining marks and changes of the colour in none. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  const bare = text.replaceAll(/\p{M}|\p{Cc}\[\d*m/gu, '');
  return Array.from(bare).length + Array.from(bare.matchAll(WIDE)).length;
}

const PLAIN = /^[ -~]*$/;
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/gu;
