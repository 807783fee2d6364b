/** Flags of other tools (freqtrade, ccxt, dukascopy-node) whose values are translated. A flag that differs only in its name is in `aka` of the flag table. */
import type { FlagName } from './flags.js';

type Values = Readonly<Partial<Record<FlagName, string>>>;

/** A name of a flag on the command line. */
export interface OtherFlag {
  readonly isSwitch?: true;
  /** The values of flags with this meaning; undefined if there are none. The text of a switch is empty. */
  readonly valuesOf: (text: string) => Values | undefined;
  /** The hint for a text without a meaning here. */
  readonly hint?: string;
}

const VERBOSE: OtherFlag = { isSwitch: true, valuesOf: () => ({ 'log-level': 'debug' }) };
const TIMEFRAME: OtherFlag = { valuesOf: (text) => ({ interval: text }) };

export const OTHER_FLAGS: Readonly<Record<string, OtherFlag>> = {
  exchange: {
    valuesOf: (text) => EXCHANGES.get(text.toLowerCase()),
    hint: 'only Binance is supported; --market chooses spot, um, cm or option',
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
  'no-verify': { isSwitch: true, valuesOf: () => ({ verify: 'none' }) },
  'no-progress': { isSwitch: true, valuesOf: () => ({ progress: 'none' }) },
  v: VERBOSE,
  verbose: VERBOSE,
  debug: VERBOSE,
};

/** Names of an exchange with its market. `binance` alone does not say which market. */
const EXCHANGES: ReadonlyMap<string, Values> = new Map([
  ['binance', {}],
  ['binanceusdm', { market: 'um' }],
  ['binancecoinm', { market: 'cm' }],
]);

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
