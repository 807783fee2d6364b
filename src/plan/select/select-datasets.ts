/** `--market`, `--dataset`, `--interval` and `--cadence` → datasets. */
import { dayText } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import type { Cadence, Market } from '../../model/task.js';
import { HAS } from '../options/exchange-values.js';
import type { VerbName } from '../options/verb-spec.js';
import type { Options } from '../options/flags.js';
import { endedText, endOfDataset } from '../../exchange/describe.js';
import { cadencesOf } from '../../exchange/keys.js';
import { ALL } from '../../exchange/names.js';
import { datasetsOf, findDataset, intervalsOf, marketNames } from '../../exchange/exchange-spec.js';
import type { DatasetSpec, ExchangeSpec } from '../../exchange/exchange-spec.js';
import { didYouMean } from '../../text/did-you-mean.js';

/** A selected dataset of one market, with one of its intervals. */
export interface ChosenDataset {
  readonly market: Market;
  readonly spec: DatasetSpec;
  readonly interval?: string;
  /** The cadences in which the dataset exists and that --cadence allows. */
  readonly cadences: readonly Cadence[];
}

type Flags = Options<'market' | 'dataset' | 'interval' | 'cadence'>;

export const isAll = (values: readonly string[]): boolean => values.includes(ALL);

export const marketsOf = (
  exchange: Pick<ExchangeSpec, 'markets'>,
  { market }: Options<'market'>,
): readonly Market[] => marketNames(exchange).filter((name) => isAll(market) || market.includes(name));

/** The market of `--market`, for verbs that take one. Throws a usage error for several. */
export function oneMarket(
  exchange: Pick<ExchangeSpec, 'markets' | 'defaultMarket'>,
  options: Options<'market'>,
  verb: VerbName,
): Market {
  const [first, second] = marketsOf(exchange, options);
  if (first !== undefined && second === undefined) return first;
  throw usage(
    `--market ${options.market.join(',')}: ${verb} takes one market`,
    `--market ${first ?? exchange.defaultMarket}`,
  );
}

/**
 * All selected combinations of market, dataset and interval. With `all`, combinations that do not exist are left out. Throws
 * a usage error for a named combination that does not exist, and for a name that no market has.
 */
export function chooseDatasets(
  exchange: ExchangeSpec,
  flags: Flags,
  provider: keyof typeof HAS = 'archive',
): ChosenDataset[] {
  const markets = marketsOf(exchange, flags);
  const allowsMissing = isAll(flags.market);
  const has = HAS[provider];
  const specs = markets.flatMap((market) => {
    const all = datasetsOf(exchange, market).filter((spec) => has(spec) && !spec.removed);
    const named = flags.dataset.flatMap((name) => findDataset(exchange, market, name) ?? []).filter(has);
    return (isAll(flags.dataset) ? all : named).map((spec) => ({ market, spec }));
  });
  for (const name of flags.dataset.filter((one) => one !== ALL)) {
    const isOf = (market: Market): boolean =>
      specs.some((one) => one.market === market && one.spec.name === name);
    const lacking = markets.filter((market) => !isOf(market));
    if (lacking.length > 0 && (!allowsMissing || lacking.length === markets.length))
      throw unknownDataset(exchange, { markets: lacking, name, provider });
  }
  refuseUnknownIntervals(flags, specs);
  const chosen = specs.flatMap(({ market, spec }) =>
    chosenIntervals(flags, spec).flatMap((interval): ChosenDataset[] => {
      const dataset = { market, spec, ...(interval === undefined ? {} : { interval }) };
      if (provider === 'rest') return [{ ...dataset, cadences: spec.cadences }];
      const cadences = cadencesOf(spec, interval, flags.cadence);
      const isOptional = allowsMissing || isAll(flags.dataset) || isAll(flags.interval);
      if (cadences.length === 0 && !isOptional)
        throw usage(
          `--cadence ${flags.cadence}: ${datasetName(dataset)} exists only ${cadencesOf(spec, interval).join(' and ')}`,
          'leave --cadence out',
        );
      return cadences.length === 0 ? [] : [{ ...dataset, cadences }];
    }),
  );
  if (chosen.length > 0) return chosen;
  throw usage(`--cadence ${flags.cadence}: no selected dataset has it`, 'leave --cadence out');
}

type MarketDataset = Pick<ChosenDataset, 'market' | 'spec'>;

/** The selected intervals of the dataset; a single undefined for a dataset without intervals. */
function chosenIntervals({ interval }: Flags, spec: DatasetSpec): readonly (string | undefined)[] {
  const known = intervalsOf(spec);
  if (known === undefined) return [undefined];
  return isAll(interval) ? known : interval.filter((name) => known.includes(name));
}

/** With `all` markets or datasets, one dataset with the interval is enough. */
function refuseUnknownIntervals(flags: Flags, datasets: readonly MarketDataset[]): void {
  if (isAll(flags.interval)) return;
  const withIntervals = datasets.filter(({ spec }) => intervalsOf(spec) !== undefined);
  for (const interval of flags.interval) {
    const lacking = withIntervals.filter(({ spec }) => intervalsOf(spec)?.includes(interval) === false);
    const isOptional = isAll(flags.market) || isAll(flags.dataset);
    const [first] = lacking;
    if (first === undefined || (isOptional && lacking.length < withIntervals.length)) continue;
    const known = intervalsOf(first.spec) ?? [];
    throw usage(
      `--interval: ${first.market} ${first.spec.name} has no "${interval}"; it has ${known.join(', ')}`,
      didYouMean(interval, known) ?? 'cryptodl list datasets shows the intervals of each dataset',
    );
  }
}

/** The error for a dataset that the markets lack, or that only another verb downloads or makes. */
function unknownDataset(
  exchange: ExchangeSpec,
  { markets, name, provider }: { markets: readonly Market[]; name: string; provider: keyof typeof HAS },
): Error {
  const specs = markets.flatMap((market) => datasetsOf(exchange, market).filter(HAS[provider]));
  const known = [...new Set(specs.map((spec) => spec.name))];
  const what = provider === 'archive' ? 'of the archive' : 'of REST';
  return usage(
    `--dataset: ${markets.join(', ')} has no dataset "${name}" ${what}; it has ${known.join(', ') || 'none'}`,
    didYouMean(name, known) ?? 'cryptodl list datasets shows the markets and sources of each dataset',
  );
}

/** `um klines 1m` */
export const datasetName = ({ market, spec, interval }: Omit<ChosenDataset, 'cadences'>): string =>
  [market, spec.name, interval].filter((part) => part !== undefined).join(' ');

/** Throws a usage error with the last day of the dataset, or with the fact that the exchange has removed it. */
export function refuseEnded(exchange: ExchangeSpec, { market, spec }: MarketDataset): never {
  const end = endOfDataset(spec);
  throw usage(
    endedText(exchange, market, spec.name) ?? `${market} ${spec.name} has ended`,
    end === undefined || spec.removed ? 'choose another dataset' : `its last day: --to ${dayText(end - 1)}`,
  );
}

/** A line for each dataset that ends before the end of the range. */
export function endedNotes(exchange: ExchangeSpec, datasets: readonly MarketDataset[], to: number): string[] {
  const texts = datasets
    .filter(({ spec }) => (endOfDataset(spec) ?? to) < to)
    .flatMap(({ market, spec }) => endedText(exchange, market, spec.name) ?? []);
  return [...new Set(texts)].map((text) => `ended      ${text}`);
}
