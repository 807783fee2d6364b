/** Flags of the queue (enqueue, worker, status, and retry of its jobs) and of the times of a schedule. */
import { COUNT, LIST, oneOf, section, TIMEOUT } from './flag-spec.js';
import * as parse from './parsers.js';
import { CALENDAR_PERIODS, calendarPeriod } from './periods.js';

export const QUEUE_FLAGS = section({ group: 'How' })({
  queue: {
    group: 'Where',
    verbs: ['enqueue', 'worker', 'status', 'retry'],
    usual: ['enqueue', 'worker', 'status'],
    value: 'NAME',
    doc: 'name of the queue on the Redis server',
    parse: parse.keyName('history'),
    default: 'main',
  },
  every: {
    group: 'When',
    verbs: ['schedule', 'universe'],
    value: 'TIME',
    doc: 'how often: day for once a day, or 12h, 8h, 6h, 4h, 3h, 2h or 1h',
    docOf: {
      universe: 'day, week, month, quarter or year; the length of a period; in UTC, a week begins on Monday',
    },
    parse: parse.every,
    parseOf: { universe: calendarPeriod },
    choices: parse.EVERY,
    choicesOf: { universe: CALENDAR_PERIODS },
    unsetOf: { schedule: 'day' },
    defaultOf: { universe: 'month' },
  },
  'max-waiting': {
    verbs: ['enqueue'],
    doc: 'adds no further jobs while so many jobs wait in the queue',
    ...COUNT,
    default: '100000',
  },
  wait: {
    verbs: ['enqueue'],
    doc: 'wait until the workers have done the jobs; prints the progress of all workers, then the same summary and exit code as a download',
  },
  drain: {
    verbs: ['worker'],
    doc: 'end when the queue is empty; without it, the worker waits for further jobs',
  },
  role: {
    verbs: ['worker'],
    value: 'ROLE',
    doc: 'fetch: put the zips of jobs into the bucket of the lake; convert: write the lake from these zips; both: do each job as a whole, and convert',
    ...oneOf(['fetch', 'convert', 'both']),
    default: 'both',
  },
  lease: {
    verbs: ['worker'],
    doc: 'time after which the jobs of a killed worker go to other workers',
    ...TIMEOUT,
    default: '1m',
  },
  codes: {
    usual: [],
    group: 'What',
    verbs: ['retry'],
    ...LIST,
    doc: 'with --redis: put back only the failed jobs with these error codes, separated by commas',
    parse: parse.text,
  },
});
