/** Commands and flags of other tools (freqtrade, dukascopy-node, tardis, ccxt, rclone, curl), and their meaning here. */
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';

/** Commands of other tools. Other names of the commands here are in `aka` of the table of verbs. */
export const FOREIGN_VERBS: Readonly<Record<string, Verb>> = {
  'download-data': 'vision',
  fetch_ohlcv: 'vision',
  fetchOHLCV: 'vision',
  fetch_trades: 'vision',
  fetchTrades: 'vision',
  copy: 'vision',
  cp: 'vision',
  fetch_funding_rate_history: 'metrics',
  fetchFundingRateHistory: 'metrics',
  'list-data': 'list',
  'list-pairs': 'list',
  'list-markets': 'list',
};

type Values = Readonly<Partial<Record<FlagName, string>>>;

/** A flag whose value must be translated, or that is not needed here. A flag that differs only in its name is in `aka` of the flag table. */
interface ForeignFlag {
  readonly isSwitch?: boolean;
  readonly note?: string;
  /** The flags with the same meaning; undefined if this program cannot do it. */
  readonly flags: (value: string) => Values | undefined;
}

const NOT_NEEDED = { isSwitch: true, flags: () => ({}) } as const;
const NO_KEY: ForeignFlag = { note: 'the data is public: no key is needed', flags: () => ({}) };
const TIMEFRAME: ForeignFlag = {
  flags: (value) => (value === 'tick' ? { dataset: 'trades' } : { interval: value }),
};
const CONTINUES = 'a run continues where the last one ended';

export const FOREIGN_FLAGS: Readonly<Record<string, ForeignFlag>> = {
  exchange: {
    note: 'only Binance is supported; --market chooses spot, um, cm or option',
    flags: (value) => valueOf(EXCHANGES, value.toLowerCase()),
  },
  'trading-mode': {
    note: 'there is no margin data; --market chooses spot, um, cm or option',
    flags: (value) => valueOf({ spot: { market: 'spot' }, futures: { market: 'um' } }, value),
  },
  timerange: { flags: timeRange },
  timeframe: TIMEFRAME,
  timeframes: TIMEFRAME,
  t: TIMEFRAME,
  date: { flags: (value) => ({ from: value, to: value }) },
  since: { flags: (value) => ({ from: dateOf(value) }) },
  until: { flags: (value) => ({ to: dateOf(value) }) },
  'data-types': { flags: (value) => valueOf(DATA_TYPES, value) ?? { dataset: value } },
  'dl-trades': { isSwitch: true, flags: () => ({ dataset: 'trades' }) },
  day: {
    flags: (value) => (/^\d{1,3}$/.test(value) ? { days: value } : { from: value, to: value }),
  },
  weeks: { flags: (value) => (/^\d+$/.test(value) ? { days: String(Number(value) * 7) } : undefined) },
  years: { flags: (value) => (/^\d+$/.test(value) ? { months: String(Number(value) * 12) } : undefined) },
  'no-verify': { isSwitch: true, flags: () => ({ verify: 'none' }) },
  'api-key': NO_KEY,
  apikey: NO_KEY,
  secret: NO_KEY,
  P: { ...NOT_NEEDED, note: 'progress is shown on a terminal' },
  O: { ...NOT_NEEDED, note: 'file names come from the layout of the lake' },
  L: { ...NOT_NEEDED, note: 'redirects are followed' },
  location: { ...NOT_NEEDED, note: 'redirects are followed' },
  continue: { ...NOT_NEEDED, note: CONTINUES },
  resume: { ...NOT_NEEDED, note: CONTINUES },
  k: { isSwitch: true, note: 'certificates are always checked', flags: () => undefined },
  insecure: { isSwitch: true, note: 'certificates are always checked', flags: () => undefined },
};

/** Names of an exchange with its market. `binance` alone does not say which market. */
export const EXCHANGES: Readonly<Record<string, Values>> = {
  binance: {},
  'binance-spot': { market: 'spot' },
  'binance-futures': { market: 'um' },
  binanceusdm: { market: 'um' },
  'binance-delivery': { market: 'cm' },
  binancecoinm: { market: 'cm' },
  'binance-european-options': { market: 'option' },
};

/** Datasets of tardis. */
export const DATA_TYPES: Readonly<Record<string, Values>> = {
  quotes: { dataset: 'bookTicker' },
  book_ticker: { dataset: 'bookTicker' },
  liquidations: { dataset: 'liquidationSnapshot' },
};

function valueOf(table: Readonly<Record<string, Values>>, value: string): Values | undefined {
  return Object.hasOwn(table, value) ? table[value] : undefined;
}

/** `20240101-20240131`, `20240101-` or `-20240131`, as freqtrade writes a range. */
function timeRange(value: string): Values | undefined {
  const [, from = '', to = ''] = /^(\d{8})?-(\d{8})?$/.exec(value) ?? [];
  if (from + to === '') return undefined;
  return { ...(from === '' ? {} : { from: dashed(from) }), ...(to === '' ? {} : { to: dashed(to) }) };
}

function dashed(date: string): string {
  return `${date.slice(0, 4)}-${date.slice(4, 6)}-${date.slice(6)}`;
}

/** The day of an instant in milliseconds, as ccxt writes it; any other text unchanged. */
function dateOf(value: string): string {
  return /^\d{13}$/.test(value) ? new Date(Number(value)).toISOString().slice(0, 10) : value;
}

/** The flags of this program for a flag of another tool; undefined if the flag is in no table. */
export function foreignFlag(
  name: string,
  value: string | undefined,
): { readonly isSwitch: boolean; readonly note?: string; readonly flags: Values | undefined } | undefined {
  const found = Object.hasOwn(FOREIGN_FLAGS, name) ? FOREIGN_FLAGS[name] : undefined;
  if (found === undefined) return undefined;
  const { isSwitch = false, note } = found;
  const flags = isSwitch || value !== undefined ? found.flags(value ?? '') : undefined;
  return { isSwitch, flags, ...(note === undefined ? {} : { note }) };
}
