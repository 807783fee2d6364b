// Makes an archive of synthetic data with the real archive's layout, columns and digits,
// for the demo, the tests and the benchmarks. The same arguments give the same bytes.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { makeZip } from './make-zip.js';
import { bvolRows, eohRows } from './synthetic-option.js';
import { randomFrom } from './synthetic-random.js';
import { fundingRows, klineRows, metricsRows, priceKlineRows } from './synthetic-rows.js';
import {
  aggTradeRows,
  bookDepthRows,
  bookTickerRows,
  liquidationRows,
  tradeRows,
} from './synthetic-ticks.js';

/** @import { Random } from './synthetic-random.js' */
/** @import { CsvSpec, Dataset, Job, Market } from './synthetic-rows.js' */

/**
 * @typedef {object} ArchiveSpec
 * @property {Market} market
 * @property {Dataset} dataset
 * @property {string} [interval] the four kline datasets only, default `1m`
 * @property {readonly string[]} symbols of EOHSummary the underlyings
 * @property {string} from first day, `YYYY-MM-DD`
 * @property {string} to last day, inclusive; a monthly archive holds every month the range touches, whole
 * @property {'daily' | 'monthly'} cadence
 * @property {number} [seed] default 1
 * @property {boolean} [header] default: spot no, others yes
 * @property {boolean} [shuffle] rows out of time order; default as in the real archive: metrics and
 *   EOHSummary only
 * @property {number} [rowsPerDay] of the tick and option datasets, see CsvSpec
 * @property {boolean} [sidecars] write `.CHECKSUM` files, default true
 * @property {number} [level] of the compression, default 1: level 6 takes three times as long, and makes zips that are 8 % smaller
 */

const DAY_MS = 24 * 3600_000;
const FOLDERS = { spot: 'spot', um: 'futures/um', cm: 'futures/cm', option: 'option' };

const KLINES_HEADER =
  'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore';
const AGG_TRADES_HEADER =
  'agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker';
const KLINES = { header: KLINES_HEADER, rows: klineRows };

/** @typedef {{ header: string, rows: (job: Job) => string[], unordered?: boolean }} Maker */

/** @type {Partial<Record<Dataset, Maker>>} */
const FUTURES = {
  klines: KLINES,
  indexPriceKlines: { header: KLINES_HEADER, rows: priceKlineRows },
  markPriceKlines: { header: KLINES_HEADER, rows: priceKlineRows },
  premiumIndexKlines: { header: KLINES_HEADER, rows: priceKlineRows },
  aggTrades: { header: AGG_TRADES_HEADER, rows: aggTradeRows },
  metrics: {
    header:
      'create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,' +
      'sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio',
    rows: metricsRows,
    unordered: true,
  },
  fundingRate: { header: 'calc_time,funding_interval_hours,last_funding_rate', rows: fundingRows },
  bookDepth: { header: 'timestamp,percentage,depth,notional', rows: bookDepthRows },
  bookTicker: {
    header: 'update_id,best_bid_price,best_bid_qty,best_ask_price,best_ask_qty,transaction_time,event_time',
    rows: bookTickerRows,
  },
  liquidationSnapshot: {
    header:
      'time,side,order_type,time_in_force,original_quantity,price,average_price,order_status,' +
      'last_fill_quantity,accumulated_fill_quantity',
    rows: liquidationRows,
  },
};

/**
 * The datasets of the real archive, and um's liquidationSnapshot, which the real archive no longer has.
 * @type {Record<Market, Partial<Record<Dataset, Maker>>>}
 */
const MAKERS = {
  spot: {
    klines: KLINES,
    aggTrades: { header: `${AGG_TRADES_HEADER},is_best_match`, rows: aggTradeRows },
    trades: { header: 'id,price,qty,quote_qty,time,is_buyer_maker,is_best_match', rows: tradeRows },
  },
  um: {
    ...FUTURES,
    trades: { header: 'id,price,qty,quote_qty,time,is_buyer_maker', rows: tradeRows },
  },
  cm: {
    ...FUTURES,
    trades: { header: 'id,price,qty,base_qty,time,is_buyer_maker', rows: tradeRows },
  },
  option: {
    BVOLIndex: { header: 'calc_time,symbol,base_asset,quote_asset,index_value', rows: bvolRows },
    EOHSummary: {
      header:
        'date,hour,symbol,underlying,type,strike,open,high,low,close,volume_contracts,volume_usdt,' +
        'best_bid_price,best_ask_price,best_bid_qty,best_ask_qty,best_buy_iv,best_sell_iv,mark_price,mark_iv,' +
        'delta,gamma,vega,theta,openinterest_contracts,openinterest_usdt',
      rows: eohRows,
      unordered: true,
    },
  },
};

/**
 * Writes zips (and sidecars) under `<directory>/data/...`. `objects`, `rows` and `bytes` count the zips;
 * `keys` are the keys of the zips, by symbol in the given order, then by period.
 * @param {string} directory
 * @param {ArchiveSpec} spec
 * @returns {{ objects: number, rows: number, bytes: number, keys: string[] }}
 */
export function makeArchive(directory, spec) {
  const { market, dataset, cadence, interval = '1m', level = 1 } = spec;
  const made = { objects: 0, rows: 0, bytes: 0, keys: /** @type {string[]} */ ([]) };
  for (const symbol of spec.symbols) {
    const isBars = /klines$/i.test(dataset);
    const layer = isBars ? `/${interval}` : '';
    const folder = `data/${FOLDERS[market]}/${cadence}/${dataset}/${symbol}${layer}`;
    mkdirSync(join(directory, folder), { recursive: true });
    for (const period of periodsOf(spec)) {
      const stem = `${symbol}-${isBars ? interval : dataset}-${period}`;
      const { csv, rows } = makeCsv({ ...spec, symbol, period });
      const zip = makeZip([{ name: `${stem}.csv`, data: csv, level }]);
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
 * The CSV text of one archive object and its number of rows without the header. Throws for a dataset the
 * market does not have.
 * @param {CsvSpec} spec
 * @returns {{ csv: string, rows: number }}
 */
export function makeCsv(spec) {
  const { market, dataset, interval = '1m', symbol, period, seed = 1 } = spec;
  const maker = MAKERS[market][dataset];
  if (maker === undefined) throw new RangeError(`no ${dataset} in ${market}`);
  const [fromMs, toMs] = boundsOf(period);
  const random = randomFrom(`${seed}/${market}/${dataset}/${interval}/${symbol}/${period}`);
  const rows = maker.rows({ spec, fromMs, toMs, random });
  const ordered = (spec.shuffle ?? maker.unordered === true) ? inRuns(rows, random) : rows;
  const header = (spec.header ?? market !== 'spot') ? `${maker.header}\n` : '';
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
 * The half-open range in epoch milliseconds.
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
 * Order of the real metrics files: several sequences one after the other, each ascending over the whole day.
 * @param {readonly string[]} rows
 * @param {Random} random
 */
function inRuns(rows, random) {
  /** @type {string[][]} */
  const runs = Array.from({ length: 19 }, () => []);
  for (const row of rows) runs[Math.floor(random() * runs.length)]?.push(row);
  return runs.flat();
}
