/** The command object of `retry`: flags, help and what it does. */
import { DOWNLOAD_FLAGS, MEND_FLAGS } from '../../plan/options/flag-sets.js';
import { RUN_EXITS } from '../../plan/options/verb-spec.js';
import { defineVerb, type Started } from '../../run/verb/verb.js';
import type { RetryJobs } from './retry.js';

/** `retryJobs` belongs to the verbs of the queue. */
export const retryVerb = (retryJobs: RetryJobs) =>
  defineVerb({
    name: 'retry',
    operand: '[report]',
    doc: 'download the failed objects of a failure report, by default the newest of the lake; the report keeps the objects that failed again, and is removed without one; with --redis: put the failed jobs of a queue back',
    exits: RUN_EXITS,
    examples: [
      'cryptodl retry data/_failures/vision-20261121T070000000Z-1f0c22aa.jsonl',
      'cryptodl retry -o /srv/lake -n',
      'cryptodl retry report.jsonl --concurrency 4 --retries 10',
      'cryptodl retry --redis redis://queue --codes http-server-error',
    ],
    aka: ['repeat', 'queue retry'],
    repeatsRun: true,
    flags: [...MEND_FLAGS, 'strict', 'max-wait', 'proxy'],
    moreFlags: [...DOWNLOAD_FLAGS, 'verify', 'stale-checksum', 'queue', 'codes'],
    meanings: { failures: { unset: 'the given report' } },
    start: async (started: Started) => (await import('./retry.js')).retry(started, retryJobs),
  });
