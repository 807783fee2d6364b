/** The command object of `coverage`: flags, help and what it does. */
import * as parse from '../../plan/options/parsers.js';
import { BUCKET_FLAGS, OF_HELD_FILES, SELECT_FLAGS } from '../../plan/options/flag-sets.js';
import { GRAINS } from '../../plan/options/periods.js';
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineVerb } from '../../run/verb/verb.js';

export const coverageVerb = defineVerb({
  name: 'coverage',
  doc: 'compare the rows of the lake with the expected rows; prints a heat-map, a table, and each gap with its reason',
  exits: { ...BASE_EXITS, 4: 'below --min; at least one series has less' },
  examples: [
    'cryptodl coverage',
    "cryptodl coverage -m um --dataset klines -s '*USDT' --months 6",
    'cryptodl coverage -d 30 --min 99.9 --json',
  ],
  aka: ['gaps', 'missing', 'holes', 'completeness'],
  flags: [
    ...SELECT_FLAGS,
    'all',
    'summary',
    'csv',
    'by',
    'out',
    'format',
    'min',
    'json',
    'config',
    'print-options',
  ],
  moreFlags: [...BUCKET_FLAGS, 'skip-unknown', 'shard', 'now', 'quiet'],
  meanings: { ...OF_HELD_FILES, by: { parse: parse.choice(GRAINS) } },
  isReader: true,
  lakePart: 'selected',
  act: async (command) => (await import('./coverage.js')).coverage(command),
});
