/** The program that loads candles and trades of the lake into a catalogue of nautilus_trader with its own wranglers. */
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import { pairOf } from '../source/pairs.js';
import { intervalMs } from '../source/venue.js';
import { filledScript, folderFor, pythonRange, pythonRows } from './script.js';
import type { Script } from './script.js';

/** Steps and units of bar types, by length. Longer bars have no fixed unit there. */
const UNITS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, 'DAY'],
  [3_600_000, 'HOUR'],
  [60_000, 'MINUTE'],
  [1000, 'SECOND'],
];

function barStep(interval: string): string | undefined {
  const ms = intervalMs(interval);
  const [length, unit] = UNITS.find(([size]) => ms % size === 0) ?? [];
  return length === undefined || unit === undefined ? undefined : `${ms / length}-${unit}`;
}

export const nautilusScript: Script = {
  name: 'nautilus-loader',
  datasets: ['klines', 'trades', 'aggTrades'],
  textOf: (selected, request, range) => {
    const rows = selected.map((series) => {
      const pair = pairOf(request.source, series.market, series.symbol);
      if (pair === undefined || pair.expiry !== undefined)
        throw usage(
          `nautilus-loader makes instruments of spot pairs and perpetual contracts only, not of ${seriesName(series)}`,
          undefined,
          { flags: { symbols: `${request.resolved.texts.symbols?.join(',') ?? '*'},!${series.symbol}` } },
        );
      const step = series.interval === undefined ? '' : barStep(series.interval);
      if (step === undefined)
        throw usage(
          `nautilus-loader has no bar type for ${seriesName(series)}`,
          'choose others with --interval',
        );
      const { base, quote, settle } = pair;
      return [series.symbol, base, quote, settle, series.dataset, step, folderFor(series, request)];
    });
    return filledScript(SCRIPT, { SERIES: pythonRows(rows), RANGE: pythonRange(range) });
  },
};

const SCRIPT = `#!/usr/bin/env python3
"""Loads candles and trades of a cryptodl lake into a catalogue of nautilus_trader.

Usage: python load_nautilus.py CATALOGUE
Needs: pip install nautilus_trader pandas pyarrow

The catalogue is written with the wranglers of the installed nautilus_trader, so it has the layout of this version.
Run it into a new folder: nautilus_trader refuses files that overlap in time.
"""

import sys
from decimal import Decimal
from pathlib import Path

import pandas as pd
from nautilus_trader.model.data import BarType
from nautilus_trader.model.identifiers import InstrumentId, Symbol
from nautilus_trader.model.instruments import CryptoPerpetual, CurrencyPair
from nautilus_trader.model.objects import Currency, Price, Quantity
from nautilus_trader.persistence.catalog import ParquetDataCatalog
from nautilus_trader.persistence.wranglers import BarDataWrangler, TradeTickDataWrangler

# symbol, base, quote, settle (None for spot), dataset, bar step, folder
SERIES = @SERIES@

# The first day, and the day after the last one. None: no limit.
FROM, TO = @RANGE@

# The time of a bar: "close" is the convention of nautilus_trader, "open" that of the archive.
BAR_TIME = "close"


def decimals(values):
    """The most digits behind the point. Replace the result by the tick size of the exchange where you know it."""
    return max(0, *(-Decimal(str(value)).normalize().as_tuple().exponent for value in values.unique()))


def instrument_of(symbol, base, quote, settle, price_precision, size_precision):
    """A definition with the precision of the data. Fees and margins are those that nautilus_trader takes by default."""
    name = symbol if settle is None else symbol.removesuffix("_PERP") + "-PERP"
    common = dict(
        instrument_id=InstrumentId.from_str(f"{name}.BINANCE"),
        raw_symbol=Symbol(symbol),
        base_currency=Currency.from_str(base),
        quote_currency=Currency.from_str(quote),
        price_precision=price_precision,
        size_precision=size_precision,
        price_increment=Price(10**-price_precision, price_precision),
        size_increment=Quantity(10**-size_precision, size_precision),
        ts_event=0,
        ts_init=0,
    )
    if settle is None:
        return CurrencyPair(**common)
    return CryptoPerpetual(**common, settlement_currency=Currency.from_str(settle), is_inverse=settle == base)


def frames(folder, dataset):
    """The partitions of a series, one at a time, in order."""
    for path in sorted(Path(folder).glob("*.parquet")):
        frame = pd.read_parquet(path)
        time = frame[TIMES[dataset]]
        if FROM is not None:
            frame = frame[time >= pd.Timestamp(FROM, tz=time.dt.tz)]
        if TO is not None:
            frame = frame[time < pd.Timestamp(TO, tz=time.dt.tz)]
        if len(frame) > 0:
            yield frame


TIMES = {"klines": "open_time", "trades": "time", "aggTrades": "transact_time"}
SIZES = {"klines": "volume", "trades": "qty", "aggTrades": "quantity"}


def precision_of(group):
    """Digits of prices and sizes in all series of an instrument."""
    price_precision = size_precision = 0
    for *_, dataset, _, folder in group:
        for frame in frames(folder, dataset):
            prices = frame[["open", "high", "low", "close"]].stack() if dataset == "klines" else frame["price"]
            price_precision = max(price_precision, decimals(prices))
            size_precision = max(size_precision, decimals(frame[SIZES[dataset]]))
    return price_precision, size_precision


def index_of(time):
    """Nanoseconds in UTC, which the wranglers take as integers."""
    return pd.DatetimeIndex(pd.to_datetime(time, utc=True), name="timestamp").as_unit("ns")


def load(catalog, instrument, dataset, step, folder):
    for frame in frames(folder, dataset):
        if dataset == "klines":
            bar_type = BarType.from_str(f"{instrument.id}-{step}-LAST-EXTERNAL")
            # close_time is the last millisecond of the candle; the bar is known one millisecond later.
            time = frame["open_time"] if BAR_TIME == "open" else frame["close_time"].dt.floor("ms") + pd.Timedelta("1ms")
            bars = frame[["open", "high", "low", "close", "volume"]].astype(float).set_index(index_of(time))
            catalog.write_data(BarDataWrangler(bar_type, instrument).process(bars))
        else:
            id_ = "id" if dataset == "trades" else "agg_trade_id"
            ticks = pd.DataFrame(
                {
                    "trade_id": frame[id_].astype(str),
                    "price": frame["price"].astype(float),
                    "quantity": frame[SIZES[dataset]].astype(float),
                    "buyer_maker": frame["is_buyer_maker"],
                }
            ).set_index(index_of(frame[TIMES[dataset]]))
            catalog.write_data(TradeTickDataWrangler(instrument).process(ticks))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    catalog = ParquetDataCatalog(sys.argv[1])
    for assets in dict.fromkeys(series[:4] for series in SERIES):
        group = [series for series in SERIES if series[:4] == assets]
        instrument = instrument_of(*assets, *precision_of(group))
        catalog.write_data([instrument])
        for *_, dataset, step, folder in group:
            print("loading", instrument.id, dataset, step)
            load(catalog, instrument, dataset, step, folder)


if __name__ == "__main__":
    main()
`;
