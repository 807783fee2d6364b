/** Flags about the lake: its files, what is printed, checks, and limits of a run. */
import { FORMATS } from '../../model/task.js';
import { lake } from './addresses.js';
import { takesDuration, file, folder, oneOf, section, takes } from './flag-spec.js';
import * as parse from './parsers.js';
import { DEFAULT_LAKE } from '../../text/printable.js';

/** A sample of the periods of each series: `--sample 5`, or with the seed of an earlier draw `--sample 5:1f2e3d4c`. */
export interface Sample {
  /** Periods of each series, at most. */
  readonly count: number;
  /** Undefined: the command draws one. */
  readonly seed: string | undefined;
}

const sample = parse.parser<Sample>('a number of days or months, or N:SEED', ['5', '5:1f2e3d4c'], (value) => {
  const [, count, seed] = /^([1-9]\d{0,8})(?::(\w{1,64}))?$/.exec(value) ?? [];
  return count === undefined ? undefined : { count: Number(count), seed };
});

export const LAKE_FLAGS = {
  ...section({ group: 'Where' })({
    out: takes('DIR', lake)('folder of the lake; of most commands, also an s3:// address', {
      isCarried: true,
      short: 'o',
      default: `./${DEFAULT_LAKE}`,
      aka: ['output', 'output-dir', 'outdir', 'out-dir', 'dir', 'directory', 'datadir', 'data-dir'],
    }),
    format: oneOf('FORMAT', FORMATS, { parquet: ['pq'] })(
      'parquet, csv or zip; zip keeps the files of the archive',
      {
        isCarried: true,
        short: 'f',
        default: 'parquet',
        aka: ['ext', 'output-format', 'data-format', 'data-format-ohlcv', 'csv', 'parquet', 'zip'],
      },
    ),
    partition: oneOf('GRAIN', ['auto', 'day', 'month'])(
      'period of one file: auto, day or month; auto depends on the dataset',
      { default: 'auto' },
    ),
    numbers: oneOf('KIND', ['double', 'string'])(
      'type of numbers in Parquet: double, or string with every digit',
      { default: 'double' },
    ),
    timestamps: oneOf('FORM', ['us', 'ms', 'iso', 'utc'], {
      us: ['micros', 'microseconds'],
      ms: ['millis', 'milliseconds'],
    })(
      'form of times: us, ms or iso in CSV; utc for Parquet columns with the time zone UTC (in CSV the same as iso)',
      { default: 'us' },
    ),
    failures: file(
      'file for the failure report; an existing file is replaced only if it is a failure report',
      { unset: 'a new file in OUT/_failures' },
    ),
    'temp-dir': folder('folder for temporary files', { isCarried: true, unset: 'OUT/.cryptodl/tmp' }),
    'state-dir': folder(
      'folder that the runs of this machine share; it holds bans, rate limits, cached responses, files of buckets and debug dumps',
      { unset: '$XDG_STATE_HOME/cryptodl or ~/.local/state/cryptodl' },
    ),
  }),
  ...section({ group: 'How' })({
    cadence: oneOf('CADENCE', ['auto', 'daily', 'monthly'])(
      'objects of the archive: auto, daily or monthly; auto prefers monthly objects for files of a month, and daily objects for files of a day',
      { default: 'auto' },
    ),
    'as-published': 'keep the published order of rows, and duplicates',
    prefer: oneOf('CADENCE', ['daily'])(
      'daily: rebuild faulty months of the lake from daily objects; a month is faulty if its monthly object lacks rows or has wrong rows',
    ),
    against: oneOf('SOURCE', ['rest'])(
      'rest: compare the bars of the lake with REST; by value, each held day or month, without the archive',
    ),
    sample: takes(
      'N[:SEED]',
      sample,
    )(
      'compare only N days or months of each series with REST, drawn at random; the summary shows the seed, which draws them again',
    ),
    force: {
      isCarried: true,
      doc: 'write everything again; downloads fetch it again, also with other settings than those of the lake; export, report, plot and universe also replace files of other programs',
      aka: ['overwrite', 'refresh', 'erase'],
    },
    'dry-run': {
      short: 'n',
      doc: 'print the plan and do nothing; the plan of a download has a line per object: fetch, skip or absent, bytes and key',
      aka: ['plan', 'simulate'],
    },
    kind: oneOf('KIND', ['cron', 'systemd', 'both'])('what to print: cron, systemd or both', {
      default: 'both',
      aka: ['cron', 'systemd'],
    }),
    long: 'show periods, objects and bytes of each symbol; takes a few requests per symbol',
  }),
};

export const SAFETY_FLAGS = section({ group: 'Safety' })({
  deep: 'read every row again; checks values, times, order and row counts',
  yes: 'remove; without this flag, print what would be removed',
  fix: 'move damaged files and files that no manifest line names into OUT/_quarantine, and remove leftovers of killed runs; cryptodl repair then fetches the missing objects',
  verify: oneOf('HOW', ['sha256', 'etag', 'none'])(
    'check of each object: sha256, etag or none; sha256 uses the digest of the sidecar, etag the MD5 of the listing',
    { isCarried: true, default: 'sha256' },
  ),
  revisions: oneOf('HOW', ['check', 'take', 'ignore', 'only'])(
    'objects that changed upstream: check, take, ignore or only; check: fetch them again and replace the rows, unless rows of the lake would be lost; take: always replace the rows; ignore: keep the rows of the lake; only: like check, but fetch no other objects',
    { isCarried: true, default: 'check' },
  ),
  'recheck-days': takes('N', parse.integer(0, 'day'))(
    'check the last N days for revisions; if the range ends within these days, the run also checks held days of these N days that are outside of the range, and fetches missing days between a held day and the end of the range',
    { isCarried: true, default: '7' },
  ),
  'stale-checksum': oneOf('WHAT', ['fail', 'warn'])(
    'for an object that does not match its sidecar, but has the size and ETag of the listing: fail, or warn and use it',
    { isCarried: true, default: 'fail' },
  ),
  'max-bytes': takes('SIZE', parse.bytes)('end before the first download if the plan is larger', {
    unit: 'Bytes',
    aka: ['max-transfer', 'max-size'],
  }),
  strict: {
    isCarried: true,
    doc: 'end with exit code 4 if a series of the run lacks data; what is proven to be absent does not count, and neither does what is not due yet',
  },
  'error-on-nothing': 'end with exit code 5 if nothing new was written',
  'wait-lock': takesDuration(
    'wait this long for the lock of the lake; without this flag, a locked lake ends the run at once with exit code 6',
  ),
  min: takes('PERCENT', parse.percent)(
    'end with exit code 4 if a series has less than this percentage of the expected data',
    { unit: 'Percent', aka: ['threshold', 'minimum', 'fail-under'] },
  ),
});
