/** The lists of the archive: symbols and periods. */
import { endedText } from '../../exchange/describe.js';
import { periodText, dayText } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import { mapOrdered } from '../../model/in-order.js';
import type { SourceObject, Series } from '../../model/task.js';
import { bytesText } from '../../model/units.js';
import type { ListName } from '../../plan/options/periods.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange, type Range } from '../../plan/select/date-range.js';
import { listedSymbols, inKeyOrderOf } from '../../plan/select/choose-symbols.js';
import { selectSymbols } from '../../plan/select/match-symbols.js';
import { chooseDatasets, refuseEnded, datasetName } from '../../plan/select/select-datasets.js';
import type { ChosenDataset } from '../../plan/select/select-datasets.js';
import { listSeries } from '../../plan/series-listing.js';
import { openSession, type Session } from '../../run/session/session.js';
import { textOf, type Extent, type ListItems, type ListFlag } from './list-items.js';
import { asUnreachable } from '../../exchange/listing.js';

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

export function listSymbols(request: VerbRequest<ListFlag>): ListItems<'symbols'> {
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
export function listPeriods(request: VerbRequest<ListFlag>): ListItems<'periods'> {
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
const SERIES_AT_ONCE = 16;

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
  if (found.length === 0) throw usage(`the archive lists no symbol of ${what}`);
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
