/** Symbols of contracts, and the pairs that they are of. */
import type { Market } from '../../model/task.js';

/** `BTCUSD_PERP` and `BTCUSD_261225` are contracts of BTCUSD. */
export function pairOf(symbol: string): string {
  return symbol.split('_')[0] ?? symbol;
}

/** Whether a symbol is the perpetual contract of its pair. */
export function isPerpetual(market: Market, symbol: string): boolean {
  return market === 'cm' ? symbol.endsWith('_PERP') : !symbol.includes('_');
}

/** The perpetual contract of a coin-margined pair. */
export function perpetualOf(pair: string): string {
  return `${pair}_PERP`;
}
