/** The workloads: objects, contenders and target ratios. bench/README.md explains them. */
import {
  aria2,
  chain,
  cryptodl,
  curlRaw,
  curlRetrying,
  floor,
  least,
  listings,
  plain,
  rclone,
  requestsAlone,
  twoProcesses,
  wget2,
} from './contenders.js';
import { cpuRatio, objectRequests, peakBytes, requestsOver, wallRatio } from './targets.js';

/** @import { ArchiveSpec } from '../scripts/synthetic-archive.js' */
/** @import { Contender, Place } from './contenders.js' */
/** @import { Target } from './targets.js' */
/** @import { ExpectedFile } from './check.js' */

/**
 * @typedef {object} Workload
 * @property {string} id
 * @property {ArchiveSpec} archive
 * @property {'static' | 'late' | 'weather'} server
 * @property {readonly ('ram' | 'disk')[]} on file systems of the output folder
 * @property {string} yardstick id of the contender that the others are divided by
 * @property {(place: Place) => readonly Contender[]} contenders
 * @property {{ files: readonly ExpectedFile[], distinct: string }} parquet
 * @property {readonly Target[]} targets
 * @property {true} [isLong] only with --full
 * @property {string} [before] id of the contender that fills the folder once, before all rounds
 * @property {string} [delayOf] id of the contender whose event loop is watched, in a run that is not counted
 */

const JANUARY = { from: '2024-01-01', to: '2024-01-31' };
const HUNDRED_DAYS = { from: '2024-01-01', to: '2024-04-09' };
const TWELVE_DAYS = { from: '2024-01-01', to: '2024-01-12' };
const PARQUET = { id: 'a', name: 'cryptodl, to Parquet', makes: /** @type {const} */ ('parquet') };
const ZIP = { id: 'd', name: 'cryptodl, zips verified', makes: /** @type {const} */ ('zip') };
const VISION = `vision --dataset metrics --symbols all --from ${JANUARY.from} --to ${JANUARY.to}`;
const KLINES = `vision --dataset klines --interval 1m --symbols all --from ${HUNDRED_DAYS.from} --to ${HUNDRED_DAYS.to}`;
const TRADES = `vision --dataset aggTrades --symbols all --from ${TWELVE_DAYS.from} --to ${TWELVE_DAYS.to}`;

/**
 * @param {number} share of the symbols, or of the rows where there is one symbol; 1 is all
 * @returns {Workload[]}
 */
export function createWorkloads(share) {
  const metrics = metricsOf(symbols(100 * share));
  const klines = klinesOf(symbols(20 * share));
  const many = metricsOf(symbols(1000 * share));
  return [
    w1(metrics),
    w1Many(many, symbols(100 * share)),
    w1Two(metrics),
    w1Figures(metrics),
    w2(klines),
    w2Far(klines),
    w3(1_000_000 * share),
    w4(metrics),
    w5(metrics),
  ];
}

/** @typedef {Pick<Workload, 'archive' | 'parquet'>} Data */

/** @returns {Workload} */
function w1(/** @type {Data} */ metrics) {
  return {
    ...metrics,
    id: 'W1',
    server: 'static',
    on: ['ram', 'disk'],
    yardstick: 'b',
    contenders: (place) => [
      cryptodl(place, PARQUET, `${VISION} --concurrency 50`),
      chain(place, 'b'),
      curlRaw(place, 'c'),
      cryptodl(place, ZIP, `${VISION} --concurrency 50 --format zip`),
      cryptodl(
        place,
        { ...PARQUET, id: 'e', name: 'cryptodl, --verify etag' },
        `${VISION} --concurrency 50 --verify etag`,
      ),
      aria2(place, 'f'),
      aria2(place, 'g', true),
      wget2(place, 'h'),
      rclone(place, 'i'),
      requestsAlone(place, 'o'),
      least(place, 'q'),
    ],
    targets: [
      cpuRatio('a', 'q', 1.55, 'ram'),
      cpuRatio('e', 'q', 1.5, 'ram'),
      cpuRatio('d', 'o', 3, 'ram'),
      wallRatio('a', 'b', 5, 'ram'),
    ],
    delayOf: 'a',
  };
}

/**
 * Ten times as many objects, and a tenth of these: the time per object must be the same.
 * @returns {Workload}
 */
function w1Many(/** @type {Data} */ metrics, /** @type {readonly string[]} */ tenth) {
  const few = {
    ...PARQUET,
    id: 'p',
    name: 'cryptodl, a tenth of them',
    makes: /** @type {const} */ ('nothing'),
  };
  return {
    ...metrics,
    id: 'W1 many',
    server: 'static',
    on: ['ram'],
    yardstick: 'p',
    contenders: (place) => [
      cryptodl(place, PARQUET, `${VISION} --concurrency 50`),
      cryptodl(place, few, visionOf(tenth)),
    ],
    targets: [wallRatio('a', 'p', 11, 'ram')],
    isLong: true,
  };
}

/**
 * Shows whether a second process is faster.
 * @returns {Workload}
 */
function w1Two(/** @type {Data} */ metrics) {
  const { symbols: names } = metrics.archive;
  const middle = Math.ceil(names.length / 2);
  return {
    ...metrics,
    id: 'W1 two',
    server: 'static',
    on: ['ram'],
    yardstick: 'a',
    contenders: (place) => [
      cryptodl(place, PARQUET, `${VISION} --concurrency 50`),
      twoProcesses(place, 'r', [visionOf(names.slice(0, middle)), visionOf(names.slice(middle))]),
    ],
    targets: [],
    isLong: true,
  };
}

/**
 * What the figures cost: Prometheus and the debug dump.
 * @returns {Workload}
 */
function w1Figures(/** @type {Data} */ metrics) {
  const figures = '--prometheus-port 9464 --prometheus-textfile cryptodl.prom --debug-dump dump.json';
  return {
    ...metrics,
    id: 'W1 figures',
    server: 'static',
    on: ['ram'],
    yardstick: 'a',
    contenders: (place) => [
      cryptodl(place, PARQUET, `${VISION} --concurrency 50`),
      cryptodl(
        place,
        { ...PARQUET, id: 's', name: 'cryptodl, all figures on' },
        `${VISION} --concurrency 50 ${figures}`,
      ),
    ],
    targets: [cpuRatio('s', 'a', 1.05)],
    isLong: true,
  };
}

/** @returns {Workload} */
function w2(/** @type {Data} */ klines) {
  return {
    ...klines,
    id: 'W2',
    server: 'static',
    on: ['ram', 'disk'],
    yardstick: 'b',
    contenders: (place) => [
      cryptodl(place, PARQUET, `${KLINES} --concurrency 50`),
      chain(place, 'b'),
      curlRaw(place, 'c'),
      cryptodl(place, ZIP, `${KLINES} --concurrency 50 --format zip`),
      aria2(place, 'f'),
      aria2(place, 'g', true),
      wget2(place, 'h'),
      rclone(place, 'i'),
      plain(place, 'j'),
      requestsAlone(place, 'o'),
      least(place, 'q'),
    ],
    targets: [cpuRatio('a', 'q', 1.35, 'ram'), peakBytes('a', 450e6, 'ram')],
  };
}

/**
 * The plain script waits for each object, which takes minutes.
 * @returns {Workload}
 */
function w2Far(/** @type {Data} */ klines) {
  return {
    ...klines,
    id: 'W2 far',
    server: 'late',
    on: ['ram'],
    yardstick: 'j',
    contenders: (place) => [cryptodl(place, PARQUET, KLINES), plain(place, 'j')],
    targets: [wallRatio('a', 'j', 1 / 40, 'ram')],
    isLong: true,
  };
}

/** @returns {Workload} */
function w3(/** @type {number} */ rows) {
  const [symbol = ''] = symbols(1);
  const days = Array.from({ length: 12 }, (_, day) => String(day + 1).padStart(2, '0'));
  return {
    id: 'W3',
    archive: {
      market: 'um',
      dataset: 'aggTrades',
      symbols: [symbol],
      ...TWELVE_DAYS,
      cadence: 'daily',
      rowsPerDay: rows,
    },
    server: 'static',
    on: ['ram'],
    yardstick: 'k',
    contenders: (place) => [cryptodl(place, PARQUET, TRADES), floor(place, 'k')],
    parquet: {
      files: days.map((day) => ({
        file: `binance/um/aggTrades/symbol=${symbol}/2024-01-${day}.parquet`,
        rows,
      })),
      distinct: 'agg_trade_id',
    },
    targets: [wallRatio('a', 'k', 1.1, 'ram'), peakBytes('a', 600e6)],
    delayOf: 'a',
  };
}

/** @returns {Workload} */
function w4(/** @type {Data} */ metrics) {
  const useful = 2 * metrics.archive.symbols.length * 31;
  return {
    ...metrics,
    id: 'W4',
    server: 'weather',
    on: ['ram'],
    yardstick: 'l',
    contenders: (place) => [
      cryptodl(place, PARQUET, VISION),
      cryptodl(place, { ...PARQUET, id: 'm', name: 'cryptodl, 128 at once' }, `${VISION} --concurrency 128`),
      curlRetrying(place, 'l'),
      aria2(place, 'g', true),
      wget2(place, 'h'),
    ],
    targets: [wallRatio('a', 'm', 1.25), wallRatio('a', 'l', 0.6), requestsOver('a', useful, 1.1)],
  };
}

/** @returns {Workload} */
function w5(/** @type {Data} */ metrics) {
  const prefixes = metrics.archive.symbols.map((symbol) => `data/futures/um/daily/metrics/${symbol}/`);
  return {
    ...metrics,
    id: 'W5',
    server: 'static',
    on: ['ram'],
    yardstick: 'n',
    contenders: (place) => [
      { ...cryptodl(place, { ...PARQUET, name: 'cryptodl, nothing new' }, VISION), keepsOut: true },
      { ...listings(place, 'n', prefixes), keepsOut: true },
    ],
    targets: [wallRatio('a', 'n', 2.5), objectRequests('a', 0)],
    before: 'a',
  };
}

/** @returns {Data} */
function metricsOf(/** @type {readonly string[]} */ names) {
  return {
    archive: { market: 'um', dataset: 'metrics', symbols: names, ...JANUARY, cadence: 'daily' },
    parquet: {
      files: names.map((symbol) => ({
        file: `binance/um/metrics/symbol=${symbol}/2024-01.parquet`,
        rows: 31 * 288,
      })),
      distinct: 'create_time',
    },
  };
}

/** @type {readonly [month: string, days: number][]} */
const KLINE_MONTHS = [
  ['2024-01', 31],
  ['2024-02', 29],
  ['2024-03', 31],
  ['2024-04', 9],
];

/** @returns {Data} */
function klinesOf(/** @type {readonly string[]} */ names) {
  return {
    archive: {
      market: 'um',
      dataset: 'klines',
      interval: '1m',
      symbols: names,
      ...HUNDRED_DAYS,
      cadence: 'daily',
    },
    parquet: {
      files: names.flatMap((symbol) =>
        KLINE_MONTHS.map(([month, days]) => ({
          file: `binance/um/klines/interval=1m/symbol=${symbol}/${month}.parquet`,
          rows: days * 1440,
        })),
      ),
      distinct: 'open_time',
    },
  };
}

/** @param {readonly string[]} names of symbols */
function visionOf(names) {
  return `${VISION.replace('all', names.join(','))} --concurrency 50`;
}

/** @param {number} count at least one */
function symbols(count) {
  const length = Math.max(1, Math.round(count));
  return Array.from({ length }, (_, index) => `SYN${String(index).padStart(3, '0')}USDT`);
}
