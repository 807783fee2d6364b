/** `--market`, `--dataset`, `--interval` and `--cadence` → datasets. */
import { dayText } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { Cadence, Market, PlanTotals } from '../model/task.js';
import type { Verb } from '../options/flag-spec.js';
import type { Options } from '../options/flags.js';
import { endedText, endOfDataset, marketWith } from '../source/describe.js';
import { cadencesOf } from '../source/keys.js';
import { ALL } from '../source/names.js';
import {
  datasetsOf,
  findDataset,
  intervalsOf,
  isArchived,
  isMade,
  isMetric,
  marketNames,
} from '../source/venue.js';
import type { DatasetSpec, Venue } from '../source/venue.js';
import { nearest } from '../text/did-you-mean.js';
import { refuseInterval, replaced } from './refuse-interval.js';

/** A selected dataset of one market, with one of its intervals. */
export interface ChosenDataset {
  readonly market: Market;
  readonly spec: DatasetSpec;
  readonly interval?: string;
  /** The cadences in which the dataset exists and that --cadence allows. */
  readonly cadences: readonly Cadence[];
}

type Flags = Pick<Options, 'market' | 'dataset' | 'interval' | 'cadence'>;

/** The flags for a single market. `allowsMissing`: combinations that do not exist are left out. */
type MarketFlags = Omit<Flags, 'market'> & { readonly market: Market; readonly allowsMissing: boolean };

/** Where the data of a verb comes from. */
type Provider = 'archive' | 'rest';
const HAS: Readonly<Record<Provider, (spec: DatasetSpec) => boolean>> = {
  archive: isArchived,
  rest: isMetric,
};

/** Whether a list of values contains `all`. */
export function isAll(values: readonly string[]): boolean {
  return values.includes(ALL);
}

/** The markets of `--market`, each once. */
export function marketsOf(
  venue: Pick<Venue, 'markets'>,
  { market }: Pick<Options, 'market'>,
): readonly Market[] {
  return marketNames(venue).filter((name) => isAll(market) || market.includes(name));
}

/** The market of `--market`, for verbs that take one. Throws a usage error for several. */
export function oneMarket(
  venue: Pick<Venue, 'markets' | 'defaultMarket'>,
  options: Pick<Options, 'market'>,
  verb: Verb,
): Market {
  const selected = marketsOf(venue, options);
  const [first, second] = selected;
  if (first !== undefined && second === undefined) return first;
  const market = selected.find((name) => name === venue.defaultMarket) ?? first ?? venue.defaultMarket;
  throw usage(`--market ${options.market.join(',')}: ${verb} takes one market`, `--market ${market}`, {
    flags: { market },
  });
}

/**
 * All selected combinations of market, dataset and interval. With `all`, combinations that do not exist are left out. Throws
 * a usage error for a named combination that does not exist, and for a name that no market has.
 */
export function chooseDatasets(venue: Venue, flags: Flags, provider: Provider = 'archive'): ChosenDataset[] {
  const allowsMissing = isAll(flags.market);
  const markets = marketsOf(venue, flags);
  if (allowsMissing) refuseUnknownDatasets(venue, flags, provider);
  const chosen = markets.flatMap((market) =>
    chooseInMarket(venue, { ...flags, market, allowsMissing }, provider),
  );
  const exists = (interval: string): boolean =>
    interval === ALL || chosen.some((dataset) => dataset.interval === interval);
  const hasIntervals = chosen.some(({ interval }) => interval !== undefined);
  if (!allowsMissing || (chosen.length > 0 && (!hasIntervals || flags.interval.every(exists)))) return chosen;
  return refuseInAllMarkets(venue, flags, provider);
}

/** Throws the error of the first market that has one of the datasets. */
function refuseInAllMarkets(venue: Venue, flags: Flags, provider: Provider): never {
  const market =
    marketNames(venue).find((one) =>
      flags.dataset.some((name) => findDataset(venue, one, name) !== undefined),
    ) ?? venue.defaultMarket;
  const dataset = flags.dataset.filter(
    (name) => name === ALL || findDataset(venue, market, name) !== undefined,
  );
  chooseInMarket(venue, { ...flags, dataset, market, allowsMissing: false }, provider);
  throw usage(
    `--cadence ${flags.cadence}: no market has ${flags.dataset.join(',')} in this cadence`,
    'leave --cadence out',
    { flags: { cadence: null } },
  );
}

function refuseUnknownDatasets(venue: Venue, flags: Flags, provider: Provider): void {
  for (const name of flags.dataset) {
    const specs = marketNames(venue).flatMap((market) => findDataset(venue, market, name) ?? []);
    if (name === ALL || specs.some(HAS[provider])) continue;
    const market =
      marketNames(venue).find((one) => findDataset(venue, one, name) !== undefined) ?? venue.defaultMarket;
    refuseDataset(venue, { ...flags, market, allowsMissing: true }, name, provider);
  }
}

function chooseInMarket(venue: Venue, flags: MarketFlags, provider: Provider): ChosenDataset[] {
  const { market } = flags;
  const specs = specsOf(venue, flags, provider);
  refuseUnknownIntervals(venue, flags, specs);
  return specs.flatMap((spec) =>
    chosenIntervals(flags, spec).flatMap((interval): ChosenDataset[] => {
      const dataset = { market, spec, ...(interval === undefined ? {} : { interval }) };
      if (provider === 'rest') return [{ ...dataset, cadences: spec.cadences }];
      const allowsMissing = flags.allowsMissing || isAll(flags.dataset) || isAll(flags.interval);
      const exists = cadencesOf(spec, interval, flags.cadence).length > 0;
      return !exists && allowsMissing ? [] : [withCadences(flags, dataset)];
    }),
  );
}

function specsOf(venue: Venue, flags: MarketFlags, provider: Provider): DatasetSpec[] {
  const has = HAS[provider];
  const named = flags.dataset
    .filter((name) => name !== ALL)
    .flatMap((name) => {
      const spec = findDataset(venue, flags.market, name);
      if (spec !== undefined && has(spec)) return [spec];
      if (flags.allowsMissing) return [];
      return spec === undefined
        ? refuseDataset(venue, flags, name, provider)
        : refuseSource(flags, spec, provider);
    });
  if (!isAll(flags.dataset)) return named;
  return datasetsOf(venue, flags.market).filter((spec) => has(spec) && !spec.removed);
}

/** The selected intervals of the dataset; a single undefined for a dataset without intervals. */
function chosenIntervals({ interval }: MarketFlags, spec: DatasetSpec): readonly (string | undefined)[] {
  const known = intervalsOf(spec);
  if (known === undefined) return [undefined];
  return isAll(interval) ? known : interval.filter((name) => known.includes(name));
}

/** With `--dataset all`, one dataset with the interval is enough. */
function refuseUnknownIntervals(venue: Venue, flags: MarketFlags, specs: readonly DatasetSpec[]): void {
  if (flags.allowsMissing || isAll(flags.interval)) return;
  const withIntervals = specs.filter((spec) => intervalsOf(spec) !== undefined);
  for (const interval of flags.interval) {
    const lacking = withIntervals.filter((spec) => intervalsOf(spec)?.includes(interval) === false);
    const [first] = lacking;
    if (first !== undefined && (!isAll(flags.dataset) || lacking.length === withIntervals.length))
      refuseInterval(flags, interval, {
        market: flags.market,
        name: first.name,
        known: intervalsOf(first) ?? [],
        dataset: datasetLike(venue, [flags.market], interval, isArchived),
      });
  }
}

/** Throws the error for a dataset of the other verb. `market`: where the other verb has it. */
function refuseSource(flags: MarketFlags, spec: DatasetSpec, provider: Provider, market?: Market): never {
  const { name } = spec;
  if (isMade(spec))
    throw usage(
      `--dataset: no download has ${name}: cryptodl ${name} makes them from klines or trades of the lake`,
      `for example cryptodl ${name} 1h`,
      { command: [name, '1h'] },
    );
  const verb = provider === 'archive' ? 'metrics' : 'vision';
  const why = provider === 'archive' ? 'only REST has it' : 'the archive has it';
  throw usage(
    `--dataset: ${market ?? flags.market} ${name}: ${why}`,
    `the command ${verb} downloads it`,
    // With other datasets in the list, no single command downloads all.
    flags.dataset.length > 1
      ? undefined
      : { verb, flags: { dataset: name, ...(market === undefined ? {} : { market }) } },
  );
}

/** `um klines 1m` */
export function datasetName({ market, spec, interval }: Omit<ChosenDataset, 'cadences'>): string {
  return [market, spec.name, interval].filter((part) => part !== undefined).join(' ');
}

function withCadences(flags: MarketFlags, dataset: Omit<ChosenDataset, 'cadences'>): ChosenDataset {
  const cadences = cadencesOf(dataset.spec, dataset.interval, flags.cadence);
  if (cadences.length > 0) return { ...dataset, cadences };
  const exist = cadencesOf(dataset.spec, dataset.interval);
  throw usage(
    `--cadence ${flags.cadence}: ${datasetName(dataset)} exists only ${exist.join(' and ')}`,
    `--cadence ${exist[0] ?? 'auto'}, or leave --cadence out`,
    // Other datasets of the command may have other cadences.
    { flags: { cadence: flags.dataset.length > 1 ? null : (exist[0] ?? null) } },
  );
}

function refuseDataset(venue: Venue, flags: MarketFlags, name: string, provider: Provider): never {
  const { market } = flags;
  const has = HAS[provider];
  const known = datasetsOf(venue, market).flatMap((spec) => (has(spec) ? [spec.name] : []));
  const message = flags.allowsMissing
    ? `--dataset: no market has "${name}"`
    : `--dataset: ${market} has no "${name}"; ${market} has ${known.join(', ')}`;
  const near = datasetLike(venue, flags.allowsMissing ? marketNames(venue) : [market], name, has);
  if (near !== undefined)
    throw usage(message, `did you mean ${near}?`, {
      flags: { dataset: replaced(flags.dataset, name, near) },
    });
  const meant = datasetLike(venue, [market], name);
  const spec = meant === undefined ? undefined : findDataset(venue, market, meant);
  if (spec?.removed === true) return refuseEnded(venue, { market, spec });
  if (spec !== undefined) return refuseSource(flags, spec, provider);
  const otherMarket = marketWith(venue, name);
  if (otherMarket !== undefined) {
    const found = findDataset(venue, otherMarket, name);
    if (found !== undefined && !has(found)) return refuseSource(flags, found, provider, otherMarket);
    const hasAll = flags.dataset.every((one) => findDataset(venue, otherMarket, one) !== undefined);
    const rest = flags.dataset.filter((one) => one !== name).join(',');
    throw usage(message, `${otherMarket} has it: --market ${otherMarket}`, {
      flags: hasAll ? { market: otherMarket } : { dataset: rest },
    });
  }
  throw usage(message, undefined, { command: ['list', 'datasets'] });
}

/** The dataset whose name or alias is most similar to the word, and for which `has` is true. */
export function datasetLike(
  venue: Venue,
  markets: readonly Market[],
  word: string,
  has: (spec: DatasetSpec) => boolean = () => true,
): string | undefined {
  const specs = markets.flatMap((market) => datasetsOf(venue, market)).filter(has);
  const byName = new Map<string, string>();
  for (const { name, aliases } of specs) for (const alias of [name, ...aliases]) byName.set(alias, name);
  const near = nearest(word, [...byName.keys()]);
  return near === undefined ? undefined : byName.get(near);
}

type Ended = Pick<ChosenDataset, 'market' | 'spec'>;

/** The number of days in the suggested range, before the end of the dataset. */
const SHOWN_DAYS = 7;

/** Throws a usage error with the last day of the dataset, and with a command for data that exists, if there is any. */
export function refuseEnded(venue: Venue, { market, spec }: Ended): never {
  const text = endedText(venue, market, spec.name) ?? `${market} ${spec.name} has ended`;
  const end = endOfDataset(spec);
  if (end === undefined || spec.removed) {
    const other = marketNames(venue).find(
      (candidate) => candidate !== market && findDataset(venue, candidate, spec.name) !== undefined,
    );
    if (other === undefined) throw usage(text);
    throw usage(text, undefined, {
      command: ['list', 'symbols', '--market', other, '--dataset', spec.name],
    });
  }
  throw usage(text, undefined, {
    flags: { days: null, months: null, from: dayText(end - SHOWN_DAYS), to: dayText(end - 1) },
  });
}

/** Throws if all objects of a plan are absent because their datasets have ended. */
export function refuseAllEnded(venue: Venue, ended: readonly Ended[], totals: PlanTotals): void {
  const [first] = ended;
  if (first === undefined || totals.absent === 0 || totals.fetch + totals.skip > 0) return;
  if (totals.absentBy['dataset-ended'] === totals.absent) refuseEnded(venue, first);
}

/** A line for each dataset that ends before the end of the range. */
export function endedNotes(venue: Venue, ended: readonly Ended[], to: number): string[] {
  const texts = ended
    .filter(({ spec }) => (endOfDataset(spec) ?? to) < to)
    .flatMap(({ market, spec }) => endedText(venue, market, spec.name) ?? []);
  return [...new Set(texts)].map((text) => `ended      ${text}`);
}
