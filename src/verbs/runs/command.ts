/** The command object of `runs`: flags, help and what it does. */
import { BUCKET_FLAGS } from '../../plan/options/flag-sets.js';
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineVerb } from '../../run/verb/verb.js';

export const runsVerb = defineVerb({
  name: 'runs',
  doc: 'list the newest runs of the lake; with outcomes, retry rate, latency and exit code',
  exits: { ...BASE_EXITS, 2: 'usage; for example a lake without a record of a run' },
  examples: ['cryptodl runs', 'cryptodl runs --out /srv/lake --last 5', 'cryptodl runs --json'],
  aka: ['history', 'log', 'logs'],
  flags: [...BUCKET_FLAGS, 'out', 'json', 'last', 'config', 'print-options'],
  isReader: true,
  actOffline: async (command) => (await import('./runs.js')).runs(command),
});
