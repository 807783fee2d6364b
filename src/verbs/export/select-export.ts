/** What an export writes: the selected series, and the assets of `--exchange-info`. */
import { readFile } from 'node:fs/promises';
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { usage } from '../../model/errors.js';
import { layerName, type Series } from '../../model/task.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { nowMsOf, type HeldFlag, type RangeFlag, type VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange } from '../../plan/select/date-range.js';
import { filterHeldSeries, readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { isAll } from '../../plan/select/select-datasets.js';
import { reasonOf } from '../../text/path-faults.js';
import { absolutePath, shownPath } from '../../text/printable.js';
import { exportedDaysOf, lakeFilesOf } from './export-file.js';
import type {
  ExportProgram,
  ProgramFlag,
  ProgramInput,
  ExportFile,
  Refused,
  SeriesRows,
} from './export-file.js';
import { grouped } from '../../model/by-name.js';

export type ExportFlag =
  HeldFlag | RangeFlag | ProgramFlag | 'dry-run' | 'exchange-info' | 'force' | 'now' | 'target' | 'temp-dir';

export type ExportCommand = VerbCall<ExportFlag | 'json' | 'quiet' | 'require-complete'>;

export type ExportSelection = Readonly<Awaited<ReturnType<typeof selectExport>>>;

/** The series that flags select and that the program has files for. Throws usage errors, also if there is none. */
export async function selectExport(request: VerbRequest<ExportFlag>, program: ExportProgram) {
  const { resolved, observer, exchange } = request;
  const { options, origins } = resolved;
  const { name, datasets, onlyNamed = [], anyInterval } = program;
  const assets = await assetsOf(request);
  // Without a given range, all days.
  const range: Partial<DayRange> = givenRange(options, nowMsOf(request), exchange) ?? {};
  // Why folders of series are left out: links, and files without a manifest.
  const unread: string[] = [];
  const lake = await readVerbLake(request, (message) => {
    unread.push(message);
    observer.warn(message);
  });
  const found = await selectGiven(lake.held, request, anyInterval);
  const chosen = datasets.includes(INDEX) ? [...found, ...indexesOf(found, lake.held, request)] : found;
  const named = origins.dataset === 'default' || isAll(options.dataset) ? undefined : options.dataset;
  const unknown = named?.find((dataset) => datasets.length > 0 && !datasets.includes(dataset));
  if (unknown !== undefined)
    throw usage(
      `export ${name} has no files for ${unknown}; it has files for ${datasets.join(', ')}`,
      'choose one of these with --dataset, or leave it out',
    );
  const taken = datasets.filter((dataset) => named !== undefined || !onlyNamed.includes(dataset));
  const selected = chosen.filter(({ dataset }) => datasets.length === 0 || taken.includes(dataset));
  if (selected.length > 0) {
    // Also aborts the export when its lock is lost.
    const stop = new AbortController();
    const signal = AbortSignal.any([request.signal, stop.signal]);
    const catalogue = openCatalogue(lake.root, exchange, signal);
    const about = { ...lake, program, assets, selected, range, unread };
    return { ...about, request: { ...request, signal }, stop, catalogue };
  }
  const others = [...new Set(chosen.map(({ dataset }) => dataset))];
  const left = onlyNamed.find((dataset) => others.includes(dataset));
  throw usage(
    `export ${name} takes ${taken.join(', ')}; ${options.out} holds ${others.join(', ')} of these symbols`,
    left === undefined ? 'download one of these first' : `for trades, name them: --dataset ${left}`,
  );
}

const INDEX = 'indexPriceKlines';

/** The index prices of the pairs of these contracts: BTCUSD of BTCUSD_PERP. --symbols names contracts, so it leaves them out. */
function indexesOf(
  chosen: readonly Series[],
  held: readonly Series[],
  { resolved }: VerbRequest<HeldFlag>,
): readonly Series[] {
  const pairs = new Set(chosen.map(pairName));
  const isOther = (series: Series): boolean =>
    series.dataset === INDEX && pairs.has(pairName(series)) && !chosen.includes(series);
  if (!held.some(isOther)) return [];
  const options = { ...resolved.options, quote: [] };
  return filterHeldSeries(held, { ...resolved, options }).filter(isOther);
}

/** `cm BTCUSD`, the pair of BTCUSD_PERP and BTCUSD_240329. */
const pairName = ({ market, symbol }: Series): string => `${market} ${symbol.replace(/_.*/, '')}`;

/** The assets of the answer that --exchange-info names. Throws usage errors. */
async function assetsOf({
  exchange,
  resolved: { options },
  surroundings,
}: VerbRequest<'exchange-info'>): Promise<ProgramInput['assets']> {
  if (options.exchangeInfo === undefined) return new Map();
  const path = absolutePath(options.exchangeInfo, surroundings.home);
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw usage(
      `--exchange-info ${shownPath(path)} cannot be read (${reasonOf(error)})`,
      'name a file with an answer of exchangeInfo',
    );
  });
  const assets = exchange.rest.assetsIn(text);
  if (assets !== undefined) return assets;
  throw usage(
    `--exchange-info ${shownPath(path)} is not an answer of exchangeInfo: it has no list of symbols with baseAsset and quoteAsset`,
    'save one: curl https://fapi.binance.com/fapi/v1/exchangeInfo > exchangeInfo.json',
  );
}

/**
 * Yields the files of the selected series group by group, with the series that are left out. A series with a file that cannot be read would
 * have a hole that nothing shows, so it is left out.
 */
export async function* exportGroups(selection: ExportSelection) {
  const { program, assets, selected, range, catalogue } = selection;
  const { exchange, resolved } = selection.request;
  const nameOf = (series: Series): string =>
    program.groupBy === 'pair' ? pairName(series) : layerName(series);
  const taken = new Set<string>();
  for (const group of grouped(selected, nameOf).values()) {
    // Bars come last.
    const members = group.toSorted((a, b) => Number(a.dataset === 'bars') - Number(b.dataset === 'bars'));
    const sources: SeriesRows[] = [];
    const refused: Refused[] = [];
    for await (const { series, spec, files, fault } of catalogue.series(members)) {
      const refuse = (reason: string): void => void refused.push({ series, reason, isFault: true });
      if (spec === undefined) refuse('this version of cryptodl does not know the dataset');
      else if (fault !== undefined) refuse(fault);
      else if (files.length === 0) refuse('the lake has no Parquet or CSV files of it');
      else sources.push({ series, spec, files, range });
    }
    const withRows = sources.filter((source) => lakeFilesOf(source).length > 0);
    const files = program.files({ exchange, sources: withRows, options: resolved.options, assets });
    yield { series: members, items: [...refused, ...oneForEachPath(files, taken)] };
  }
}

/**
 * One file for each path that is not `taken` by another symbol: the one with the most days, of equally many days the first. Takes the paths. A
 * series that is in no file is refused if it has days that the file of its path lacks.
 */
function oneForEachPath(
  candidates: readonly (ExportFile | Refused)[],
  taken: Set<string>,
): readonly (ExportFile | Refused)[] {
  const all = candidates.flatMap((file) =>
    'path' in file ? [{ ...file, days: exportedDaysOf(file.sources) }] : [],
  );
  const chosen = new Map<string, (typeof all)[number]>();
  for (const file of all.toSorted((a, b) => b.days.length - a.days.length))
    if (!taken.has(file.path) && !chosen.has(file.path)) chosen.set(file.path, file);
  const written = new Set([...chosen.values()].flatMap(({ sources }) => sources.map(({ series }) => series)));
  const refused = new Map<Series, Refused>();
  for (const file of candidates) if ('reason' in file) refused.set(file.series, file);
  for (const { path, days, sources } of all) {
    const [source] = sources;
    const other = chosen.get(path);
    if (source === undefined || (other !== undefined && written.has(source.series))) continue;
    if (days.every((day) => other?.days.includes(day))) continue;
    const reason = 'files of another series have the same names, and lack days of this one';
    refused.set(source.series, { series: source.series, reason });
  }
  for (const path of chosen.keys()) taken.add(path);
  return [...refused.values(), ...all.filter((file) => chosen.get(file.path) === file)];
}
