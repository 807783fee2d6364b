/** The operand of `cryptodl list`. */
import { usage } from '../model/errors.js';
import { choice } from './parsers.js';

export const LISTS = ['markets', 'datasets', 'symbols', 'periods'] as const;
export type ListName = (typeof LISTS)[number];

const parseName = choice(LISTS, {
  markets: ['market', 'exchanges', 'exchange'],
  datasets: ['dataset', 'data', 'types', 'intervals', 'interval'],
  symbols: ['symbol', 'pairs', 'pair', 'tickers', 'coins', 'instruments'],
  periods: ['dates', 'days', 'months', 'files', 'objects'],
});

/** Throws a usage error for any other word. */
export function listName(word: string | undefined): ListName {
  if (word === undefined) throw usage(`list needs one of ${LISTS.join(', ')}`, 'cryptodl list datasets');
  return parseName(word, 'list');
}
