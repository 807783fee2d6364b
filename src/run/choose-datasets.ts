/** `--market`, `--dataset`, `--interval` and `--cadence` → the datasets that are meant. */
import { didYouMean, nearest } from '../did-you-mean.js';
import { usage } from '../errors.js';
import type { Options } from '../options/flags.js';
import type { Cadence, Market } from '../task.js';
import { cadencesOf } from '../venue/keys.js';
import { findDataset, intervalsOf, MARKETS } from '../venue/venue.js';
import type { DatasetSpec, Venue } from '../venue/venue.js';

export interface ChosenDataset {
  readonly market: Market;
  readonly spec: DatasetSpec;
  readonly interval?: string;
  /** In which it exists and the flags allow. */
  readonly cadences: readonly Cadence[];
}

type Flags = Pick<Options, 'market' | 'dataset' | 'interval' | 'cadence'>;

/** Every dataset × interval. Throws usage errors for what the market does not have. */
export function chooseDatasets(venue: Venue, flags: Flags): ChosenDataset[] {
  return flags.dataset.flatMap((name) => {
    const spec = findDataset(venue, flags.market, name) ?? refuseDataset(venue, flags, name);
    const intervals = intervalsOf(spec);
    if (intervals === undefined) return [withCadences(flags, { market: flags.market, spec })];
    return flags.interval.map((interval) => {
      if (!intervals.includes(interval)) refuseInterval(flags, name, interval, intervals);
      return withCadences(flags, { market: flags.market, spec, interval });
    });
  });
}

/** `um klines 1m` */
export function datasetName({ market, spec, interval }: Omit<ChosenDataset, 'cadences'>): string {
  return [market, spec.name, interval].filter((part) => part !== undefined).join(' ');
}

function withCadences(flags: Flags, dataset: Omit<ChosenDataset, 'cadences'>): ChosenDataset {
  const cadences = cadencesOf(dataset.spec, dataset.interval, flags.cadence);
  if (cadences.length > 0) return { ...dataset, cadences };
  const exist = cadencesOf(dataset.spec, dataset.interval);
  throw usage(
    `--cadence ${flags.cadence}: ${datasetName(dataset)} exists only ${exist.join(' and ')}`,
    `--cadence ${exist[0] ?? 'auto'}, or leave --cadence out`,
    // What another dataset of the same line has is another matter.
    { flags: { cadence: flags.dataset.length > 1 ? null : (exist[0] ?? null) } },
  );
}

function refuseDataset(venue: Venue, flags: Flags, name: string): never {
  const { market } = flags;
  const known = Object.keys(venue.markets[market].datasets);
  const message = `--dataset: ${market} has no "${name}"; ${market} has ${known.join(', ')}`;
  const near = datasetLike(venue, [market], name);
  if (near !== undefined)
    throw usage(message, `did you mean ${near}?`, {
      flags: { dataset: replaced(flags.dataset, name, near) },
    });
  const elsewhere = MARKETS.find((other) => findDataset(venue, other, name) !== undefined);
  if (elsewhere !== undefined) {
    const hasAll = flags.dataset.every((other) => findDataset(venue, elsewhere, other) !== undefined);
    const rest = flags.dataset.filter((other) => other !== name).join(',');
    throw usage(message, `${elsewhere} has it: --market ${elsewhere}`, {
      flags: hasAll ? { market: elsewhere } : { dataset: rest },
    });
  }
  throw usage(message, undefined, { command: ['list', 'datasets'] });
}

/** The dataset that a word means, by its spelling or by another name for it. */
export function datasetLike(venue: Venue, markets: readonly Market[], word: string): string | undefined {
  const specs = markets.flatMap((market) => Object.values(venue.markets[market].datasets));
  const byName = new Map<string, string>();
  for (const { name, aliases } of specs) for (const alias of [name, ...aliases]) byName.set(alias, name);
  const near = nearest(word, [...byName.keys()]);
  return near === undefined ? undefined : byName.get(near);
}

/** Other spellings of a length of time. */
const SAME_INTERVAL: Readonly<Record<string, string>> = {
  '1M': '1mo',
  '1month': '1mo',
  '1hr': '1h',
  '60m': '1h',
  '60min': '1h',
  '240m': '4h',
  '24h': '1d',
  '1day': '1d',
  '7d': '1w',
  '1min': '1m',
  '60s': '1m',
  minute: '1m',
  hour: '1h',
  day: '1d',
};

function refuseInterval(flags: Flags, name: string, interval: string, known: readonly string[]): never {
  const same = SAME_INTERVAL[interval];
  const near = same !== undefined && known.includes(same) ? same : nearest(interval, known);
  throw usage(
    `--interval: ${flags.market} ${name} has no "${interval}"; it has ${known.join(', ')}`,
    near === undefined ? undefined : didYouMean(near, known),
    { flags: { interval: near === undefined ? '1m' : replaced(flags.interval, interval, near) } },
  );
}

function replaced(values: readonly string[], value: string, instead: string): string {
  return [...new Set(values.map((item) => (item === value ? instead : item)))].join(',');
}
