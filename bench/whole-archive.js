/**
 * Computes what the whole Binance Vision archive takes: objects, bytes, requests, CPU time, days, and the cost of a lake in a bucket.
 * `node bench/whole-archive.js` prints the tables of docs/scale.md.
 */
import { fileURLToPath } from 'node:url';

/**
 * Zips of the archive at the end of June 2026. `months`: series-months with a monthly object. `kilobytes`: a monthly zip, on average.
 * A count is a listing's, times the number of intervals; `wide` extends a listing of USDT pairs to all quotes. No count of the whole
 * archive has been published, so these are estimates: within a factor of two, except for trades of spot, where single zips have 2.6 GB.
 */
const INTERVALS = 13;
/** Spot pairs that traded in May 2025 (1,559), divided by USDT pairs with an object of the previous day in February 2026 (446). */
const WIDE = 3.5;
/** Daily zips of USDT spot pairs at 1m: 736,121 in February 2026. */
const SPOT_MONTHS = Math.round((736_121 / 30.4) * WIDE);
/** Monthly zips of um USDT at 1m: 18,988 at the end of June 2026. */
const UM_MONTHS = 18_988;
/** cm has 65 symbols with klines for 483 of um (May 2025). */
const CM_MONTHS = Math.round((UM_MONTHS * 65) / 483);
/** Bytes of all intervals, divided by those of 1m: 1/3 + 1/5 + 1/15 + … more. */
const ALL_INTERVALS = 1.7;

/**
 * @typedef {object} Group
 * @property {string} name
 * @property {number} objects
 * @property {number} kilobytes of an object
 * @property {number} partitions files of the lake
 * @property {number} monthsPerJob of a queue
 */

/** A job is a year of a series with small months, and series begin and end within a year: the 39 months of a series of um are 4.3 jobs. */
const MONTHS_PER_JOB = 9;

/**
 * @param {string} name
 * @param {number} months
 * @param {number} kilobytes
 * @param {number} [monthsPerJob] a month of a series with large months is a job
 * @returns {Group}
 */
function monthly(name, months, kilobytes, monthsPerJob = 1) {
  return { name, objects: months, kilobytes, partitions: months, monthsPerJob };
}

/** Bars of all intervals. `kilobytes`: a month of 1m. */
function klines(/** @type {string} */ name, /** @type {number} */ months, /** @type {number} */ kilobytes) {
  const objects = months * INTERVALS;
  const each = (kilobytes * ALL_INTERVALS) / INTERVALS;
  return monthly(`${name} klines, ${INTERVALS} intervals`, objects, each, MONTHS_PER_JOB);
}

/** @returns {Group[]} */
export function groups() {
  return [
    klines('spot', SPOT_MONTHS, 1200),
    klines('um', UM_MONTHS, 1800),
    klines('cm', CM_MONTHS, 1400),
    {
      name: 'um, cm: premium, mark and index klines',
      objects: 3 * INTERVALS * (UM_MONTHS + CM_MONTHS),
      kilobytes: 130,
      partitions: 3 * INTERVALS * (UM_MONTHS + CM_MONTHS),
      monthsPerJob: MONTHS_PER_JOB,
    },
    {
      name: 'um, cm metrics (daily)',
      objects: 30 * (UM_MONTHS + CM_MONTHS),
      kilobytes: 10,
      partitions: UM_MONTHS + CM_MONTHS,
      monthsPerJob: MONTHS_PER_JOB,
    },
    monthly('spot klines 1s', SPOT_MONTHS, 8000),
    monthly('um aggTrades', 15_396, 60_000),
    monthly('um trades', 15_396, 70_000),
    monthly('spot aggTrades', SPOT_MONTHS, 20_000),
    monthly('spot trades', SPOT_MONTHS, 25_000),
  ];
}

/** CPU milliseconds of an object and of a megabyte of zip: W1 (3,100 objects, 7.5 s) and W3 (12 zips, 202 MB, 15.5 s) of docs/performance.md. */
const CPU_MS_PER_OBJECT = 2.4;
const CPU_MS_PER_MEGABYTE = 77;
/** Bytes of Parquet per byte of zip. */
const PARQUET = 1.1;
/** List prices of AWS S3 in us-east-1, USD. */
const USD_PER_1000_PUTS = 0.005;
const USD_PER_1000_GETS = 0.0004;
const USD_PER_GB_MONTH = 0.023;

/** Partitions that one worker writes in a second into a bucket that answers after 100 ms (docs/s3.md). */
const PARTITIONS_PER_SECOND = 20;
/** Requests of one partition to the bucket: the file and its manifest, each a PUT, and a HEAD after it. */
const PUTS_PER_PARTITION = 2;
const HEADS_PER_PARTITION = 2;

/** Bytes of Redis of a waiting job (bench/million-jobs.js). */
const REDIS_BYTES_PER_JOB = 1200;

/** @returns {string} */
export function wholeArchive() {
  const all = groups();
  const sum = (/** @type {(group: Group) => number} */ of) =>
    all.reduce((total, group) => total + of(group), 0);
  const objects = sum((group) => group.objects);
  const gigabytes = sum(gigabytesOf);
  const partitions = sum((group) => group.partitions);
  const jobs = sum((group) => group.partitions / group.monthsPerJob);
  const rows = [...all, { name: 'together', objects, partitions, kilobytes: (gigabytes * 1e6) / objects }];
  const cpuHours = (objects * CPU_MS_PER_OBJECT + gigabytes * 1000 * CPU_MS_PER_MEGABYTE) / 3_600_000;
  return [
    table(
      ['part', 'objects', 'zips, GB', 'files in the lake'],
      rows.map((row) => [row.name, counted(row.objects), counted(gigabytesOf(row)), counted(row.partitions)]),
    ),
    table(
      ['', 'whole archive'],
      [
        ['requests to the archive (object and sidecar)', counted(2 * objects)],
        ['the same with `--verify etag`', counted(objects)],
        ['CPU hours', counted(cpuHours)],
        ['the lake as Parquet, GB', counted(gigabytes * PARQUET)],
        [
          'S3: writes (PUT)',
          `${counted(PUTS_PER_PARTITION * partitions)}, ${usd((PUTS_PER_PARTITION * partitions * USD_PER_1000_PUTS) / 1000)}`,
        ],
        [
          'S3: reads (HEAD)',
          `${counted(HEADS_PER_PARTITION * partitions)}, ${usd((HEADS_PER_PARTITION * partitions * USD_PER_1000_GETS) / 1000)}`,
        ],
        ['S3: storage per month', usd(gigabytes * PARQUET * USD_PER_GB_MONTH)],
        [
          'jobs of a queue, Redis memory for all at once',
          `${counted(jobs)}, ${counted((jobs * REDIS_BYTES_PER_JOB) / 1e6)} MB`,
        ],
      ],
    ),
    table(
      ['workers of 2 cores', 'line 100 Mbit/s each', 'line 1 Gbit/s each'],
      [1, 3, 10, 30].map((workers) => [
        String(workers),
        ...[100, 1000].map((megabits) => daysText({ gigabytes, cpuHours, partitions }, workers, megabits)),
      ]),
    ),
  ].join('\n\n');
}

/** The slowest of line, cores and bucket decides. */
function daysText(
  /** @type {{ gigabytes: number, cpuHours: number, partitions: number }} */ archive,
  /** @type {number} */ workers,
  /** @type {number} */ megabits,
) {
  const days = {
    line: (archive.gigabytes * 8000) / (megabits * workers) / 86_400,
    CPU: archive.cpuHours / (2 * workers) / 24,
    bucket: archive.partitions / (PARTITIONS_PER_SECOND * workers) / 86_400,
  };
  const [by = '', most = 0] = Object.entries(days).sort((a, b) => b[1] - a[1])[0] ?? [];
  return `${most.toFixed(1)} days, by ${by}`;
}

function gigabytesOf(/** @type {Pick<Group, 'objects' | 'kilobytes'>} */ { objects, kilobytes }) {
  return (objects * kilobytes) / 1e6;
}

function counted(/** @type {number} */ number) {
  return Math.round(number).toLocaleString('en-US');
}

function usd(/** @type {number} */ number) {
  return `${counted(number)} USD`;
}

function table(/** @type {readonly string[]} */ head, /** @type {readonly (readonly string[])[]} */ rows) {
  return [head, head.map(() => '---'), ...rows].map(rowText).join('\n');
}

function rowText(/** @type {readonly string[]} */ cells) {
  return `| ${cells.join(' | ')} |`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.stdout.write(`${wholeArchive()}\n`);
