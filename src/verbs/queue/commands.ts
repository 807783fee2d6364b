/** The command objects of `enqueue`, `worker`, `status`: flags, help and what they do. */
import {
  CALL_FLAGS,
  FORM_FLAGS,
  REMOTE_FLAGS,
  OBJECT_FLAGS,
  SELECT_FLAGS,
} from '../../plan/options/flag-sets.js';
import { BASE_EXITS, LIMIT_EXIT, LOCK_EXIT, REDIS_EXIT } from '../../plan/options/verb-spec.js';
import type { ExitTexts } from '../../plan/options/verb-spec.js';
import { defineSessionVerb, defineVerb } from '../../run/verb/verb.js';

/** With `--wait`, `enqueue` ends with the code of the download. */
const QUEUE_EXITS = {
  ...BASE_EXITS,
  3: 'try later; no connection to the Redis server, or with --wait: a job failed for now',
  4: 'failed; with --wait: a retry does not help; with --strict also for series that lack data',
  7: LIMIT_EXIT,
} as const satisfies ExitTexts;

export const enqueueVerb = defineVerb({
  name: 'enqueue',
  operand: '<verb>',
  choices: ['vision', 'metrics'],
  doc: 'put a download into a queue on a Redis server; cryptodl worker does its jobs; enqueuing the same again adds no job twice',
  exits: QUEUE_EXITS,
  examples: [
    'cryptodl enqueue vision -s all --months 60 --redis redis://queue -o s3://lake',
    'cryptodl enqueue vision -s BTCUSDT -d 7 --redis redis://queue --wait',
    'cryptodl schedule -- enqueue vision -s all -d 3 --redis redis://queue',
  ],
  aka: ['submit', 'queue add'],
  flags: [
    ...SELECT_FLAGS,
    ...CALL_FLAGS,
    'out',
    'format',
    'dry-run',
    'queue',
    'max-waiting',
    'wait',
    'redis',
  ],
  moreFlags: [
    ...REMOTE_FLAGS,
    ...OBJECT_FLAGS,
    ...FORM_FLAGS,
    'skip-unknown',
    'shard',
    'join',
    'fill',
    'include-today',
    'strict',
    'retry-preset',
    'print-options',
  ],
  isOfQueue: true,
  act: async (command) => (await import('./enqueue.js')).enqueue(command),
});

export const workerVerb = defineSessionVerb({
  name: 'worker',
  doc: 'do the jobs of a queue, on as many machines as you like; a job of a worker that was killed goes to another worker',
  exits: { ...BASE_EXITS, 3: REDIS_EXIT, 6: LOCK_EXIT },
  examples: [
    'cryptodl worker --redis redis://queue',
    'cryptodl worker --redis redis://queue --drain --jobs 16',
    'cryptodl worker --redis redis://queue -o /srv/lake',
  ],
  aka: ['workers', 'queue work'],
  flags: [...CALL_FLAGS, 'out', 'queue', 'drain', 'role', 'lease', 'jobs', 'redis'],
  moreFlags: [...REMOTE_FLAGS, 'temp-dir', 'wait-lock', 'retry-preset', 'print-options'],
  meanings: {
    out: {
      doc: 'the only lake that the jobs may write to; without it, also lakes in buckets that the jobs name',
    },
    jobs: { default: '8' },
  },
  isOfQueue: true,
  act: async (command) => (await import('./worker.js')).worker(command),
});

export const statusVerb = defineVerb({
  name: 'status',
  doc: 'print the state of a queue; with waiting, active and failed jobs, jobs per minute, workers, failures by code',
  exits: { ...BASE_EXITS, 3: REDIS_EXIT },
  examples: [
    'cryptodl status --redis redis://queue',
    'cryptodl status --queue history',
    'cryptodl status --json',
  ],
  aka: ['backlog', 'queue', 'queue status'],
  flags: ['queue', 'redis', 'json', 'config', 'print-options'],
  actOffline: async (command) => (await import('./status.js')).status(command),
});
