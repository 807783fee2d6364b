/** The series of an export, in groups, its range, its settings, and the folder of its files. */
import { readFile } from 'node:fs/promises';
import type { DayRange } from '../catalogue/spans.js';
import { refuseFile } from '../lake/layout.js';
import { errnoOf, usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { FlagName } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import type { VerbRequest } from '../options/verb-request.js';
import { isRangeGiven, resolveRange } from '../select/date-range.js';
import { filterHeldSeries, readVerbLake, selectGiven } from '../select/held-series.js';
import type { VerbLake } from '../select/held-series.js';
import { refuseInLake } from '../select/refuse-in-lake.js';
import { isAll } from '../select/select-datasets.js';
import { parseAssets } from '../source/binance/exchange-info.js';
import { intervalMs } from '../source/venue.js';
import { reasonOf } from '../text/path-faults.js';
import { absolutePath, shownPath } from '../text/printable.js';
import type { Engine, EngineSettings } from './export-file.js';

export interface ExportSelection extends VerbLake {
  readonly selected: readonly Series[];
  /** Without a given range, all days. */
  readonly range: Partial<DayRange>;
  /** Why folders of series are left out: links, and files without a manifest. They were warned of. */
  readonly unread: readonly string[];
}

/** The series that flags select and that the engine has files for. Throws usage errors, also if there is none. */
export async function selectExport(request: VerbRequest, engine: Engine): Promise<ExportSelection> {
  const { resolved, observer, source, clock } = request;
  const { options, origins } = resolved;
  const { name, datasets, onlyNamed, anyInterval } = engine;
  const range = isRangeGiven(options) ? resolveRange(options, options.nowMs ?? clock.now(), source) : {};
  const unread: string[] = [];
  const lake = await readVerbLake(request, (message) => {
    unread.push(message);
    observer.warn(message);
  });
  const found = await selectGiven(lake.held, request, anyInterval);
  const chosen = datasets.includes(INDEX) ? [...found, ...indexesOf(found, lake.held, resolved)] : found;
  const named = origins.dataset === 'default' || isAll(options.dataset) ? undefined : options.dataset;
  const unknown = named?.find((dataset) => datasets.length > 0 && !datasets.includes(dataset));
  if (unknown !== undefined)
    throw usage(
      `export ${name} has no files for ${unknown}; it has files for ${datasets.join(', ')}`,
      'choose one of these with --dataset, or leave it out',
    );
  const taken = datasets.filter((dataset) => named !== undefined || !onlyNamed.includes(dataset));
  const selected = chosen.filter(({ dataset }) => datasets.length === 0 || taken.includes(dataset));
  if (selected.length > 0) return { ...lake, selected, range, unread };
  const others = [...new Set(chosen.map(({ dataset }) => dataset))];
  const left = onlyNamed.find((dataset) => others.includes(dataset));
  throw usage(
    `export ${name} takes ${taken.join(', ')}; ${options.out} holds ${others.join(', ')} of these symbols`,
    left === undefined ? undefined : `for trades, name them: --dataset ${left}`,
  );
}

const INDEX = 'indexPriceKlines';

/** The index prices of the pairs of these contracts: BTCUSD of BTCUSD_PERP. --symbols names contracts, so it leaves them out. */
function indexesOf(chosen: readonly Series[], held: readonly Series[], resolved: Resolved): Series[] {
  const pairs = new Set(chosen.map(pairName));
  const others = held.filter(
    (series) => series.dataset === INDEX && pairs.has(pairName(series)) && !chosen.includes(series),
  );
  if (others.length === 0) return [];
  const options = { ...resolved.options, quote: undefined };
  const all = filterHeldSeries(held, { ...resolved, options }, undefined, () => undefined);
  return others.filter((series) => all.includes(series));
}

/** `cm BTCUSD`, the pair of BTCUSD_PERP and BTCUSD_240329. */
function pairName({ market, symbol }: Series): string {
  return `${market} ${symbol.replace(/_.*/, '')}`;
}

/** In the order of the lake; in each group, bars come last. */
export function groupsOf(selected: readonly Series[], groupBy: Engine['groupBy']): Series[][] {
  const nameOf = groupBy === 'pair' ? pairName : (series: Series) => seriesName({ ...series, symbol: '' });
  const groups = new Map<string, Series[]>();
  for (const series of selected) groups.set(nameOf(series), [...(groups.get(nameOf(series)) ?? []), series]);
  return [...groups.values()].map((group) => group.sort((a, b) => rankOf(a) - rankOf(b)));
}

function rankOf({ dataset }: Series): number {
  return dataset === 'bars' ? 1 : 0;
}

/** The absolute path of the target. Throws usage errors for a missing --target, for a file, and for a folder in the lake. */
export async function targetFolder(
  engine: string,
  { source, resolved, surroundings }: VerbRequest,
): Promise<string> {
  const { target, out } = resolved.options;
  if (target === undefined)
    throw usage(
      `export ${engine} needs --target, the folder for its files; --out is the lake`,
      `for example --target ${engine === 'freqtrade' ? 'user_data/data/binance' : engine}`,
    );
  if (/^s3:/i.test(target))
    throw usage(
      `--target ${target}: export writes to local folders only`,
      'copy the folder into the bucket afterwards',
    );
  const path = absolutePath(target, surroundings.home);
  refuseFile(path, '--target');
  await refuseInLake(path, absolutePath(out, surroundings.home), source.name);
  return path;
}

/** Flags that only one engine reads. */
const FLAGS_OF: Readonly<Partial<Record<FlagName, string>>> = {
  'mark-interval': 'freqtrade',
  'exchange-info': 'freqtrade',
  columns: 'csv',
  delimiter: 'csv',
  'time-format': 'csv',
  'one-file': 'csv',
};

/** The options that engines read. Throws usage errors, also for a flag of another engine. */
export async function settingsOf(
  engine: string,
  { resolved: { options, origins }, surroundings }: VerbRequest,
): Promise<EngineSettings> {
  for (const [flag, owner] of Object.entries(FLAGS_OF))
    if (origins[flag as FlagName] === 'flag' && owner !== engine)
      throw usage(`--${flag} is for export ${owner}, not for export ${engine}`, `leave --${flag} out`);
  const wrong = options.markInterval.find((interval) => !(intervalMs(interval) > 0));
  if (wrong !== undefined)
    throw usage(
      `--mark-interval: "${wrong}" is not an interval like 1h or 8h`,
      'for example --mark-interval 1h,8h',
    );
  const { exchangeInfo } = options;
  if (exchangeInfo === undefined) return { ...options, assets: new Map() };
  return { ...options, assets: await readAssets(absolutePath(exchangeInfo, surroundings.home)) };
}

async function readAssets(path: string): Promise<EngineSettings['assets']> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw usage(
      `--exchange-info ${shownPath(path)} cannot be read (${reasonOf(errnoOf(error))})`,
      'name a file with an answer of exchangeInfo',
    );
  });
  const assets = parseAssets(text);
  if (assets === undefined)
    throw usage(
      `--exchange-info ${shownPath(path)} is not an answer of exchangeInfo: it has no list of symbols with baseAsset and quoteAsset`,
      'save one: curl https://fapi.binance.com/fapi/v1/exchangeInfo > exchangeInfo.json',
    );
  return assets;
}
