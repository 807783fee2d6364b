/** `cryptodl list markets|datasets|symbols|periods`: prints one item per line. */
import { listName, type ListName } from '../../plan/options/periods.js';
import { forEachItem } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbCall, VerbInput } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { withLog } from '../../run/report/log.js';
import type { ExitCode } from '../../model/exit-code.js';
import { numberText } from '../../model/units.js';
import { printable, printLines, tabbed } from '../../text/printable.js';
import { table } from '../../text/table.js';
import { widthOf } from '../../text/wrap.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { listPeriods, listSymbols } from './list-archive.js';
import { textOf } from './list-items.js';
import type { ListItems, KnownListItems, ListFlag, ListItem, Ends } from './list-items.js';
import { reachText } from '../../exchange/describe.js';
import { datasetsOf, intervalsOf, isArchived, isMade, marketNames } from '../../exchange/exchange-spec.js';
import type { DatasetSpec, ExchangeSpec } from '../../exchange/exchange-spec.js';
import { periodText } from '../../model/calendar.js';
import type { Cadence, Market } from '../../model/task.js';
import { marketsOf } from '../../plan/select/select-datasets.js';

/** `operand`: `markets`, `datasets`, `symbols` or `periods`. Throws usage errors. */
export async function list(command: VerbCall<ListFlag | 'json' | 'quiet'>): Promise<ExitCode> {
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
  readonly [Name in ListName]: (request: VerbRequest<ListFlag>) => ListItems<Name> | KnownListItems<Name>;
} = { markets: listMarkets, datasets: listDatasets, symbols: listSymbols, periods: listPeriods };

/** Yields the items of a list. Throws usage errors, and `unreachable` if the listing of the archive is not available. */
export async function* listItems<Name extends ListName>(
  name: Name,
  request: VerbRequest<ListFlag>,
): ListItems<Name> {
  return yield* LISTERS[name](request);
}

function* listMarkets({ exchange }: VerbRequest<never>): KnownListItems<'markets'> {
  for (const [market, { title, datasets: has }] of Object.entries(exchange.markets)) {
    const names = Object.keys(has);
    yield { cells: [market, title, names.join(',')], fields: { market, title, datasets: names } };
  }
  return [];
}

/** Datasets of the markets of `--market`, else of all markets. */
function* listDatasets({ exchange, resolved }: VerbRequest<'market'>): KnownListItems<'datasets'> {
  const { options, origins } = resolved;
  for (const market of origins.market === 'default' ? marketNames(exchange) : marketsOf(exchange, options)) {
    for (const spec of datasetsOf(exchange, market)) {
      const { name, title, cadences, partition, removed } = spec;
      const intervals = intervalsOf(spec) ?? [];
      const rest = spec.rest !== undefined;
      const sources = isMade(spec) ? 'lake' : [...cadences, ...(rest ? ['rest'] : [])].join(',');
      const span = spanText(exchange, market, spec);
      const ends = cadences.map((cadence): [Cadence, Ends] => {
        const { first, last } = spec.spans[cadence] ?? {};
        return [cadence, { first: textOf(first), last: textOf(last) }];
      });
      const where = { dataset: name, market, title, cadences: Object.fromEntries(ends), rest };
      yield {
        cells: [name, market, sources, span, intervals.join(',') || '-', title],
        fields: { ...where, intervals, partition, removed },
      };
    }
  }
  return [];
}

function spanText(exchange: ExchangeSpec, market: Market, spec: DatasetSpec): string {
  if (isMade(spec)) return 'made by cryptodl bars';
  if (!isArchived(spec)) return reachText(exchange, market, spec);
  const { first, last } = spec.spans[spec.cadences[0] ?? 'daily'] ?? {};
  const end = spec.removed ? 'removed' : last === undefined ? 'now' : periodText(last);
  return `${first === undefined ? '?' : periodText(first)}…${end}`;
}
