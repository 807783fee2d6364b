/** From the What and When flags to the series that are planned. */
import { join } from 'node:path';
import { dayText, monthOf, monthStart, parseDay } from '../calendar.js';
import { didYouMean } from '../did-you-mean.js';
import { CryptodlError, usage } from '../errors.js';
import { isListingFault } from '../plan/plan.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import { resolveRange } from '../plan/range.js';
import type { Range } from '../plan/range.js';
import { namesOnly, readPatterns, selectSymbols } from '../plan/symbols.js';
import type { ReadList, Selection, SymbolPatterns } from '../plan/symbols.js';
import type { Session } from '../session.js';
import { shownPath } from '../shown-path.js';
import type { Cadence, Format } from '../task.js';
import { cadencesOf, datasetPrefix } from '../venue/keys.js';
import { findDataset, intervalsOf } from '../venue/venue.js';
import type { DatasetSpec } from '../venue/venue.js';
import { continueLake } from './continue-lake.js';
import { settingsOf } from './settings-of.js';
import type { Wanted } from './wanted.js';

export async function chooseSeries(
  session: Session,
  read: ReadList,
  given: ReadonlySet<string>,
): Promise<Wanted> {
  const { options } = session;
  const range = resolveRange(options, session.nowMs, parseDay(session.venue.firstDay) ?? 0);
  const datasets = chooseDatasets(session);
  if (options.symbols === undefined) return continueLake(session, range, given);
  const patterns = await readPatterns(options.symbols, read);
  const { selection, available } = await selectFrom(session, patterns, datasets, range);
  const requests = datasets.flatMap((dataset) => {
    const has = available?.get(dataset.name);
    const symbols = selection.symbols.filter(
      (symbol) => has === undefined || has.has(symbol) || patterns.names.includes(symbol),
    );
    return symbols.map((symbol) => requestOf(session, dataset, symbol, range));
  });
  return {
    requests,
    hasListing: available !== undefined,
    ...describe(session, datasets),
    rangeText: range.text,
    notes: notesOf(selection, datasets, range),
  };
}

interface ChosenDataset {
  readonly name: string;
  readonly spec: DatasetSpec;
  readonly interval?: string;
  readonly cadences: readonly Cadence[];
}

/** Every dataset × interval. Throws usage errors for what the market does not have. */
function chooseDatasets(session: Session): ChosenDataset[] {
  const { market, dataset: names, interval: intervals } = session.options;
  const known = Object.keys(session.venue.markets[market].datasets);
  return names.flatMap((name) => {
    const spec = findDataset(session.venue, market, name);
    if (spec === undefined) {
      const has =
        known.length === 0 ? `${market} has no dataset in this version` : `${market} has ${known.join(', ')}`;
      throw usage(`--dataset: ${market} has no "${name}"; ${has}`, didYouMean(name, known));
    }
    if (spec.intervals === undefined) return [withCadences(session, { name, spec })];
    return intervals.map((interval) => {
      const all = intervalsOf(spec) ?? [];
      if (!all.includes(interval)) {
        throw usage(
          `--interval: ${market} ${name} has no "${interval}"; it has ${all.join(', ')}`,
          didYouMean(interval === '1M' ? '1mo' : interval, all),
        );
      }
      return withCadences(session, { name, spec, interval });
    });
  });
}

function withCadences(session: Session, dataset: Omit<ChosenDataset, 'cadences'>): ChosenDataset {
  const { cadence, market } = session.options;
  const cadences = cadencesOf(dataset.spec, dataset.interval, cadence);
  if (cadences.length > 0) return { ...dataset, cadences };
  const exist = cadencesOf(dataset.spec, dataset.interval);
  const what = [market, dataset.name, dataset.interval].filter((part) => part !== undefined).join(' ');
  throw usage(
    `--cadence ${cadence}: ${what} exists only ${exist.join(' and ')}`,
    `--cadence ${exist[0] ?? 'auto'}, or leave --cadence out`,
  );
}

/** Symbols that the archive has below the datasets' prefixes, by dataset. */
async function selectFrom(
  session: Session,
  patterns: SymbolPatterns,
  datasets: readonly ChosenDataset[],
  range: Range,
): Promise<{ selection: Selection; available: Map<string, ReadonlySet<string>> | undefined }> {
  const quotes = session.options.quote ?? [];
  const available = new Map<string, ReadonlySet<string>>();
  try {
    for (const dataset of datasets) {
      if (!available.has(dataset.name))
        available.set(dataset.name, await listSymbols(session, dataset, range));
    }
  } catch (error) {
    if (!isListingFault(error)) throw error;
    const selection = namesOnly(patterns, quotes);
    if (selection === undefined) {
      throw new CryptodlError(
        'unreachable',
        `the listing cannot be had, so ${patterns.globs.join(', ')} cannot be matched: ${error.message}`,
        {
          cause: error,
          hint: 'check the network and --listing-url, or name the symbols exactly',
        },
      );
    }
    session.reporter.warn(
      `the listing cannot be had (${error.message}): sidecars are probed by calendar instead`,
    );
    return { selection, available: undefined };
  }
  const all = new Set([...available.values()].flatMap((symbols) => [...symbols]));
  return { selection: selectSymbols(patterns, quotes, [...all]), available };
}

async function listSymbols(
  session: Session,
  dataset: ChosenDataset,
  range: Range,
): Promise<ReadonlySet<string>> {
  const touchesWholeMonth =
    range.from === undefined || monthStart(monthOf(range.from + 30) + 1) <= range.to + 31;
  const cadences = dataset.cadences.filter(
    (cadence) => cadence === 'daily' || !dataset.cadences.includes('daily') || touchesWholeMonth,
  );
  const symbols = new Set<string>();
  for (const cadence of cadences) {
    const prefix = datasetPrefix(session.venue, session.options.market, cadence, dataset.name);
    for await (const symbol of session.listing.folders(prefix)) symbols.add(symbol);
  }
  return symbols;
}

function requestOf(session: Session, dataset: ChosenDataset, symbol: string, range: Range): SeriesRequest {
  const { options } = session;
  const interval = dataset.interval === undefined ? {} : { interval: dataset.interval };
  return {
    series: { market: options.market, dataset: dataset.name, ...interval, symbol },
    settings: settingsOf(session, dataset.spec, dataset.interval),
    cadences: dataset.cadences,
    ranges: [{ from: range.from, to: range.to }],
  };
}

function describe(
  session: Session,
  datasets: readonly ChosenDataset[],
): Pick<Wanted, 'what' | 'dataPath' | 'query'> {
  const { options, paths, venue } = session;
  const names = [...new Set(datasets.map((dataset) => dataset.name))];
  const intervals = [...new Set(datasets.flatMap((dataset) => dataset.interval ?? []))];
  const what = [options.market, names.join(','), intervals.join(',')].filter((part) => part !== '').join(' ');
  if (options.format === 'zip')
    return { what, dataPath: join(paths.root, 'data'), query: `cryptodl serve ${shownPath(paths.root)}` };
  const market = join(paths.root, venue.name, options.market);
  const dataPath = names.length === 1 ? join(market, names[0] ?? '') : market;
  return { what, dataPath, query: queryOf(options.format, shownPath(join(market, names[0] ?? ''))) };
}

function queryOf(format: Format, folder: string): string {
  const reader = format === 'csv' ? 'read_csv' : 'read_parquet';
  return `SELECT symbol, count(*) FROM ${reader}('${folder.replaceAll("'", "''")}/**/*.${format}', hive_partitioning = true) GROUP BY symbol   -- in DuckDB`;
}

function notesOf(selection: Selection, datasets: readonly ChosenDataset[], range: Range): string[] {
  const notes: string[] = [];
  const { excluded } = selection;
  if (excluded.length > 0) {
    const more = excluded.length > 3 ? ', …' : '';
    notes.push(
      `excluded   ${excluded.length} symbol${excluded.length === 1 ? '' : 's'}: ${excluded.slice(0, 3).join(', ')}${more}`,
    );
  }
  const monthly = datasets.filter((dataset) => !dataset.cadences.includes('daily'));
  const names = [
    ...new Set(
      monthly.map((dataset) =>
        [dataset.name, dataset.interval].filter((part) => part !== undefined).join(' '),
      ),
    ),
  ];
  if (names.length > 0) {
    const first = range.from === undefined ? 'the start' : dayText(range.from).slice(0, 7);
    notes.push(
      `monthly    ${names.join(', ')}: every month that the range touches (${first} … ${dayText(range.to - 1).slice(0, 7)})`,
    );
  }
  return notes;
}
