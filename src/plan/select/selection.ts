/** The selection of a run: the contexts in which it is made, its parts, and its description. */
import type { Quota } from '../../http/throttle/exchange-hosts.js';
import type { LakePaths } from '../../lake/layout.js';
import type { OrderChange } from '../../lake/change-orders.js';
import type { OrderTerms } from '../../lake/order.js';
import type { Observer } from '../../model/observer.js';
import type { Settings } from '../../model/task.js';
import { durationText, listText, numberText } from '../../model/units.js';
import type { RunFlag } from '../options/verb-request.js';
import type { FlagName, Options } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import { emptyShardText, isInShard } from '../options/shard.js';
import type { SelectedSeries } from '../series-request.js';
import { cadencesOf } from '../../exchange/keys.js';
import type { Listing } from '../../exchange/listing.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { Rest } from '../../exchange/rest-api.js';
import { defaultPartition, type DatasetSpec } from '../../exchange/exchange-spec.js';
import type { Range } from './date-range.js';
import type { ChosenDataset } from './select-datasets.js';

/** For checks of options, without archive and lake. */
export interface SelectionContext<Names extends FlagName = RunFlag> {
  readonly options: Options<Names>;
  readonly exchange: Exchange;
  /** The time of --now, or of the clock. */
  readonly nowMs: number;
}

export interface LakeContext<Names extends FlagName = RunFlag> extends SelectionContext<Names> {
  readonly paths: Pick<LakePaths, 'root' | 'folder'>;
  readonly observer: Pick<Observer, 'warn'>;
}

export interface SymbolContext extends LakeContext {
  readonly listing: Listing;
  readonly rest: Pick<Rest, 'symbols'>;
}

/** The range and the datasets of a download, before its symbols are known. */
export interface ParsedOptions {
  readonly range: Range;
  readonly datasets: readonly ChosenDataset[];
}

/** The verbs that select series of the exchange: `vision` those of the archive, `metrics` those of REST. */
export type DownloadVerb = 'vision' | 'metrics';

/** The verb that defines the options of a run. `retry` uses the options of the run that it repeats. */
export type RunVerb = DownloadVerb | 'repair';

/** The selected series of a run, before planning, and their description. */
export interface RunSelection {
  readonly verb: RunVerb | 'retry';
  readonly requests: readonly SelectedSeries[];
  /** Set for a download with symbols: it leaves orders in the lake. */
  readonly order?: OrderTerms;
  /** Set for a download without symbols: changes the open orders whose globs select further symbols now. */
  readonly grown?: OrderChange;
  /** False when it is already known that the listing is not available. */
  readonly hasListing: boolean;
  /** `um klines 1m` */
  readonly what: string;
  readonly range: string;
  /** Printed in the plan block instead of the number of series and the range, if there are no series. */
  readonly idle?: string | undefined;
  /** Lines for the plan block. */
  readonly notes: readonly string[];
}

export function ofShard(
  { options: { shard }, exchange }: Pick<SelectionContext, 'options' | 'exchange'>,
  selection: RunSelection,
): RunSelection {
  if (shard === undefined) return selection;
  return {
    ...selection,
    what: `${selection.what}, shard ${shard.text}`,
    requests: selection.requests.filter(({ series }) => isInShard(shard, exchange, series)),
    // A selection among the series of a lake has only series of the shard, and says why it is empty.
    idle: selection.requests.length > 0 ? emptyShardText(shard) : selection.idle,
  };
}

/** The settings of the flags for a series. A dataset with a single cadence gets that cadence. */
export function settingsOf(
  context: SelectionContext,
  spec: DatasetSpec,
  interval: string | undefined,
): Settings {
  const { options } = context;
  const exist = cadencesOf(spec, interval);
  return {
    format: options.format,
    partition: options.partition === 'auto' ? defaultPartition(spec, interval) : options.partition,
    cadence: exist.length === 1 ? (exist[0] ?? 'auto') : options.cadence,
    numbers: options.numbers,
    timestamps: options.timestamps,
    asPublished: options.asPublished,
  };
}

export const givenFlags = ({ origins }: Resolved<never>): ReadonlySet<string> =>
  new Set(Object.entries(origins).flatMap(([name, origin]) => (origin === 'default' ? [] : [name])));

export function givenSettings(given: ReadonlySet<string>): ReadonlySet<keyof Settings> {
  const settings = ['format', 'partition', 'cadence', 'numbers', 'timestamps'] as const;
  const names = settings.filter((name) => given.has(name));
  return new Set(given.has('as-published') ? [...names, 'asPublished' as const] : names);
}

/** `um klines 1m` */
export function describeDatasets(datasets: readonly ChosenDataset[]): string {
  const names = new Set(datasets.map(({ spec }) => spec.name));
  const intervals = new Set(datasets.flatMap((dataset) => dataset.interval ?? []));
  const markets = new Set(datasets.map(({ market }) => market));
  const parts = [[...markets].join(','), listText(names, 6), listText(intervals, 6)];
  return parts.filter((part) => part !== '').join(' ');
}

/** The line with the requests to REST per bucket, and the shortest time that the rate limits allow. */
export function requestNotes(
  buckets: Readonly<Record<string, Quota>>,
  requests: Readonly<Record<string, number>>,
): string[] {
  const parts = Object.entries(requests).flatMap(([name, weight]) => {
    const bucket = buckets[name];
    if (bucket === undefined || !('permits' in bucket)) return [];
    const { permits, windowSeconds } = bucket;
    const limit = `${numberText(permits)} in ${durationText(windowSeconds * 1000)}`;
    // The number of trades is not known before the download.
    const least = name === 'futures' || name === 'spot' ? 'at least ' : '';
    const text = `${least}${numberText(weight)} ${name} (${limit})`;
    // The first window needs no wait.
    const windows = Math.ceil(weight / permits) - 1;
    return [{ text, minMs: windows * windowSeconds * 1000 }];
  });
  if (parts.length === 0) return [];
  const minMs = Math.max(...parts.map((part) => part.minMs));
  const time = minMs === 0 ? 'no wait' : `about ${durationText(minMs)}`;
  return [`requests   ${parts.map(({ text }) => text).join(', ')}: ${time}`];
}
