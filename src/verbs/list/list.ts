/** `cryptodl list markets|datasets|symbols|periods`: prints one item per line. */
import { listName, type ListName } from '../../plan/options/periods.js';
import { forEachItem } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { Command, VerbInput } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { withLog } from '../../run/report/log.js';
import type { ExitCode } from '../../model/exit-code.js';
import { numberText } from '../../model/units.js';
import { printable, printLines, tabbed } from '../../text/printable.js';
import { table } from '../../text/table.js';
import { widthOf } from '../../text/wrap.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { periods, symbols } from './list-archive.js';
import type { Items, KnownItems, ListFlag, ListItem } from './list-items.js';
import { datasets, markets } from './list-known.js';

/** `operand`: `markets`, `datasets`, `symbols` or `periods`. Throws usage errors. */
export async function list(command: Command<ListFlag | 'json' | 'quiet'>): Promise<ExitCode> {
  const name = listName(command.operand);
  return withSignals(command, async (request) => {
    await withLog(request, command.io, (logged) => print(command, name, listItems(name, logged)));
    return 0;
  });
}

/** Prints the items to stdout (markets and datasets on a terminal in aligned columns). Prints their number and further texts to stderr. */
async function print(
  { io, resolved }: VerbInput<'json' | 'quiet'>,
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
  if (more === undefined || (isTable && !(await writeData(io, aligned(rows, widthOf(io.stdout)))))) return;
  const what = name === 'periods' ? 'objects' : name;
  const count = `${numberText(number)} ${number === 1 ? what.slice(0, -1) : what}`;
  if (!quiet) printLines(io.stderr, [[count, ...more].join('; ')]);
}

/** The lists of names in the cells are broken between the names. */
function aligned(rows: readonly ListItem['cells'][], width: number): string[] {
  const texts = rows.map((cells) => cells.map((cell) => printable(String(cell)).replaceAll(/,(?! )/g, ', ')));
  const columns = Array.from({ length: Math.max(0, ...texts.map(({ length }) => length)) }, () => ({}));
  return table(columns, texts, { width }).lines;
}

const LISTERS: {
  readonly [Name in ListName]: (request: VerbRequest<ListFlag>) => Items<Name> | KnownItems<Name>;
} = { markets, datasets, symbols, periods };

/** Yields the items of a list. Throws usage errors, and `unreachable` if the listing of the archive is not available. */
export async function* listItems<Name extends ListName>(
  name: Name,
  request: VerbRequest<ListFlag>,
): Items<Name> {
  return yield* LISTERS[name](request);
}
