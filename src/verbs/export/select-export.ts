/** What an export writes: the selected series, and the assets of `--exchange-info`. */
import { readFile } from 'node:fs/promises';
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { errnoOf, usage } from '../../model/errors.js';
import type { Series } from '../../model/task.js';
import type { Command } from '../../run/verb/verb.js';
import type { HeldFlag, RangeFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange } from '../../plan/select/date-range.js';
import { filterHeldSeries, readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { isAll } from '../../plan/select/select-datasets.js';
import { parseAssets } from '../../exchange/binance/exchange-info.js';
import { reasonOf } from '../../text/path-faults.js';
import { absolutePath, shownPath } from '../../text/printable.js';
import type { ExportProgram, ProgramFlag, ProgramInput } from './export-file.js';

export type ExportFlag =
  HeldFlag | RangeFlag | ProgramFlag | 'dry-run' | 'exchange-info' | 'force' | 'now' | 'target' | 'temp-dir';

export type ExportCommand = Command<ExportFlag | 'json' | 'quiet' | 'require-complete'>;

export type Export = Readonly<Awaited<ReturnType<typeof selectExport>>>;

/** The series that flags select and that the program has files for. Throws usage errors, also if there is none. */
export async function selectExport(request: VerbRequest<ExportFlag>, program: ExportProgram) {
  const { resolved, observer, exchange, clock } = request;
  const { options, origins } = resolved;
  const { name, datasets, onlyNamed = [], anyInterval } = program;
  const assets = await assetsOf(request);
  // Without a given range, all days.
  const range: Partial<DayRange> = givenRange(options, options.nowMs ?? clock.now(), exchange) ?? {};
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
    left === undefined ? undefined : `for trades, name them: --dataset ${left}`,
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
  const options = { ...resolved.options, quote: undefined };
  return filterHeldSeries(held, { ...resolved, options }).filter(isOther);
}

/** `cm BTCUSD`, the pair of BTCUSD_PERP and BTCUSD_240329. */
export function pairName({ market, symbol }: Series): string {
  return `${market} ${symbol.replace(/_.*/, '')}`;
}

/** The assets of the answer that --exchange-info names. Throws usage errors. */
async function assetsOf({
  resolved: { options },
  surroundings,
}: VerbRequest<'exchange-info'>): Promise<ProgramInput['assets']> {
  if (options.exchangeInfo === undefined) return new Map();
  const path = absolutePath(options.exchangeInfo, surroundings.home);
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw usage(
      `--exchange-info ${shownPath(path)} cannot be read (${reasonOf(errnoOf(error))})`,
      'name a file with an answer of exchangeInfo',
    );
  });
  const assets = parseAssets(text);
  if (assets !== undefined) return assets;
  throw usage(
    `--exchange-info ${shownPath(path)} is not an answer of exchangeInfo: it has no list of symbols with baseAsset and quoteAsset`,
    'save one: curl https://fapi.binance.com/fapi/v1/exchangeInfo > exchangeInfo.json',
  );
}
