/** The command object of `bars`: flags, help and what it does. */
import { BUCKET_FLAGS, OF_HELD_SERIES, SELECT_FLAGS } from '../../plan/options/flag-sets.js';
import { BASE_EXITS, LOCK_EXIT } from '../../plan/options/verb-spec.js';
import { defineSessionVerb } from '../../run/verb/verb.js';

export const barsVerb = defineSessionVerb({
  name: 'bars',
  operand: '<bar>',
  doc: 'make bars of any length from rows of the lake; of klines, aggTrades or trades, into the lake; for example 15m, 7m, 2h, 3d or 1w',
  exits: {
    ...BASE_EXITS,
    4: 'not made; a symbol has no source, a file of its source is missing or damaged',
    6: LOCK_EXIT,
  },
  examples: [
    "cryptodl bars 15m -s '*USDT'",
    'cryptodl bars 4h -s BTCUSDT,ETHUSDT --dry-run',
    'cryptodl bars 7m --dataset aggTrades -s BTCUSDT',
  ],
  aka: ['resample', 'aggregate'],
  flags: [...SELECT_FLAGS, 'fill-empty', 'out', 'force', 'dry-run', 'json'],
  moreFlags: [...BUCKET_FLAGS, 'skip-unknown', 'shard', 'now', 'temp-dir', 'wait-lock', 'quiet'],
  meanings: {
    ...OF_HELD_SERIES,
    dataset: {
      narrows: true,
      doc: 'the source: klines, aggTrades or trades; without this flag, the first of them that the symbol has',
    },
  },
  act: async (command) => (await import('./bars.js')).bars(command),
});
