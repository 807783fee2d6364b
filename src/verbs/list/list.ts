/** `cryptodl list markets|datasets|symbols|periods`: prints one item per line. */
import { SERIES_AT_ONCE } from '../../plan/plan.js';
import { listName, type ListName } from '../../plan/options/periods.js';
import { forEachItem } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbCall, VerbInput } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { withLog } from '../../run/report/log.js';
import type { ExitCode } from '../../model/exit-code.js';
import { numberText, bytesText } from '../../model/units.js';
import { printable, printLines, tabbed } from '../../text/printable.js';
import { table } from '../../text/table.js';
import { widthOf } from '../../text/wrap.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { textOf } from './list-items.js';
import type { ListItems, KnownListItems, ListFlag, ListItem, Ends, Extent } from './list-items.js';
import { reachText, endedText } from '../../exchange/describe.js';
import { datasetsOf, intervalsOf, isArchived, isMade, marketNames } from '../../exchange/exchange-spec.js';
import type { DatasetSpec, ExchangeSpec } from '../../exchange/exchange-spec.js';
import { periodText, dayText } from '../../model/calendar.js';
import type { Cadence, Market, SourceObject, Series } from '../../model/task.js';
import { marketsOf, chooseDatasets, refuseEnded, datasetName } from '../../plan/select/select-datasets.js';
import type { ChosenDataset } from '../../plan/select/select-datasets.js';
import { usage } from '../../model/errors.js';
import { mapOrdered } from '../../model/in-order.js';
import { givenRange, type Range } from '../../plan/select/date-range.js';
import { listedSymbols, inKeyOrderOf } from '../../plan/select/choose-symbols.js';
import { selectSymbols } from '../../plan/select/match-symbols.js';
import { listSeries } from '../../plan/series-listing.js';
import { openSession, type Session } from '../../run/session/session.js';
import { asUnreachable } from '../../exchange/listing.js';

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

// The lists of the archive: symbols and periods.

/** The items of `act`, with a session for the listing of the archive, and the selected symbols. */
async function* inArchive<Name extends ListName>(
  request: VerbRequest<ListFlag>,
  act: (session: Session, chosen: readonly ChosenDataset[], names: readonly string[]) => ListItems<Name>,
): ListItems<Name> {
  const chosen = chooseDatasets(request.exchange, request.resolved.options);
  const session = openSession(request);
  try {
    await session.refuseBanned('list');
    return yield* act(session, chosen, await symbolsIn(session, chosen));
  } catch (error) {
    throw asUnreachable(error);
  } finally {
    await session.close();
  }
}

function listSymbols(request: VerbRequest<ListFlag>): ListItems<'symbols'> {
  const { long } = request.resolved.options;
  return inArchive(request, async function* (session, chosen, names) {
    yield* mapOrdered(names, SERIES_AT_ONCE, async (symbol) => {
      if (!long) return { cells: [symbol], fields: { symbol } };
      const extent = await extentOf(session, chosen, symbol);
      const { first, last, objects, bytes } = extent;
      return { cells: [symbol, first ?? '-', last ?? '-', objects, bytes], fields: { symbol, ...extent } };
    });
    return [];
  });
}

/** Returns their range and size, and which of the datasets have ended. */
function listPeriods(request: VerbRequest<ListFlag>): ListItems<'periods'> {
  const { options } = request.resolved;
  if (options.symbols === undefined)
    throw usage('list periods needs --symbols', "--symbols BTCUSDT or --symbols '*USDT'");
  return inArchive(request, async function* (session, chosen, names) {
    const range = givenRange(options, session.nowMs, session.exchange) ?? ALWAYS;
    let [sum, first, last] = [0, Infinity, 0];
    for (const dataset of chosen) {
      const listed = mapOrdered(names, SERIES_AT_ONCE, (symbol) =>
        periodsOf(session, dataset, symbol, range),
      );
      for await (const ofSymbol of listed)
        for (const { series, object } of ofSymbol) {
          const { key, bytes = 0 } = object;
          const { cadence, from, to } = object.period;
          sum += bytes;
          first = Math.min(first, from);
          last = Math.max(last, to);
          const period = periodText(object.period);
          yield { cells: [period, cadence, bytes, key], fields: { ...series, cadence, ...object, period } };
        }
    }
    const ends = chosen.flatMap(({ market, spec }) => endedText(session.exchange, market, spec.name) ?? []);
    return [
      ...(last > 0 ? [`${dayText(first)} … ${dayText(last - 1)}, ${bytesText(sum)}`] : []),
      ...new Set(ends),
    ];
  });
}

/** No limit in time. */
const ALWAYS: Pick<Range, 'from' | 'to'> = { to: Number.MAX_SAFE_INTEGER };

/**
 * The selected symbols of the datasets, in key order. Rejects with usage errors if the archive lists no symbol of a removed dataset, or of all
 * datasets together; for unknown symbols, unless `skipUnknown`; and if the patterns select nothing.
 */
async function symbolsIn(
  session: Session<'quote' | 'skip-unknown' | 'symbols'>,
  chosen: readonly ChosenDataset[],
): Promise<readonly string[]> {
  const { quote, skipUnknown, symbols: given } = session.options;
  const every = { names: [], globs: ['*'], exclusions: [] };
  const patterns = (await given?.patterns()) ?? every;
  const listed = await listedSymbols(session, chosen);
  for (const dataset of chosen)
    if (listed.get(dataset.spec)?.size === 0 && dataset.spec.removed) refuseEnded(session.exchange, dataset);
  const found = inKeyOrderOf(listed);
  const what = chosen.map(datasetName).join(', ');
  if (found.length === 0) throw usage(`the archive lists no symbol of ${what}`, 'cryptodl list datasets');
  const warn = session.observer.warn.bind(session.observer);
  return selectSymbols(patterns, quote, found, { what, skipUnknown, warn });
}

async function extentOf(session: Session, chosen: readonly ChosenDataset[], symbol: string): Promise<Extent> {
  const listed: SourceObject[] = [];
  for (const dataset of chosen)
    for (const { object } of await periodsOf(session, dataset, symbol, ALWAYS)) listed.push(object);
  return {
    first: textOf(listed.toSorted((a, b) => a.period.from - b.period.from)[0]?.period),
    last: textOf(listed.toSorted((a, b) => b.period.to - a.period.to)[0]?.period),
    objects: listed.length,
    bytes: listed.reduce((sum, { bytes = 0 }) => sum + bytes, 0),
  };
}

async function periodsOf(
  session: Session,
  { market, spec, interval, cadences }: ChosenDataset,
  symbol: string,
  range: Pick<Range, 'from' | 'to'>,
): Promise<{ series: Series; object: SourceObject }[]> {
  const series: Series = { market, dataset: spec.name, ...(interval && { interval }), symbol };
  const { from = 0, to } = range;
  // `today` serves reasons of absence, which are not needed here: with the largest day, the walk begins no earlier for them.
  const want = { ...range, today: Number.MAX_SAFE_INTEGER };
  const found: SourceObject[] = [];
  for (const cadence of cadences) {
    const listing = await listSeries(session.listing, session.exchange, series, cadence, want);
    // The walk begins with the month of `from`, and ends with one object after the range.
    for (const object of listing.objects.values())
      if (object.period.to > from && object.period.from < to) found.push(object);
  }
  return found.map((object) => ({ series, object }));
}
