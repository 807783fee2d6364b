/** The command object of `verify`: flags, help and what it does. */
import {
  BUCKET_FLAGS,
  CALL_FLAGS,
  OF_HELD_FILES,
  REQUEST_FLAGS,
  SERIES_FLAGS,
} from '../../plan/options/flag-sets.js';
import { BASE_EXITS, LIMIT_EXIT, LOCK_EXIT } from '../../plan/options/verb-spec.js';
import { defineSessionVerb } from '../../run/verb/verb.js';

export const verifyVerb = defineSessionVerb({
  name: 'verify',
  doc: 'compare the files of the lake with its manifests; also finds foreign files and leftovers of killed runs',
  exits: { ...BASE_EXITS, 0: 'no finding', 4: 'findings', 6: LOCK_EXIT, 7: LIMIT_EXIT },
  examples: [
    'cryptodl verify',
    'cryptodl verify --deep -m um --dataset klines --json',
    'cryptodl verify --fix',
  ],
  aka: ['fsck', 'validate'],
  flags: [...SERIES_FLAGS, ...CALL_FLAGS, 'out', 'format', 'deep', 'fix', 'print-options'],
  moreFlags: [...REQUEST_FLAGS, ...BUCKET_FLAGS, 'skip-unknown', 'shard', 'retry-preset'],
  meanings: OF_HELD_FILES,
  lakePart: 'selected',
  act: async (command) => (await import('./verify.js')).verify(command),
});
