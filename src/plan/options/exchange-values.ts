/** Parsers for the markets, datasets, intervals and assets of an exchange. */
import { ALL, MARKET_ALIASES, readDatasetWords } from '../../exchange/names.js';
import { allDatasets, intervalsOf, isArchived, isMetric, marketNames } from '../../exchange/exchange-spec.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { choice, folded, text, type Parse } from './parsers.js';
import { sameInterval } from '../../model/units.js';

/** A market of the exchange of the run by its name or by one of other tools (`usdm` is `um`), or `all`. */
export function market(known: readonly string[]): Parse<string> {
  return (value, where, { exchange } = {}) =>
    choice([...(exchange === undefined ? known : marketNames(exchange)), ALL], MARKET_ALIASES)(value, where);
}

/** Whether a source has a dataset. */
export const HAS = { archive: isArchived, rest: isMetric, any: () => true } as const;

/**
 * A dataset by its name, in any spelling, or by one of its other names: `agg_trades`, `ohlcv`. `from`: where the verb takes its datasets
 * from; another name of two datasets means the one of there. Other texts stay, because markets have different datasets.
 */
export function dataset(from: keyof typeof HAS): Parse<string> {
  return (value, where, { exchange } = {}) => {
    const word = folded(text(value, where));
    const isMeant = ({ name, aliases }: Pick<DatasetSpec, 'name' | 'aliases'>): boolean =>
      [name, ...aliases].some((other) => folded(other) === word);
    if (exchange === undefined) return readDatasetWords().find(isMeant)?.name ?? value;
    // Statistics that only REST has stand after the datasets of the archive.
    const all = allDatasets(exchange);
    const specs = from === 'rest' ? all.toReversed() : all;
    const taken = specs.filter(HAS[from]);
    const found = specs.find(({ name }) => name === value) ?? taken.find(isMeant) ?? specs.find(isMeant);
    return found?.name ?? value;
  };
}

/**
 * An interval in the spelling of the exchange: `60min`, `1hour` and `1H` are `1h`, and `1M` is a month as for the exchange. Other texts
 * stay, because datasets have different intervals.
 */
export function interval(known: readonly string[]): Parse<string> {
  return (value, where, { exchange } = {}) => {
    const word = text(value, where);
    const intervals =
      exchange === undefined ? known : allDatasets(exchange).flatMap((spec) => intervalsOf(spec) ?? []);
    return intervals.includes(word) ? word : (sameInterval(word, intervals) ?? word);
  };
}

export const asset: Parse<string> = (value, where) => text(value, where).toUpperCase();
