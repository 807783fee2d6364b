/** Flags of other tools (freqtrade, dukascopy-node, tardis, ccxt, rclone, curl) whose values are translated. A flag that differs only in its name is in `aka` of the flag table. */
import type { FlagName } from './flags.js';

type Values = Readonly<Partial<Record<FlagName, string>>>;

/** A name of a flag on the command line. */
export interface OtherFlag {
  readonly isSwitch?: true;
  /** The values of flags with this meaning; undefined if there are none. The text of a switch is empty. */
  readonly valuesOf: (text: string) => Values | undefined;
  /** The hint for a text without a meaning here. */
  readonly hint?: string;
  readonly example?: string | undefined;
}

/** A switch for what a run does anyway. */
const ALWAYS: OtherFlag = { isSwitch: true, valuesOf: () => ({}) };
const NO_KEY: OtherFlag = { valuesOf: () => ({}) };
const VERBOSE: OtherFlag = { isSwitch: true, valuesOf: () => ({ 'log-level': 'debug' }) };
const TIMEFRAME: OtherFlag = {
  valuesOf: (text) => (text === 'tick' ? { dataset: 'trades' } : { interval: text }),
};
const CERTIFICATES: OtherFlag = {
  isSwitch: true,
  valuesOf: () => undefined,
  hint: 'certificates are always checked; --ca-file adds a certificate authority',
};

export const OTHER_FLAGS: Readonly<Record<string, OtherFlag>> = {
  exchange: {
    valuesOf: (text) => valueOf(EXCHANGES, text.toLowerCase()),
    hint: 'only Binance is supported; --market chooses spot, um, cm or option',
  },
  'trading-mode': {
    valuesOf: (text) => valueOf({ spot: { market: 'spot' }, futures: { market: 'um' } }, text),
    hint: '--market chooses spot, um, cm or option',
  },
  timerange: { valuesOf: timeRange, hint: 'for example --timerange 20240101-20240131' },
  timeframe: TIMEFRAME,
  timeframes: TIMEFRAME,
  t: TIMEFRAME,
  date: { valuesOf: (text) => ({ from: text, to: text }) },
  day: { valuesOf: (text) => (/^\d{1,3}$/.test(text) ? { days: text } : { from: text, to: text }) },
  since: { valuesOf: (text) => ({ from: text }) },
  until: { valuesOf: (text) => ({ to: text }) },
  weeks: { valuesOf: (text) => times(text, 7, 'days'), hint: 'for example --weeks 2' },
  years: { valuesOf: (text) => times(text, 12, 'months'), hint: 'for example --years 2' },
  'data-types': { valuesOf: (text) => valueOf(DATA_TYPES, text) ?? { dataset: text } },
  'dl-trades': { isSwitch: true, valuesOf: () => ({ dataset: 'trades' }) },
  'no-verify': { isSwitch: true, valuesOf: () => ({ verify: 'none' }) },
  'no-progress': { isSwitch: true, valuesOf: () => ({ progress: 'none' }) },
  'api-key': NO_KEY,
  apikey: NO_KEY,
  secret: NO_KEY,
  v: VERBOSE,
  verbose: VERBOSE,
  debug: VERBOSE,
  L: ALWAYS,
  location: ALWAYS,
  continue: ALWAYS,
  resume: ALWAYS,
  k: CERTIFICATES,
  insecure: CERTIFICATES,
};

/** Names of an exchange with its market. `binance` alone does not say which market. */
const EXCHANGES: Readonly<Record<string, Values>> = {
  binance: {},
  'binance-spot': { market: 'spot' },
  'binance-futures': { market: 'um' },
  binanceusdm: { market: 'um' },
  'binance-delivery': { market: 'cm' },
  binancecoinm: { market: 'cm' },
  'binance-european-options': { market: 'option' },
};

/** Datasets of tardis. */
const DATA_TYPES: Readonly<Record<string, Values>> = {
  quotes: { dataset: 'bookTicker' },
  book_ticker: { dataset: 'bookTicker' },
  liquidations: { dataset: 'liquidationSnapshot' },
};

function valueOf(table: Readonly<Record<string, Values>>, text: string): Values | undefined {
  return Object.hasOwn(table, text) ? table[text] : undefined;
}

function times(text: string, factor: number, flag: 'days' | 'months'): Values | undefined {
  return /^\d+$/.test(text) ? { [flag]: String(Number(text) * factor) } : undefined;
}

/** `20240101-20240131`, `20240101-` or `-20240131`, as freqtrade writes a range. */
function timeRange(text: string): Values | undefined {
  const [, from = '', to = ''] = /^(\d{8})?-(\d{8})?$/.exec(text) ?? [];
  if (from + to === '') return undefined;
  return { ...(from === '' ? {} : { from: dashed(from) }), ...(to === '' ? {} : { to: dashed(to) }) };
}

function dashed(date: string): string {
  return `${date.slice(0, 4)}-${date.slice(4, 6)}-${date.slice(6)}`;
}
