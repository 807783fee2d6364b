/** `cryptodl list markets|datasets|symbols|periods`: prints one item per line. */
import { listName } from '../options/words/list-name.js';
import type { ListName } from '../options/words/list-name.js';
import { endLookUp, forEachItem, requestOf } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import { withLog } from '../download/download.js';
import type { ExitCode } from '../model/exit-code.js';
import { watchSignals } from '../model/io.js';
import { numberText } from '../model/units.js';
import { printLines, tabbed } from '../text/printable.js';
import { listItems } from './list-items.js';
import type { ListItem } from './list-items.js';

/** `operand`: `markets`, `datasets`, `symbols` or `periods`. Throws usage errors. */
export async function list(operand: string | undefined, run: LookUp): Promise<ExitCode> {
  const name = listName(operand);
  const signals = watchSignals(run.io);
  try {
    await withLog(requestOf(run, signals.signal), run.io, (request) =>
      print(run, name, listItems(name, request)),
    );
    return 0;
  } catch (error) {
    return await endLookUp(error, run, signals);
  } finally {
    signals.release();
  }
}

/** Prints the items to stdout (markets and datasets on a terminal in aligned columns). Prints their number and further texts to stderr. */
async function print(
  { io, resolved }: LookUp,
  name: ListName,
  items: AsyncGenerator<ListItem, readonly string[]>,
): Promise<void> {
  const { json, quiet } = resolved.options;
  const isTable = io.stdout.isTTY === true && !json && (name === 'markets' || name === 'datasets');
  const rows: ListItem['cells'][] = [];
  let number = 0;
  const more = await forEachItem(items, ({ cells, fields }) => {
    number += 1;
    if (!isTable) return writeData(io, [json ? fields : tabbed(cells)]);
    rows.push(cells);
    return Promise.resolve(true);
  });
  if (
    more === undefined ||
    (isTable && !(await writeData(io, aligned(rows, io.stdout.columns ?? DEFAULT_WIDTH))))
  )
    return;
  const what = name === 'periods' ? 'objects' : name;
  const count = `${numberText(number)} ${number === 1 ? what.slice(0, -1) : what}`;
  if (!quiet) printLines(io.stderr, [[count, ...more].join('; ')]);
}

const DEFAULT_WIDTH = 80;
const INDENT = '    ';

/** The rows as lines with columns of equal width. Cells that do not fit into the width follow on indented lines. */
function aligned(rows: readonly ListItem['cells'][], width: number): string[] {
  const widths = Array.from({ length: rows[0]?.length ?? 0 }, (_, at) =>
    Math.max(...rows.map((cells) => String(cells[at] ?? '').length)),
  );
  const ends = widths.map((_, at) => widths.slice(0, at + 1).reduce((sum, one) => sum + one + 2, -2));
  const beyond = ends.findIndex((end) => end > width);
  const fitting = beyond < 0 ? ends.length : Math.max(1, beyond);
  return rows.flatMap((cells) => {
    const columns = cells.slice(0, fitting).map((cell, at) => String(cell).padEnd(widths[at] ?? 0));
    const others = cells.slice(fitting).filter((cell) => cell !== '-');
    return [columns.join('  ').trimEnd(), ...wrapped(others.map(String), width)];
  });
}

/** Indented lines of at most this width, broken between the cells and, within a cell, between its words. */
function wrapped(cells: readonly string[], width: number): string[] {
  const lines: string[] = [];
  let line = '';
  const add = (text: string, between: string): void => {
    const longer = line === '' ? INDENT + text : line + between + text;
    if (line === '' || longer.length <= width) {
      line = longer;
      return;
    }
    lines.push(line);
    line = INDENT + text;
  };
  for (const cell of cells) {
    if (INDENT.length + cell.length <= width) add(cell, '  ');
    else for (const [at, word] of cell.split(' ').entries()) add(word, at === 0 ? '  ' : ' ');
  }
  return line === '' ? lines : [...lines, line];
}
