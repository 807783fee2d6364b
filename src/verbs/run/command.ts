/** The command object of `run`: flags, help and what it does. */
import { RUN_FLAGS } from '../../plan/options/flag-sets.js';
import { RUN_EXITS } from '../../plan/options/verb-spec.js';
import { defineVerb } from '../../run/verb/verb.js';

/** The file of `run` sets the preset of each job. */
const OF_JOB = { unset: 'from the preset of the job' } as const;

export const runVerb = defineVerb({
  name: 'run',
  operand: '<file>',
  doc: 'run the jobs of a file; jobs run one after the other or at the same time (--jobs), with one exit code',
  exits: { ...RUN_EXITS, 5: 'nothing new; with error-on-nothing in a job' },
  examples: [
    'cryptodl run jobs.yaml',
    'cryptodl run jobs.yaml --only bars,funding -n',
    'cryptodl run jobs.yaml --jobs 3',
  ],
  aka: ['jobs', 'job', 'batch'],
  flags: [
    'only',
    'wait-for-publication',
    'out',
    'failures',
    'dry-run',
    'strict',
    'wait-lock',
    'retries',
    'jobs',
    'bwlimit',
    'proxy',
    'json',
    'progress',
    'quiet',
    'log-level',
    'print-options',
  ],
  moreFlags: [...RUN_FLAGS, 'shard'],
  meanings: {
    retries: OF_JOB,
    'retry-delay': OF_JOB,
    'retry-factor': OF_JOB,
    'retry-max-delay': OF_JOB,
    'retry-strategy': OF_JOB,
  },
  start: async (started) => (await import('./run-file.js')).runFile(started),
});
