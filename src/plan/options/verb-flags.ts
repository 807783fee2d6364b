/** Flags of single verbs: those that draw, print rows or write files for other programs, `universe`, schedules, queues, `serve` and `doctor`. */
import * as parse from './parsers.js';
import { EVERY, every } from './dates.js';
import { count, file, oneOf, section, takes, takesTimeout, words } from './flag-spec.js';
import { GRAINS, MEASURES } from './periods.js';
import { DAY_MS, parseDurationMs } from '../../model/units.js';
import { intervalMs } from '../../exchange/exchange-spec.js';
import { localFolder } from './addresses.js';

/** `30d` → milliseconds of whole days, at least one. A bare number means days. */
const wholeDays = parse.parser('a number of whole days', ['30d'], (text) => {
  const ms = parseDurationMs(/^\d+$/.test(text) ? `${text}d` : text) ?? 0;
  return ms >= DAY_MS && ms % DAY_MS === 0 ? ms : undefined;
});

export const UNIVERSE_FLAGS = section({ group: 'What' })({
  top: takes('N', parse.integer(1, undefined, 30))(
    'the N symbols with the largest sums; without this flag, all symbols that were traded',
    { aka: ['number', 'limit', 'size', 'number-assets', 'count'] },
  ),
  contract: oneOf('KIND', ['perpetual', 'dated', 'all'])(
    'perpetual, dated or all; contracts of futures; dated ones have a day of delivery',
    { default: 'perpetual' },
  ),
  by: takes('WHAT', parse.choice([...GRAINS, ...MEASURES]))(
    'period of one cell: auto, day or month; auto is day for a range of up to 60 days',
    { group: 'When', choices: GRAINS, default: 'auto' },
  ),
  window: takes('TIME', wholeDays)(
    'days before each period whose sums are ranked; later rows are not read for this period',
    { group: 'When', unit: 'Ms', default: '30d' },
  ),
  'min-age': takes('TIME', wholeDays)(
    'only symbols with a first row at least this long before the period; the first row is that of the lake, or the first one after more than 30 days without rows',
    { group: 'When', unit: 'Ms' },
  ),
  as: oneOf('FORM', ['csv', 'list', 'freqtrade'])(
    'csv, list or freqtrade; csv: a line per period and symbol; list: each symbol once, for --symbols @FILE; freqtrade: a file of pairs for each period',
    { group: 'How', default: 'csv', aka: ['format', 'output-format', 'csv', 'freqtrade'] },
  ),
});

export const QUEUE_FLAGS = section({ group: 'How' })({
  queue: takes('NAME', parse.keyName('history'))('name of the queue on the Redis server', {
    group: 'Where',
    default: 'main',
  }),
  every: takes('TIME', every)('how often: day for once a day, or 12h, 8h, 6h, 4h, 3h, 2h or 1h', {
    group: 'When',
    choices: EVERY,
  }),
  'max-waiting': count('adds no further jobs while so many jobs wait in the queue', { default: '100000' }),
  wait: 'wait until the workers have done the jobs; prints the progress of all workers, then the same summary and exit code as a download',
  drain: 'end when the queue is empty; without it, the worker waits for further jobs',
  role: oneOf('ROLE', ['fetch', 'convert', 'both'])(
    'fetch: put the zips of jobs into the bucket of the lake; convert: write the lake from these zips; both: do each job as a whole, and convert',
    { default: 'both' },
  ),
  lease: takesTimeout('time after which the jobs of a killed worker go to other workers', { default: '1m' }),
  codes: words('with --redis: put back only the failed jobs with these error codes, separated by commas', {
    group: 'What',
  }),
});

export const SERVER_FLAGS = section({ group: 'Network' })({
  'clear-bans': takes(
    'HOST',
    parse.text,
  )('remove the stored bans of this host; prints them, and checks nothing else'),
  host: takes('HOST', parse.text)('address to listen on', { default: '127.0.0.1' }),
  port: takes('PORT', parse.port)('port to listen on; 0 chooses a free port', { default: '8090' }),
});

/** One character; `tab` and `\\t` are the tabulator. */
const delimiter = parse.parser(
  'one ASCII character without letters, digits, double quote, point and minus',
  [';', 'tab'],
  (text) => {
    if (text === 'tab' || text === String.raw`\t`) return '\t';
    return /^[\t\x20\x21\x23-\x2c\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]$/.test(text) ? text : undefined;
  },
);

/** Each `%` stands before a letter of strftime in DuckDB. */
const PATTERN = /^(?:[^%\0]|%(?:%|-?[dmyHIMSj]|[aAwbBYpfgnzZUWcxXGuV]))+$/;
const TIME_FORMS = ['iso', 'us', 'ms', 's'];

/** `iso`, `us`, `ms`, `s`, or a pattern with at least one `%`. */
const timeFormat = parse.parser(`${TIME_FORMS.join(', ')} or a pattern`, ['ms', '%Y-%m-%d'], (text) =>
  TIME_FORMS.includes(text) || (text.includes('%') && PATTERN.test(text)) ? text : undefined,
);

const someInterval = parse.parser('an interval', ['1h,8h'], (text) =>
  intervalMs(text) > 0 ? text : undefined,
);

export const OUTPUT_FLAGS = {
  ...section({ group: 'What' })({
    run: takes('ID', parse.text)(
      'run whose figures and failures are shown: last, or the name of a file in OUT/.cryptodl/runs without .json',
      { default: 'last' },
    ),
    column: takes(
      'NAME',
      parse.text,
    )(
      'draw this column as a line; without this flag, candles, or a column of a dataset without candles; cryptodl schema DATASET shows the columns',
    ),
    'mark-interval': words(
      'freqtrade: intervals of the files with mark prices and funding rates; versions of freqtrade differ in the interval that they read',
      { parse: someInterval, default: '1h,8h' },
    ),
    'exchange-info': file(
      'freqtrade: a saved answer of exchangeInfo, which tells base and quote asset of its symbols; for other symbols, the known quote assets tell them',
    ),
    columns: words(
      'csv: columns in this order; NEW=COLUMN gives a column another name, NEW=0 is a column with this number; cryptodl schema DATASET shows the columns',
      { unset: 'all columns of the dataset' },
    ),
  }),
  ...section({ group: 'Where' })({
    html: file('file of the report; an existing file is replaced only if it is a report', {
      aka: ['file', 'to-file', 'report', 'output-file', 'page', 'save'],
    }),
    target: takes('DIR', localFolder)('folder for the files; not within the lake', {
      aka: ['to-dir', 'into', 'destination', 'dest', 'export-dir', 'output-folder', 'datadir'],
    }),
    delimiter: takes('CHARACTER', delimiter)('csv: the character between two cells; tab is the tabulator', {
      default: ',',
      aka: ['separator', 'sep'],
    }),
    'time-format': takes('FORM', timeFormat)(
      'csv: form of times, in UTC: us, ms or s since 1970, iso, or a pattern like %Y-%m-%d %H:%M:%S',
      { default: 'iso' },
    ),
    'one-file':
      'csv: one file with all symbols of a dataset; it has the column symbol; without this flag, one file per symbol',
    'require-complete': {
      group: 'Safety',
      doc: 'export nothing, and end with exit code 4, if the lake lacks data of the selected series',
      aka: ['complete', 'strict'],
    },
  }),
  ...section({ group: 'How' })({
    views:
      'print the CREATE VIEW statements for DuckDB; they contain file names: print them again after each download',
    csv: 'print CSV with all rows; coverage has a line per series and period, with the reason of each gap',
    'fill-empty':
      'with trades as source, also make bars of times without trades in whole days of the lake; their prices are the close before, their volumes are 0; klines have candles for such times, so their bars are always made',
  }),
};
