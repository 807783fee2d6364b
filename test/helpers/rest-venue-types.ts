/** What a loopback REST venue is asked and answers, and the symbols it has. */

/** `fapi` is USD-M, `dapi` COIN-M. */
export type Host = 'fapi' | 'dapi' | 'spot';

export interface VenueSymbol {
  /** `BTCUSDT`, `币安人生USDT`, `BTCUSD_PERP`, `BTCUSDT_261225`. */
  readonly symbol: string;
  readonly host: Host;
  /** `TRADING` unless told otherwise. */
  readonly status?: string;
  /** `PERPETUAL` unless told otherwise, not sent for spot. The venue itself has odd ones: none, `PERPETUAL DELIVERING`. */
  readonly contractType?: string;
  /** Epoch milliseconds of its first data; 2019-09-10T08:00Z, the first funding of all, unless told otherwise. */
  readonly from?: number;
  /** Delisted: no data from then on, and in no exchangeInfo from then on. */
  readonly to?: number;
  /** 8 unless told otherwise. */
  readonly fundingHours?: number;
  /** One aggregate trade in this time; 5000 unless told otherwise. */
  readonly tradeEveryMs?: number;
}

export interface Asked {
  readonly host: Host;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Epoch milliseconds of the venue's clock. */
  readonly at: number;
  /** Counts from 1. */
  readonly number: number;
}

export interface VenueAnswer {
  readonly status: number;
  /** Names in lower case, as every client reports them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Over sockets the body ends in its middle: with the connection, or with nothing more. Left to the caller otherwise. */
  readonly cut?: 'truncate' | 'stall';
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

export function firstOf({ from = Date.UTC(2019, 8, 10, 8) }: VenueSymbol): number {
  return from;
}

export function endOf({ to = Number.POSITIVE_INFINITY }: VenueSymbol): number {
  return to;
}

/** `BTCUSD` of `BTCUSD_PERP`. */
export function pairOf({ symbol }: VenueSymbol): string {
  const cut = symbol.indexOf('_');
  return cut < 0 ? symbol : symbol.slice(0, cut);
}

/** As statistics name it: a perpetual that is being delivered is still asked for as a perpetual. */
export function contractOf({ contractType = 'PERPETUAL' }: VenueSymbol): string {
  return contractType.startsWith('PERPETUAL') ? 'PERPETUAL' : contractType;
}

/** Undefined for what never expires. */
export function deliveryOf({ symbol }: VenueSymbol): number | undefined {
  const found = /_(\d{2})(\d{2})(\d{2})$/.exec(symbol);
  return found === null
    ? undefined
    : Date.UTC(2000 + Number(found[1]), Number(found[2]) - 1, Number(found[3]), 8);
}

/** The symbols of a venue, by name and by pair. */
export class SymbolBook {
  readonly #byName = new Map<string, VenueSymbol>();
  readonly #byPair = new Map<string, VenueSymbol[]>();

  constructor(symbols: readonly VenueSymbol[]) {
    for (const symbol of symbols) {
      this.#byName.set(`${symbol.host}/${symbol.symbol}`, symbol);
      const pair = `${symbol.host}/${pairOf(symbol)}`;
      this.#byPair.set(pair, [...(this.#byPair.get(pair) ?? []), symbol]);
    }
  }

  find(host: Host, name: string): VenueSymbol | undefined {
    return this.#byName.get(`${host}/${name}`);
  }

  ofPair(host: Host, pair: string): readonly VenueSymbol[] {
    return this.#byPair.get(`${host}/${pair}`) ?? [];
  }

  listed(host: Host, now: number): VenueSymbol[] {
    return [...this.#byName.values()].filter((symbol) => symbol.host === host && now < endOf(symbol));
  }
}
