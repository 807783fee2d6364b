/** Flags of single verbs: those of `universe`, of schedules and queues, and those of `serve` and `doctor`. */
import * as numbers from './numbers.js';
import * as parse from './parsers.js';
import { EVERY, every } from './dates.js';
import { count, LIST, oneOf, section, timeout } from './flag-spec.js';
import { DAY_MS } from '../../model/calendar.js';
import { GRAINS, MEASURES } from './periods.js';
import { parseDurationMs } from '../../model/units.js';

/** `30d` → milliseconds of whole days, at least one. A bare number means days. */
const wholeDays = parse.parser('a number of whole days', ['30d'], (text) => {
  const ms = parseDurationMs(/^\d+$/.test(text) ? `${text}d` : text) ?? 0;
  return ms >= DAY_MS && ms % DAY_MS === 0 ? ms : undefined;
});

export const UNIVERSE_FLAGS = section({ group: 'What' })({
  top: {
    value: 'N',
    doc: 'the N symbols with the largest sums; without this flag, all symbols that were traded',
    parse: numbers.integer(1, undefined, 30),
    aka: ['number', 'limit', 'size', 'number-assets', 'count'],
  },
  contract: oneOf('KIND', ['perpetual', 'dated', 'all'])(
    'perpetual, dated or all; contracts of futures; dated ones have a day of delivery',
    { default: 'perpetual' },
  ),
  by: {
    group: 'When',
    value: 'WHAT',
    doc: 'period of one cell: auto, day or month; auto is day for a range of up to 60 days',
    parse: parse.choice([...GRAINS, ...MEASURES]),
    choices: GRAINS,
    default: 'auto',
  },
  window: {
    group: 'When',
    value: 'TIME',
    doc: 'days before each period whose sums are ranked; later rows are not read for this period',
    parse: wholeDays,
    unit: 'Ms',
    default: '30d',
  },
  'min-age': {
    group: 'When',
    value: 'TIME',
    doc: 'only symbols with a first row at least this long before the period; the first row is that of the lake, or the first one after more than 30 days without rows',
    parse: wholeDays,
    unit: 'Ms',
  },
  as: oneOf('FORM', ['csv', 'list', 'freqtrade'])(
    'csv, list or freqtrade; csv: a line per period and symbol; list: each symbol once, for --symbols @FILE; freqtrade: a file of pairs for each period',
    { group: 'How', default: 'csv', aka: ['format', 'output-format', 'csv', 'freqtrade'] },
  ),
});

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
    parse: every,
    choices: EVERY,
  },
  'max-waiting': count('adds no further jobs while so many jobs wait in the queue', { default: '100000' }),
  wait: 'wait until the workers have done the jobs; prints the progress of all workers, then the same summary and exit code as a download',
  drain: 'end when the queue is empty; without it, the worker waits for further jobs',
  role: oneOf('ROLE', ['fetch', 'convert', 'both'])(
    'fetch: put the zips of jobs into the bucket of the lake; convert: write the lake from these zips; both: do each job as a whole, and convert',
    { default: 'both' },
  ),
  lease: timeout('time after which the jobs of a killed worker go to other workers', { default: '1m' }),
  codes: {
    group: 'What',
    ...LIST,
    doc: 'with --redis: put back only the failed jobs with these error codes, separated by commas',
    parse: parse.text,
  },
});

export const SERVER_FLAGS = section({ group: 'Network' })({
  'clear-bans': {
    value: 'HOST',
    doc: 'remove the stored bans of this host; prints them, and checks nothing else',
    parse: parse.text,
  },
  host: {
    value: 'HOST',
    doc: 'address to listen on',
    parse: parse.text,
    default: '127.0.0.1',
  },
  port: {
    value: 'PORT',
    doc: 'port to listen on; 0 chooses a free port',
    parse: numbers.port,
    default: '8090',
  },
});
