/** The command object of `check`: flags, help and what it does. */
import { BUCKET_FLAGS } from '../../plan/options/flag-sets.js';
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineVerb } from '../../run/verb/verb.js';

export const checkVerb = defineVerb({
  name: 'check',
  doc: 'say whether the lake has what was ordered; compares the orders of all runs with the lake, up to the last day that must be published by now, without the network',
  exits: {
    ...BASE_EXITS,
    0: 'complete',
    2: 'usage; for example a lake without an order',
    3: 'behind or incomplete; a run may mend it',
    4: 'incomplete; what is missing was asked for and cannot be had',
  },
  examples: ['cryptodl check', 'cryptodl check --out /srv/lake --quiet', 'cryptodl check --json'],
  aka: ['verdict', 'complete'],
  flags: [...BUCKET_FLAGS, 'now', 'out', 'json', 'quiet', 'config', 'print-options'],
  isReader: true,
  act: async (command) => (await import('./check.js')).check(command),
});
