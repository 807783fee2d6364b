/** The command object of `remove`: flags, help and what it does. */
import { localFolder } from '../../plan/options/addresses.js';
import { BUCKET_FLAGS, OF_HELD_SERIES, SERIES_FLAGS } from '../../plan/options/flag-sets.js';
import { BASE_EXITS, LOCK_EXIT } from '../../plan/options/verb-spec.js';
import { defineSessionVerb } from '../../run/verb/verb.js';

export const removeVerb = defineSessionVerb({
  name: 'remove',
  doc: 'drop series with their data, or orders; series leave their orders too; without --yes, print what would go',
  exits: { ...BASE_EXITS, 6: LOCK_EXIT },
  examples: [
    'cryptodl remove -s LUNAUSDT',
    'cryptodl remove -m um --dataset klines -i 1m -s BTCUSDT --yes',
    'cryptodl remove --order 0123456789abcdef --yes',
  ],
  aka: ['rm', 'delete', 'drop', 'forget', 'purge'],
  flags: [...SERIES_FLAGS, ...BUCKET_FLAGS, 'order', 'skip-unknown', 'out', 'yes', 'wait-lock'],
  meanings: { ...OF_HELD_SERIES, out: { parse: localFolder } },
  act: async (command) => (await import('./remove.js')).remove(command),
});
