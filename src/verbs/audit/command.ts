/** The command object of `audit`: flags, help and what it does. */
import {
  ARCHIVED,
  CALL_FLAGS,
  IN_SYSTEM_FOLDER,
  REMOTE_FLAGS,
  SELECT_FLAGS,
} from '../../plan/options/flag-sets.js';
import { BASE_EXITS, LIMIT_EXIT, LOCK_EXIT } from '../../plan/options/verb-spec.js';
import { defineRunVerb } from '../../run/verb/verb.js';

export const auditVerb = defineRunVerb({
  name: 'audit',
  doc: 'compare monthly and daily objects of the same days; also checks the ids and columns of both; with --against rest, compare the bars of the lake with REST',
  exits: {
    ...BASE_EXITS,
    0: 'no finding',
    3: 'try later; the network or the archive failed',
    4: 'findings',
    6: LOCK_EXIT,
    7: LIMIT_EXIT,
  },
  examples: [
    'cryptodl audit -s BTCUSDT -i 1h --from 2024-01-01 --to 2024-03-31',
    "cryptodl audit -m spot --dataset aggTrades -s '*BTC' --months 1 --json",
    'cryptodl audit --prefer daily',
    'cryptodl audit --against rest --sample 5',
  ],
  aka: ['check-archive'],
  flags: [
    ...SELECT_FLAGS,
    ...CALL_FLAGS,
    'out',
    'prefer',
    'against',
    'sample',
    'verify',
    'retries',
    'bwlimit',
  ],
  moreFlags: [...REMOTE_FLAGS, 'skip-unknown', 'temp-dir', 'stale-checksum', 'retry-preset', 'print-options'],
  meanings: { ...ARCHIVED, ...IN_SYSTEM_FOLDER },
  act: async (command) => (await import('./audit.js')).audit(command),
});
