/** Flags of the verbs that draw, print rows, or write files for other programs. */
import * as parse from './parsers.js';
import { intervalMs } from '../../exchange/exchange-spec.js';
import { localFolder } from './addresses.js';
import { file, LIST, section } from './flag-spec.js';

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

export const OUTPUT_FLAGS = {
  ...section({ group: 'What' })({
    run: {
      value: 'ID',
      doc: 'run whose figures and failures are shown: last, or the name of a file in OUT/.cryptodl/runs without .json',
      parse: parse.text,
      default: 'last',
    },
    column: {
      value: 'NAME',
      doc: 'draw this column as a line; without this flag, candles, or a column of a dataset without candles; cryptodl schema DATASET shows the columns',
      parse: parse.text,
    },
    'mark-interval': {
      ...LIST,
      doc: 'freqtrade: intervals of the files with mark prices and funding rates; versions of freqtrade differ in the interval that they read',
      parse: parse.parser('an interval', ['1h,8h'], (text) => (intervalMs(text) > 0 ? text : undefined)),
      default: '1h,8h',
    },
    'exchange-info': file(
      'freqtrade: a saved answer of exchangeInfo, which tells base and quote asset of its symbols; for other symbols, the known quote assets tell them',
    ),
    columns: {
      ...LIST,
      doc: 'csv: columns in this order; NEW=COLUMN gives a column another name, NEW=0 is a column with this number; cryptodl schema DATASET shows the columns',
      parse: parse.text,
      unset: 'all columns of the dataset',
    },
  }),
  ...section({ group: 'Where' })({
    html: file('file of the report; an existing file is replaced only if it is a report', {
      aka: ['file', 'to-file', 'report', 'output-file', 'page', 'save'],
    }),
    target: {
      doc: 'folder for the files; not within the lake',
      value: 'DIR',
      parse: localFolder,
      aka: ['to-dir', 'into', 'destination', 'dest', 'export-dir', 'output-folder', 'datadir'],
    },
    delimiter: {
      value: 'CHARACTER',
      doc: 'csv: the character between two cells; tab is the tabulator',
      parse: delimiter,
      default: ',',
      aka: ['separator', 'sep'],
    },
    'time-format': {
      value: 'FORM',
      doc: 'csv: form of times, in UTC: us, ms or s since 1970, iso, or a pattern like %Y-%m-%d %H:%M:%S',
      parse: timeFormat,
      default: 'iso',
    },
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
