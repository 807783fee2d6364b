/** The command object of `list`: flags, help and what it does. */
import { ARCHIVED, CALL_FLAGS, REQUEST_FLAGS, SELECT_FLAGS } from '../../plan/options/flag-sets.js';
import { LISTS } from '../../plan/options/periods.js';
import { BASE_EXITS, LIMIT_EXIT } from '../../plan/options/verb-spec.js';
import { defineSessionVerb } from '../../run/verb/verb.js';

export const listVerb = defineSessionVerb({
  name: 'list',
  operand: '[what]',
  choices: LISTS,
  doc: 'list markets, datasets, symbols or periods, one per line',
  exits: { ...BASE_EXITS, 7: LIMIT_EXIT },
  examples: [
    'cryptodl list datasets -m um',
    'cryptodl list symbols -m um --dataset klines --quote USDT',
    'cryptodl list periods -m um --dataset bookTicker -s BTCUSDT',
  ],
  aka: ['ls', 'show'],
  flags: [...SELECT_FLAGS, ...CALL_FLAGS, 'cadence', 'long', 'retries', 'proxy'],
  moreFlags: [...REQUEST_FLAGS, 'skip-unknown', 'retry-preset', 'print-options'],
  meanings: ARCHIVED,
  act: async (command) => (await import('./list.js')).list(command),
});
