/** Flags of the queue (enqueue, worker, status, and retry of its jobs) and of the times of a schedule. */
import { COUNT, LIST, oneOf, section, TIMEOUT } from './flag-spec.js';
import * as parse from './parsers.js';

export const QUEUE_FLAGS = section({ group: 'How' })({
  queue: {
    group: 'Where',
    value: 'NAME',
    doc: 'name of the queue on the Redis server',
    parse: parse.keyName('history'),
    default: 'main',
  },
  every: {
    group: 'When',
    value: 'TIME',
    doc: 'how often: day for once a day, or 12h, 8h, 6h, 4h, 3h, 2h or 1h',
    parse: parse.every,
    choices: parse.EVERY,
  },
  'max-waiting': {
    doc: 'adds no further jobs while so many jobs wait in the queue',
    ...COUNT,
    default: '100000',
  },
  wait: {
    doc: 'wait until the workers have done the jobs; prints the progress of all workers, then the same summary and exit code as a download',
  },
  drain: {
    doc: 'end when the queue is empty; without it, the worker waits for further jobs',
  },
  role: {
    value: 'ROLE',
    doc: 'fetch: put the zips of jobs into the bucket of the lake; convert: write the lake from these zips; both: do each job as a whole, and convert',
    ...oneOf(['fetch', 'convert', 'both']),
    default: 'both',
  },
  lease: {
    doc: 'time after which the jobs of a killed worker go to other workers',
    ...TIMEOUT,
    default: '1m',
  },
  codes: {
    group: 'What',
    ...LIST,
    doc: 'with --redis: put back only the failed jobs with these error codes, separated by commas',
    parse: parse.text,
  },
});
