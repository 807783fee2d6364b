// An archive of made-up data in the real one's layout, columns and digits (facts: vision-archive.md 1.0 and 1.3):
// for the demo, the tests and the benchmarks. The same arguments give the same bytes.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { makeZip } from './make-zip.js';
import { fundingRows, klineRows, metricsRows } from './synthetic-rows.js';
import { randomFrom } from './synthetic-random.js';

/** @import { CsvSpec, Dataset, Market } from './synthetic-rows.js' */
/** @import { Random } from './synthetic-random.js' */

/**
 * @typedef {object} ArchiveSpec
 * @property {Market} market
 * @property {Dataset} dataset
 * @property {string} [interval] klines only, default `1m`
 * @property {readonly string[]} symbols
 * @property {string} from first day, `YYYY-MM-DD`
 * @property {string} to last day, inclusive; a monthly archive holds every month the range touches, whole
 * @property {'daily' | 'monthly'} cadence
 * @property {number} [seed] default 1
 * @property {boolean} [header] default as in the real archive: spot no, others yes
 * @property {boolean} [shuffle] rows out of time order; default as in the real archive: metrics only
 * @property {boolean} [sidecars] write `.CHECKSUM` files, default true
 */

const DAY_MS = 24 * 3600_000;
const FOLDERS = { spot: 'spot', um: 'futures/um', cm: 'futures/cm' };
const HEADERS = {
  klines:
    'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore',
  metrics:
    'create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,' +
    'sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio',
  fundingRate: 'calc_time,funding_interval_hours,last_funding_rate',
};
const ROWS = { klines: klineRows, metrics: metricsRows, fundingRate: fundingRows };

/**
 * Writes zips (and sidecars) under `<directory>/data/...`. `objects`, `rows` and `bytes` count the zips;
 * `keys` are theirs, symbol by symbol in the order given, periods ascending.
 * @param {string} directory
 * @param {ArchiveSpec} spec
 * @returns {{ objects: number, rows: number, bytes: number, keys: string[] }}
 */
export function makeArchive(directory, spec) {
  const { market, dataset, cadence, interval = '1m' } = spec;
  const made = { objects: 0, rows: 0, bytes: 0, keys: /** @type {string[]} */ ([]) };
  for (const symbol of spec.symbols) {
    const layer = dataset === 'klines' ? `/${interval}` : '';
    const folder = `data/${FOLDERS[market]}/${cadence}/${dataset}/${symbol}${layer}`;
    mkdirSync(join(directory, folder), { recursive: true });
    for (const period of periodsOf(spec)) {
      const stem = `${symbol}-${dataset === 'klines' ? interval : dataset}-${period}`;
      const { csv, rows } = makeCsv({ ...spec, symbol, period });
      const zip = makeZip([{ name: `${stem}.csv`, data: csv }]);
      const key = `${folder}/${stem}.zip`;
      writeFileSync(join(directory, key), zip);
      if (spec.sidecars !== false) {
        const digest = createHash('sha256').update(zip).digest('hex');
        writeFileSync(join(directory, `${key}.CHECKSUM`), `${digest}  ${stem}.zip\n`);
      }
      made.objects += 1;
      made.rows += rows;
      made.bytes += zip.length;
      made.keys.push(key);
    }
  }
  return made;
}

/**
 * The CSV text of one archive object and its number of rows without the header.
 * @param {CsvSpec} spec
 * @returns {{ csv: string, rows: number }}
 */
export function makeCsv(spec) {
  const { market, dataset, interval = '1m', symbol, period, seed = 1 } = spec;
  const [fromMs, toMs] = boundsOf(period);
  const random = randomFrom(`${seed}/${market}/${dataset}/${interval}/${symbol}/${period}`);
  const rows = ROWS[dataset]({ spec, fromMs, toMs, random });
  const ordered = (spec.shuffle ?? dataset === 'metrics') ? inRuns(rows, random) : rows;
  const header = (spec.header ?? market !== 'spot') ? `${HEADERS[dataset]}\n` : '';
  return { csv: header + ordered.join(''), rows: rows.length };
}

/**
 * @param {ArchiveSpec} spec
 * @returns {string[]}
 */
function periodsOf({ from, to, cadence }) {
  /** @type {string[]} */
  const periods = [];
  const last = boundsOf(to)[0];
  for (let at = boundsOf(from)[0]; at <= last; at += DAY_MS) {
    const period = new Date(at).toISOString().slice(0, cadence === 'daily' ? 10 : 7);
    if (periods.at(-1) !== period) periods.push(period);
  }
  return periods;
}

/**
 * Half-open, epoch milliseconds.
 * @param {string} period
 * @returns {[number, number]}
 */
function boundsOf(period) {
  if (!/^\d{4}-\d\d(-\d\d)?$/.test(period)) throw new RangeError(`not a day or month: ${period}`);
  const fromMs = Date.parse(`${period.padEnd(10, '-01')}T00:00:00Z`);
  const from = new Date(fromMs);
  if (Number.isNaN(fromMs) || !from.toISOString().startsWith(period))
    throw new RangeError(`no such day: ${period}`);
  if (period.length === 10) return [fromMs, fromMs + DAY_MS];
  return [fromMs, Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1)];
}

/**
 * Order of the real metrics files: runs that each ascend over the whole day, one behind the other.
 * @param {readonly string[]} rows
 * @param {Random} random
 */
function inRuns(rows, random) {
  /** @type {string[][]} */
  const runs = Array.from({ length: 19 }, () => []);
  for (const row of rows) runs[Math.floor(random() * runs.length)]?.push(row);
  return runs.flat();
}
