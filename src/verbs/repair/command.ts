/** The command object of `repair`: flags, help and what it does. */
import { DOWNLOAD_FLAGS, MEND_FLAGS, OF_HELD_FILES, SERIES_FLAGS } from '../../plan/options/flag-sets.js';
import { RUN_EXITS } from '../../plan/options/verb-spec.js';
import { defineRunVerb } from '../../run/verb/verb.js';

export const repairVerb = defineRunVerb({
  name: 'repair',
  doc: 'fetch damaged and missing data again; covers the first to the last day of each series in the lake',
  exits: RUN_EXITS,
  examples: ['cryptodl repair', 'cryptodl repair -n', 'cryptodl repair --dataset klines -s BTCUSDT --deep'],
  aka: ['fix', 'heal'],
  flags: [...SERIES_FLAGS, ...MEND_FLAGS, 'format', 'deep'],
  moreFlags: [...DOWNLOAD_FLAGS, 'skip-unknown', 'shard', 'verify', 'stale-checksum'],
  meanings: OF_HELD_FILES,
  lakePart: 'selected',
  act: async (command) => (await import('../../run/download.js')).download({ ...command, verb: 'repair' }),
});
