/** The operand of `cryptodl list`. */
import { usage } from '../../model/errors.js';
import { flagSpec } from '../flags.js';
import { didYouMean, nearest } from '../../text/did-you-mean.js';

export const LISTS = ['markets', 'datasets', 'symbols', 'periods'] as const;
export type ListName = (typeof LISTS)[number];

/** Other names of symbols are those of their flag: `pairs`, `coins`. */
const OTHER_NAMES: Readonly<Record<ListName, readonly string[]>> = {
  markets: ['exchanges', 'exchange'],
  datasets: ['data', 'types'],
  symbols: flagSpec('symbols').aka ?? [],
  periods: ['dates', 'days', 'months', 'files', 'objects'],
};

/** Throws a usage error for any other word. */
export function listName(word: string | undefined): ListName {
  const name = LISTS.find((candidate) => candidate === word);
  if (name !== undefined) return name;
  const known = LISTS.join(', ');
  if (word === undefined) throw usage(`list needs one of ${known}`, undefined, { operand: 'datasets' });
  const message = `list: "${word}" is not one of ${known}`;
  if (/^intervals?$/.test(word))
    throw usage(message, 'list datasets shows the intervals of each dataset', { operand: 'datasets' });
  const meant = LISTS.find((one) => OTHER_NAMES[one].includes(word));
  throw usage(message, meant === undefined ? didYouMean(word, LISTS) : `did you mean ${meant}?`, {
    operand: meant ?? nearest(word, LISTS) ?? 'datasets',
  });
}
