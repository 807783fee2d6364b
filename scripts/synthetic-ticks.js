// Rows of single events: trades, best prices, depth and liquidations.
import { levelOf, randomFrom } from './synthetic-random.js';
import { SPOT_MICROSECONDS_FROM } from './synthetic-rows.js';
import { fixed, label, tailOf, trimmed } from './synthetic-text.js';

/** @import { Random } from './synthetic-random.js' */
/** @import { Job, TradedMarket } from './synthetic-rows.js' */

const DAY_MS = 24 * 3600_000;
/** bookDepth: bands are written `-5.00` instead of `-5` from here on. */
const BAND_DECIMALS_FROM = Date.UTC(2026, 0, 1);
/** bookDepth: bands of a fifth of a percent from here on. The day is a fact, the hour is made up. */
const NARROW_BANDS_FROM = Date.UTC(2026, 0, 15, 8);

/** Decimals of the smallest step of price and quantity. */
const DIGITS = {
  spot: { price: 2, quantity: 5 },
  um: { price: 2, quantity: 3 },
  cm: { price: 1, quantity: 0 },
};

/**
 * @typedef {object} Day
 * @property {number} dayMs
 * @property {number} day since 1970; ids are derived from it, so they ascend from file to file
 * @property {number} count of ticks
 * @property {readonly number[]} micros ascending
 * @property {Random} random
 */

/**
 * The days of a period. The rows of a day depend on the day alone, so a month has the rows of its days.
 * @param {Job} job
 * @param {number} [defaultCount]
 * @returns {Day[]}
 */
export function daysOf({ spec, fromMs, toMs }, defaultCount = 300) {
  const { market, dataset, symbol, seed = 1, rowsPerDay: count = defaultCount } = spec;
  if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`not a number of rows: ${count}`);
  const stepMicros = (DAY_MS * 1000) / count;
  const days = [];
  for (let dayMs = fromMs; dayMs < toMs; dayMs += DAY_MS) {
    const day = dayMs / DAY_MS;
    const random = randomFrom(`${seed}/${market}/${dataset}/${symbol}/${day}`);
    const micros = Array.from(
      { length: count },
      (_, i) => dayMs * 1000 + Math.floor((i + random()) * stepMicros),
    );
    days.push({ dayMs, day, count, micros, random });
  }
  return days;
}

/** @param {Job} job */
export function aggTradeRows(job) {
  const market = /** @type {TradedMarket} */ (job.spec.market);
  const { price, quantity, time } = formatsOf(market);
  return daysOf(job).flatMap(({ dayMs, day, count, micros, random }) => {
    const next = pricesOf(job, dayMs, random);
    let trade = day * count * 8;
    return micros.map((at, i) => {
      const first = trade;
      const own = 1 + Math.floor(random() ** 3 * 8);
      // The ids of the next day go on.
      trade = i === count - 1 ? (day + 1) * count * 8 : trade + own;
      // Contracts are whole numbers but printed as floats.
      const amount = quantity(quantityOf(random)) + (market === 'cm' ? '.0' : '');
      const flags = flagsOf(market, random);
      return `${day * count + i},${price(next())},${amount},${first},${trade - 1},${time(at)},${flags}\n`;
    });
  });
}

/** @param {Job} job */
export function tradeRows(job) {
  const market = /** @type {TradedMarket} */ (job.spec.market);
  const { price, quantity, time, product } = formatsOf(market);
  return daysOf(job).flatMap(({ dayMs, day, count, micros, random }) => {
    const next = pricesOf(job, dayMs, random);
    let trade = day * count * 4;
    return micros.map((at, i) => {
      trade += random() < 0.02 ? 2 + Math.floor(random() * 3) : 1;
      // The files of the futures markets lack some ids, those of spot none.
      const id = market === 'spot' ? day * count + i : trade;
      const ticks = next();
      const units = quantityOf(random);
      return `${id},${price(ticks)},${quantity(units)},${product(ticks, units)},${time(at)},${flagsOf(market, random)}\n`;
    });
  });
}

/** @param {Job} job */
export function bookTickerRows(job) {
  const decimals = DIGITS[/** @type {TradedMarket} */ (job.spec.market)].price;
  const price = (/** @type {number} */ ticks) => fixed(ticks, decimals) + '0'.repeat(8 - decimals);
  return daysOf(job).flatMap(({ dayMs, day, count, micros, random }) => {
    const next = pricesOf(job, dayMs, random);
    let id = day * count * 1000;
    return micros.map((at) => {
      id += 1 + Math.floor(random() * 900);
      const bid = next();
      const ms = msOf(at);
      const ask = bid + 1 + Math.floor(random() ** 8 * 10);
      return `${id},${price(bid)},${heldAt(random)},${price(ask)},${heldAt(random)},${ms},${ms + 1 + Math.floor(random() * 6)}\n`;
    });
  });
}

/** @param {Job} job */
export function liquidationRows(job) {
  const { price, quantity } = formatsOf(/** @type {TradedMarket} */ (job.spec.market));
  return daysOf(job).flatMap(({ dayMs, micros, random }) => {
    const next = pricesOf(job, dayMs, random);
    return micros.flatMap((at) => {
      const ticks = next();
      const isBuy = random() < 0.5;
      // The limit of a liquidation is beyond its fill price.
      const limit = Math.round(ticks * (isBuy ? 1.004 : 0.996));
      const units = quantityOf(random);
      const last = 1 + Math.floor(random() * units);
      const row =
        `${msOf(at)},${isBuy ? 'BUY' : 'SELL'},LIMIT,IOC,${quantity(units)},` +
        `${price(limit)},${price(ticks)},FILLED,${quantity(last)},${quantity(units)}\n`;
      // The real files have each row twice.
      return [row, row];
    });
  });
}

/**
 * Snapshots are spread over the day; with 2880 of them they are half a minute apart, as in the real files.
 * @param {Job} job
 */
export function bookDepthRows(job) {
  const digits = DIGITS[/** @type {TradedMarket} */ (job.spec.market)];
  return daysOf(job, 48).flatMap(({ dayMs, count, random }) => {
    const next = pricesOf(job, dayMs, random);
    const stepMs = DAY_MS / count;
    return Array.from({ length: count }, (_, i) => {
      const at = dayMs + Math.floor(i * stepMs + random() * Math.min(7000, stepMs));
      return depthSnapshot(at, next() / 10 ** digits.price, random);
    }).flat();
  });
}

/**
 * @param {number} at
 * @param {number} price
 * @param {Random} random
 */
function depthSnapshot(at, price, random) {
  const time = label(at);
  const suffix = at < BAND_DECIMALS_FROM ? '' : '.00';
  const bands = ['1', '2', '3', '4', '5'].map((band) => band + suffix);
  if (at >= NARROW_BANDS_FROM) bands.unshift('0.20');
  const side = (/** @type {string} */ sign) => {
    let held = 0;
    // Cumulative, from the mid price outwards.
    return bands.map((band) => {
      held += 500 + Math.floor(random() * 1500);
      const worth = Math.floor(held * price);
      return `${time},${sign}${band},${held}.${tailOf(random, 3)}00000,${worth}.${tailOf(random, 4)}0000\n`;
    });
  };
  return [...side('-').toReversed(), ...side('')];
}

/**
 * The forms in which a market writes prices, quantities, their product and times.
 * @param {TradedMarket} market
 */
function formatsOf(market) {
  const digits = DIGITS[market];
  if (market === 'spot') {
    return {
      price: (/** @type {number} */ ticks) => `${fixed(ticks, digits.price)}000000`,
      quantity: (/** @type {number} */ units) => `${fixed(units, digits.quantity)}000`,
      product: (/** @type {number} */ ticks, /** @type {number} */ units) => `${fixed(ticks * units, 7)}0`,
      time: (/** @type {number} */ micros) =>
        micros < SPOT_MICROSECONDS_FROM * 1000 ? msOf(micros) : micros,
    };
  }
  if (market === 'um') {
    return {
      price: (/** @type {number} */ ticks) => trimmed(ticks, digits.price),
      quantity: (/** @type {number} */ units) => trimmed(units, digits.quantity),
      product: (/** @type {number} */ ticks, /** @type {number} */ units) => trimmed(ticks * units, 5),
      time: msOf,
    };
  }
  return {
    price: (/** @type {number} */ ticks) => fixed(ticks, digits.price),
    quantity: String,
    // Of base coin, a contract being 100 USD.
    product: (/** @type {number} */ ticks, /** @type {number} */ units) =>
      fixed(Math.round((units * 1e11) / ticks), 8),
    time: msOf,
  };
}

/**
 * The prices of a day in order, in units of the smallest step.
 * @param {Job} job
 * @param {number} dayMs
 * @param {Random} random
 */
function pricesOf({ spec }, dayMs, random) {
  const digits = DIGITS[/** @type {TradedMarket} */ (spec.market)];
  let ticks = Math.round(levelOf(spec, dayMs) / 10 ** (2 - digits.price));
  return () => {
    ticks = Math.max(100, Math.round(ticks * (1 + (random() - 0.5) * 0.0004)));
    return ticks;
  };
}

/**
 * A quantity of the order book.
 * @param {Random} random
 */
function heldAt(random) {
  return `${Math.floor(random() * 20)}.${tailOf(random, 3)}00000`;
}

/** @param {number} micros */
function msOf(micros) {
  return Math.floor(micros / 1000);
}

/** @param {Random} random */
function quantityOf(random) {
  return 1 + Math.floor(random() ** 4 * 50_000);
}

/**
 * is_buyer_maker, and is_best_match if the market has it.
 * @param {TradedMarket} market
 * @param {Random} random
 */
function flagsOf(market, random) {
  const isMaker = random() < 0.5;
  if (market !== 'spot') return String(isMaker);
  return `${isMaker ? 'True' : 'False'},True`;
}
