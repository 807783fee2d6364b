// Rows of made-up market data with the columns, digits and times of the real archive.
import { hash, levelOf } from './synthetic-random.js';
import { fixed, label, scientific, tailOf } from './synthetic-text.js';

/** @import { Random } from './synthetic-random.js' */

/** @typedef {'spot' | 'um' | 'cm'} TradedMarket */
/** @typedef {TradedMarket | 'option'} Market */
/** @typedef {'klines' | 'indexPriceKlines' | 'markPriceKlines' | 'premiumIndexKlines'} BarDataset */
/** @typedef {'aggTrades' | 'trades' | 'bookTicker' | 'bookDepth' | 'liquidationSnapshot'} TickDataset */
/** @typedef {BarDataset | TickDataset | 'metrics' | 'fundingRate' | 'BVOLIndex' | 'EOHSummary'} Dataset */

/**
 * @typedef {object} CsvSpec
 * @property {Market} market
 * @property {Dataset} dataset
 * @property {string} [interval] the four kline datasets only, default `1m`
 * @property {string} symbol of EOHSummary the underlying
 * @property {string} period `YYYY-MM-DD` or `YYYY-MM`
 * @property {number} [seed] default 1
 * @property {boolean} [header]
 * @property {boolean} [shuffle]
 * @property {number} [rowsPerDay] of the tick and option datasets: bookDepth counts snapshots of 10 or 12 rows (default
 *   48), liquidationSnapshot distinct rows, each of which comes twice; EOHSummary's default is 240, all others' 300
 */

/** @typedef {{ spec: CsvSpec, fromMs: number, toMs: number, random: Random }} Job */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Spot times are microseconds from here on. */
export const SPOT_MICROSECONDS_FROM = Date.UTC(2025, 0, 1);
/** Before this time, the label of a um metrics row is the end of its five minutes; from it on, the start. */
const UM_LABEL_SHIFT = Date.UTC(2026, 5, 25);
/** cm metrics of these early years lack three of the four ratios. */
const CM_RATIOS_FROM = Date.UTC(2024, 0, 1);

/** @type {Record<string, number>} */
const UNITS_MS = { s: 1000, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };
/** 1970-01-05, a Monday: weekly bars open on Mondays. */
const FIRST_MONDAY_MS = 4 * DAY_MS;

/**
 * Open times of the bars that open in a period, and the end of the last one.
 * @param {string} interval
 * @param {number} fromMs
 * @param {number} toMs
 * @returns {number[]}
 */
function barBounds(interval, fromMs, toMs) {
  if (interval === '1mo') return [fromMs, toMs];
  const match = /^(\d+)([smhd])$/.exec(interval === '1w' ? '7d' : interval);
  if (match === null) throw new RangeError(`not an interval: ${interval}`);
  const stepMs = Number(match[1]) * (UNITS_MS[match[2] ?? ''] ?? 0);
  const offsetMs = interval === '1w' ? FIRST_MONDAY_MS : 0;
  const bounds = [];
  let at = Math.ceil((fromMs - offsetMs) / stepMs) * stepMs + offsetMs;
  for (; at < toMs; at += stepMs) bounds.push(at);
  return [...bounds, at];
}

/** Decimals of price, volume and quote volume, what they are padded with (spot: always eight), and the most volume. */
const KLINE_DIGITS = {
  spot: { price: 2, pricePad: '000000', volume: 5, volumePad: '000', quote: 8, most: 1e8 },
  um: { price: 2, pricePad: '', volume: 3, volumePad: '', quote: 5, most: 1e7 },
  cm: { price: 1, pricePad: '', volume: 0, volumePad: '', quote: 8, most: 1e5 },
};

/**
 * @param {Job} job
 * @returns {string[]}
 */
export function klineRows({ spec, fromMs, toMs, random }) {
  const digits = KLINE_DIGITS[/** @type {TradedMarket} */ (spec.market)];
  const micros = spec.market === 'spot' && fromMs >= SPOT_MICROSECONDS_FROM;
  const [unit, tail] = micros ? ['000', '999'] : ['', ''];
  const bounds = barBounds(spec.interval ?? '1m', fromMs, toMs);
  const price = (/** @type {number} */ ticks) => fixed(ticks, digits.price) + digits.pricePad;
  const rows = [];
  let close = Math.round(levelOf(spec, fromMs) / 10 ** (2 - digits.price));
  for (let i = 0; i + 1 < bounds.length; i += 1) {
    const open = close;
    close = Math.max(100, Math.round(open * (1 + (random() - 0.5) * 0.002)));
    const high = Math.max(open, close) + Math.floor(random() * open * 0.0005);
    const low = Math.min(open, close) - Math.floor(random() * open * 0.0005);
    const volume = Math.floor(random() ** 3 * digits.most);
    const taker = Math.floor(volume * random());
    const each = open / 10 ** digits.price;
    // Quote volume; of cm the base coin, a contract being 100 USD.
    const worth = spec.market === 'cm' ? 100 / each : each / 10 ** digits.volume;
    const quote = (/** @type {number} */ whole) => `${whole}.${tailOf(random, digits.quote)}`;
    rows.push(
      `${bounds[i]}${unit},${price(open)},${price(high)},${price(low)},${price(close)},` +
        `${fixed(volume, digits.volume)}${digits.volumePad},${(bounds[i + 1] ?? 0) - 1}${tail},${quote(Math.floor(volume * worth) + 1)},` +
        `${Math.floor((volume / digits.most) * 20_000) + 1},${fixed(taker, digits.volume)}${digits.volumePad},${quote(Math.floor(taker * worth))},0\n`,
    );
  }
  return rows;
}

/**
 * Bars of an index, a mark price or a premium: nothing was traded, so only times and prices have values.
 * @param {Job} job
 * @returns {string[]}
 */
export function priceKlineRows({ spec, fromMs, toMs, random }) {
  const isPremium = spec.dataset === 'premiumIndexKlines';
  // In units of 1e-8. A premium wanders around zero, a price around its level.
  const level = isPremium ? 0 : levelOf(spec, fromMs) * 1e6;
  const step = isPremium ? 40_000 : level * 0.001;
  const bounds = barBounds(spec.interval ?? '1m', fromMs, toMs);
  const rows = [];
  let close = level;
  for (let i = 0; i + 1 < bounds.length; i += 1) {
    const open = close;
    close = Math.round(level + (open - level) * 0.9 + (random() - 0.5) * step);
    const high = Math.max(open, close) + Math.floor((random() * step) / 4);
    const low = Math.min(open, close) - Math.floor((random() * step) / 4);
    const prices = [open, high, low, close].map(eightDecimals).join(',');
    rows.push(`${bounds[i]},${prices},0,${(bounds[i + 1] ?? 0) - 1},0,0,0,0,0\n`);
  }
  return rows;
}

/** @param {number} units of 1e-8, also negative */
function eightDecimals(units) {
  return (units < 0 ? '-' : '') + fixed(Math.abs(units), 8);
}

/**
 * @param {Job} job
 * @returns {string[]}
 */
export function metricsRows({ spec, fromMs, toMs, random }) {
  const isCm = spec.market === 'cm';
  const shiftMs = spec.market === 'um' && fromMs < UM_LABEL_SHIFT ? 5 * MINUTE_MS : 0;
  const blank = isCm && fromMs < CM_RATIOS_FROM;
  const level = levelOf(spec, fromMs) / 100;
  let held = Math.floor(90_000 + random() * 20_000) * (isCm ? 50 : 1);
  const rows = [];
  for (let at = fromMs; at < toMs; at += 5 * MINUTE_MS) {
    held += Math.floor((random() - 0.5) * 400);
    const worth = Math.floor(isCm ? (held * 100) / level : held * level * (0.99 + random() * 0.02));
    const interest = isCm
      ? `${held}.00000000,${worth}.${tailOf(random, 8)}`
      : `${held}.${tailOf(random, 3)}0000000000000,${worth}.${tailOf(random, 4)}000000000000`;
    const ratios = blank
      ? '"","",""'
      : `1.4${tailOf(random, 7)},1.9${tailOf(random, 5)}00,1.3${tailOf(random, 7)}`;
    // One um row in five hundred lacks its last ratio, as in the real files.
    const taker = !isCm && random() < 0.002 ? '' : `${random() < 0.5 ? 0 : 1}.${tailOf(random, 6)}00`;
    rows.push(`${label(at + shiftMs)},${spec.symbol},${interest},${ratios},${taker}\n`);
  }
  return rows;
}

/**
 * @param {Job} job
 * @returns {string[]}
 */
export function fundingRows({ spec, fromMs, toMs, random }) {
  const isLarge = /^(BTC|ETH)/.test(spec.symbol);
  const hours = isLarge || hash(spec.symbol) % 3 === 0 ? 8 : 4;
  const rows = [];
  for (let at = fromMs; at < toMs; at += hours * HOUR_MS) {
    const jitterMs = random() < 0.5 ? 0 : Math.floor(random() ** 2 * 27);
    // Rates below a millionth are written with an exponent.
    const scale = random() < 0.05 ? 100 : 10_000;
    rows.push(`${at + jitterMs},${hours},${scientific(Math.round((random() - 0.4) * scale))}\n`);
  }
  return rows;
}
