/** The items of `cryptodl list`: markets, datasets, symbols and periods. */
import { openSession } from '../download/session.js';
import type { Session } from '../download/session.js';
import { dayText, periodText } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { ArchiveObject, Cadence, Market, Series, Period } from '../model/task.js';
import { bytesText } from '../model/units.js';
import type { ListName } from '../options/periods.js';
import { readPatterns } from '../options/symbols.js';
import type { SymbolPatterns } from '../options/symbols.js';
import type { VerbRequest } from '../options/verb-request.js';
import { listSeries } from '../plan/series-listing.js';
import { mapOrdered } from '../queue/in-order.js';
import { givenRange } from '../select/date-range.js';
import type { Range } from '../select/date-range.js';
import { chooseDatasets, marketsOf, datasetName, refuseEnded } from '../select/select-datasets.js';
import type { ChosenDataset } from '../select/select-datasets.js';
import { inKeyOrderOf, listedSymbols, selectSymbols } from '../select/select-symbols.js';
import { endedText, reachText } from '../source/describe.js';
import { asUnreachable } from '../source/listing.js';
import { datasetsOf, intervalsOf, isArchived, isMade, marketNames } from '../source/venue.js';
import type { DatasetSpec, Venue } from '../source/venue.js';

/** One item: cells for text, fields for programs. */
export interface ListItem<Fields = object> {
  readonly cells: readonly (string | number)[];
  readonly fields: Fields;
}

/** The fields of the items of each list. */
export interface ListFields {
  readonly markets: MarketItem;
  readonly datasets: DatasetItem;
  readonly symbols: SymbolItem;
  readonly periods: PeriodItem;
}

interface MarketItem {
  readonly market: Market;
  readonly title: string;
  readonly datasets: readonly string[];
}

interface DatasetItem {
  readonly dataset: string;
  readonly market: Market;
  readonly title: string;
  /** First and last period of the archive in each cadence: `2024-01-15` or `2024-01`; null if it is open or not known. */
  readonly cadences: Readonly<
    Partial<Record<Cadence, { readonly first: string | null; readonly last: string | null }>>
  >;
  /** Whether REST has it. */
  readonly rest: boolean;
  readonly intervals: readonly string[];
  /** The period of one file with `--partition auto`. */
  readonly partition: DatasetSpec['partition'];
  /** The exchange has stopped publishing it. */
  readonly removed: boolean;
}

/** The fields after `symbol` are present with `--long`. */
interface SymbolItem extends Partial<Extent> {
  readonly symbol: string;
}

/** First and last period, number and size of all objects of a symbol in the selected datasets. */
interface Extent {
  readonly first: string | null;
  readonly last: string | null;
  readonly objects: number;
  /** Sum of the sizes of the zips. */
  readonly bytes: number;
}

/** An object of the archive. */
interface PeriodItem
  extends Series, Pick<ArchiveObject, 'key' | 'bytes' | 'etag' | 'lastModified' | 'sidecarEtag'> {
  readonly cadence: Cadence;
  /** `2024-01-15` or `2024-01`. */
  readonly period: string;
}

/** The generator of a list returns further texts about the items. */
type Lister<Name extends ListName> = (
  request: VerbRequest,
) =>
  | Generator<ListItem<ListFields[Name]>, readonly string[]>
  | AsyncGenerator<ListItem<ListFields[Name]>, readonly string[]>;

const LISTERS: { readonly [Name in ListName]: Lister<Name> } = { markets, datasets, symbols, periods };

/** Yields the items of a list. Throws usage errors, and `unreachable` if the listing of the archive is not available. */
export async function* listItems<Name extends ListName>(
  name: Name,
  request: VerbRequest,
): AsyncGenerator<ListItem<ListFields[Name]>, readonly string[]> {
  return yield* LISTERS[name](request);
}

function* markets({ source }: VerbRequest): Generator<ListItem<MarketItem>, readonly string[]> {
  for (const [market, { title, datasets: has }] of Object.entries(source.markets)) {
    const names = Object.keys(has);
    yield { cells: [market, title, names.join(',')], fields: { market, title, datasets: names } };
  }
  return [];
}

/** Datasets of the markets of `--market`, else of all markets. */
function* datasets({ source, resolved }: VerbRequest): Generator<ListItem<DatasetItem>, readonly string[]> {
  const { options, origins } = resolved;
  for (const market of origins.market === 'default' ? marketNames(source) : marketsOf(source, options)) {
    for (const spec of datasetsOf(source, market)) {
      const intervals = intervalsOf(spec) ?? ['-'];
      const rest = spec.rest === undefined ? [] : ['rest'];
      const sources = isMade(spec) ? 'lake' : [...spec.cadences, ...rest].join(',');
      const span = spanText(source, market, spec);
      const cells = [spec.name, market, sources, span, intervals.join(','), spec.title];
      yield { cells, fields: datasetFields(market, spec) };
    }
  }
  return [];
}

function spanText(venue: Venue, market: Market, spec: DatasetSpec): string {
  if (isMade(spec)) return 'made by cryptodl bars';
  if (!isArchived(spec)) return reachText(venue, market, spec);
  const { first, last } = spec.spans[spec.cadences[0] ?? 'daily'] ?? {};
  const end = spec.removed ? 'removed' : last === undefined ? 'now' : periodText(last);
  return `${first === undefined ? '?' : periodText(first)}…${end}`;
}

function datasetFields(market: Market, spec: DatasetSpec): DatasetItem {
  const spanOf = (cadence: Cadence): DatasetItem['cadences'][Cadence] => {
    const { first, last } = spec.spans[cadence] ?? {};
    return { first: textOf(first), last: textOf(last) };
  };
  return {
    dataset: spec.name,
    market,
    title: spec.title,
    cadences: Object.fromEntries(spec.cadences.map((cadence) => [cadence, spanOf(cadence)])),
    rest: spec.rest !== undefined,
    intervals: intervalsOf(spec) ?? [],
    partition: spec.partition,
    removed: spec.removed,
  };
}

type ArchiveItems<Fields> = AsyncGenerator<ListItem<Fields>, readonly string[]>;

/** The items of `act`, with a session for the listing of the archive. */
async function* inArchive<Fields>(
  request: VerbRequest,
  act: (session: Session, chosen: readonly ChosenDataset[]) => ArchiveItems<Fields>,
): ArchiveItems<Fields> {
  const chosen = chooseDatasets(request.source, request.resolved.options);
  const session = openSession(request);
  try {
    await session.refuseBanned('list');
    return yield* act(session, chosen);
  } catch (error) {
    throw asUnreachable(error);
  } finally {
    await session.close();
  }
}

function symbols(request: VerbRequest): ArchiveItems<SymbolItem> {
  const { symbols: given, long } = request.resolved.options;
  return inArchive(request, async function* (session, chosen) {
    const patterns = given === undefined ? undefined : await readPatterns(given, request.read);
    const names = await symbolsIn(session, chosen, patterns);
    if (long)
      yield* mapOrdered(names, SERIES_AT_ONCE, async (symbol) => {
        const extent = await extentOf(session, chosen, symbol);
        const { first, last, objects, bytes } = extent;
        return { cells: [symbol, first ?? '-', last ?? '-', objects, bytes], fields: { symbol, ...extent } };
      });
    else for (const symbol of names) yield { cells: [symbol], fields: { symbol } };
    return [];
  });
}

/** Returns their range and size, and which of the datasets have ended. */
function periods(request: VerbRequest): ArchiveItems<PeriodItem> {
  const { options } = request.resolved;
  const given = options.symbols;
  if (given === undefined)
    throw usage('list periods needs --symbols', "--symbols BTCUSDT or --symbols '*USDT'");
  return inArchive(request, async function* (session, chosen) {
    const patterns = await readPatterns(given, request.read);
    const range = givenRange(options, session.nowMs, session.venue) ?? ALWAYS;
    let bytes = 0;
    let first = Number.POSITIVE_INFINITY;
    let last = 0;
    const names = await symbolsIn(session, chosen, patterns);
    for (const dataset of chosen) {
      const listed = mapOrdered(names, SERIES_AT_ONCE, (symbol) =>
        periodsOf(session, dataset, symbol, range),
      );
      for await (const ofSymbol of listed)
        for (const { series, object } of ofSymbol) {
          const { period, key } = object;
          bytes += object.bytes ?? 0;
          first = Math.min(first, period.from);
          last = Math.max(last, period.to);
          const text = periodText(period);
          yield {
            cells: [text, period.cadence, object.bytes ?? 0, key],
            fields: { ...series, cadence: period.cadence, ...object, period: text },
          };
        }
    }
    const ends = chosen.flatMap(({ market, spec }) => endedText(session.venue, market, spec.name) ?? []);
    return [
      ...(last > 0 ? [`${dayText(first)} … ${dayText(last - 1)}, ${bytesText(bytes)}`] : []),
      ...new Set(ends),
    ];
  });
}

// Symbols and objects from the listing of the archive.

/** The archive of a session. */
type Catalog = Pick<Session, 'listing' | 'observer' | 'options' | 'venue'>;

/** No limit in time. */
const ALWAYS: Pick<Range, 'from' | 'to'> = { to: Number.MAX_SAFE_INTEGER };

const SERIES_AT_ONCE = 16;

/**
 * The selected symbols of the datasets, in key order. Rejects with usage errors if the archive lists no symbol of a removed dataset, or of all
 * datasets together; for unknown symbols, unless `skipUnknown`; and if the patterns select nothing.
 */
async function symbolsIn(
  session: Catalog,
  chosen: readonly ChosenDataset[],
  patterns: SymbolPatterns | undefined,
): Promise<readonly string[]> {
  const listed = await listedSymbols(session, chosen);
  for (const dataset of chosen)
    if (listed.get(dataset.spec)?.size === 0 && dataset.spec.removed) refuseEnded(session.venue, dataset);
  const found = inKeyOrderOf(listed);
  const what = chosen.map(datasetName).join(', ');
  if (found.length === 0) throw usage(`the archive lists no symbol of ${what}`);
  const all = patterns ?? { names: [], globs: ['*'], exclusions: [] };
  const { quote = [], skipUnknown } = session.options;
  const selected = selectSymbols(all, quote, found, { what, skipUnknown });
  for (const warning of selected.warnings) session.observer.warn(warning);
  return selected.symbols;
}

function textOf(period: Period | undefined): string | null {
  return period === undefined ? null : periodText(period);
}

async function extentOf(session: Catalog, chosen: readonly ChosenDataset[], symbol: string): Promise<Extent> {
  let first: ArchiveObject | undefined;
  let last: ArchiveObject | undefined;
  let objects = 0;
  let bytes = 0;
  for (const dataset of chosen) {
    for (const { object } of await periodsOf(session, dataset, symbol, ALWAYS)) {
      if (first === undefined || object.period.from < first.period.from) first = object;
      if (last === undefined || object.period.to > last.period.to) last = object;
      objects += 1;
      bytes += object.bytes ?? 0;
    }
  }
  return { first: textOf(first?.period), last: textOf(last?.period), objects, bytes };
}

async function periodsOf(
  session: Catalog,
  { market, spec, interval, cadences }: ChosenDataset,
  symbol: string,
  range: Pick<Range, 'from' | 'to'>,
): Promise<{ series: Series; object: ArchiveObject }[]> {
  const ofInterval = interval === undefined ? {} : { interval };
  const series: Series = { market, dataset: spec.name, ...ofInterval, symbol };
  const { from, to } = range;
  const found: { series: Series; object: ArchiveObject }[] = [];
  for (const cadence of cadences) {
    // `today` serves reasons of absence, which are not needed here: with the largest day, the walk begins no earlier for them.
    const want = { ...(from === undefined ? {} : { from }), to, today: Number.MAX_SAFE_INTEGER };
    const listing = await listSeries(session.listing, session.venue, series, cadence, want);
    // The walk begins with the month of `from`, and ends with one object after the range.
    for (const object of listing.objects.values()) {
      if (object.period.to > (from ?? 0) && object.period.from < to) found.push({ series, object });
    }
  }
  return found;
}
