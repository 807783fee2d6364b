/** Tables that fit a terminal: numbers to the right, texts to the left, and the widest texts broken between words. */
import { displayWidth, fitted, wrap } from './wrap.js';

export interface TableColumn {
  /** Without titles, a table has no head. */
  readonly title?: string;
  readonly isNumber?: boolean;
  /** A narrow terminal leaves out the column with the highest rank first. Columns without a rank stay. */
  readonly rank?: number;
}

interface Sized extends TableColumn {
  readonly index: number;
  /** The column is not made narrower than this: the width of its longest word, and at least NARROWEST. */
  readonly least: number;
  width: number;
}

const GAP = '  ';
/** A text is broken into lines of at least this width. */
const NARROWEST = 12;

/**
 * `width`: of the terminal, in characters; without it, as for a pipe, no column is left out and no line broken. `hasRule`: a line below the head.
 * `hidden`: the number of columns that were left out.
 */
export function table(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  { width = Infinity, hasRule = false }: { readonly width?: number; readonly hasRule?: boolean } = {},
) {
  const hasHead = columns.some(({ title }) => title !== undefined);
  const all = hasHead ? [columns.map(({ title = '' }) => title), ...rows] : rows;
  const shown = fitting(sized(columns, all), width);
  const [head = [], ...others] = all.map((cells) => rowLines(cells, shown, width));
  const rule = hasRule ? [shown.map((column) => '─'.repeat(column.width)).join(GAP)] : [];
  return { lines: [...head, ...rule, ...others.flat()], hidden: columns.length - shown.length };
}

function sized(columns: readonly TableColumn[], rows: readonly (readonly string[])[]): Sized[] {
  return columns.map((column, index) => {
    const cells = rows.map((row) => row[index] ?? '');
    const words = cells.flatMap((cell) => cell.split(' '));
    return { ...column, index, width: widestOf(cells), least: Math.max(NARROWEST, widestOf(words)) };
  });
}

/** Leaves out columns, then makes the widest texts narrower, until the line fits. */
function fitting(columns: readonly Sized[], width: number): readonly Sized[] {
  let shown = columns;
  const isTooWide = (): boolean => widthOfAll(shown) > width;
  const optional = columns.filter(({ rank }) => rank !== undefined);
  for (const column of optional.toSorted((one, other) => (other.rank ?? 0) - (one.rank ?? 0)))
    if (isTooWide()) shown = shown.filter((other) => other !== column);
  while (isTooWide()) {
    const texts = shown.filter((column) => column.isNumber !== true && column.width > column.least);
    const [widest] = texts.toSorted((one, other) => other.width - one.width);
    if (widest === undefined) break;
    widest.width -= 1;
  }
  return shown;
}

const widestOf = (texts: readonly string[]): number => Math.max(0, ...texts.map(displayWidth));

const widthOfAll = (columns: readonly Sized[]): number =>
  columns.reduce((sum, { width }) => sum + width + GAP.length, -GAP.length);

/** In a terminal that is too narrow for the columns, the cells follow each other. */
function rowLines(cells: readonly string[], columns: readonly Sized[], most: number): string[] {
  if (widthOfAll(columns) > most)
    return fitted(columns.map(({ index }) => cells[index] ?? '').join(GAP), most);
  const parts = columns.map(({ index, width }) => wrap(cells[index] ?? '', width));
  const height = Math.max(...parts.map(({ length }) => length));
  return Array.from({ length: height }, (_, line) =>
    columns
      .map(({ width, isNumber }, place) => padded(parts[place]?.[line] ?? '', width, isNumber))
      .join(GAP)
      .trimEnd(),
  );
}

function padded(text: string, width: number, isNumber = false): string {
  const space = ' '.repeat(Math.max(0, width - displayWidth(text)));
  return isNumber ? space + text : text + space;
}
