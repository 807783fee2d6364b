#!/usr/bin/env python3
"""Loads candles and trades of a cryptodl lake into a catalogue of nautilus_trader.

Usage: python load_nautilus.py CATALOGUE
Needs: pip install "nautilus_trader<2" pandas pyarrow

The catalogue is written with the wranglers of the installed nautilus_trader, so it has the layout of this version.
The modules of nautilus_trader 2 have other names. Run it into a new folder: nautilus_trader refuses files that overlap in time.
"""

import sys
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

try:
    INSTALLED = version("nautilus_trader")
except PackageNotFoundError:
    INSTALLED = "none"
if not INSTALLED.startswith("1."):
    sys.exit(f'This program needs pip install "nautilus_trader<2". Installed: {INSTALLED}')

import pandas as pd
from nautilus_trader.model.data import BarType
from nautilus_trader.model.identifiers import InstrumentId, Symbol
from nautilus_trader.model.instruments import CryptoPerpetual, CurrencyPair
from nautilus_trader.model.objects import Currency, Price, Quantity
from nautilus_trader.persistence.catalog import ParquetDataCatalog
from nautilus_trader.persistence.wranglers import BarDataWrangler, TradeTickDataWrangler

# symbol, base, quote, settle (None for spot), dataset, bar step, folder, files; a CSV file with the form of its times
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


def frames(folder, files, times, others):
    """The rows of the range in each file, in order, with their times in UTC. `times`: columns of times; the first one decides."""
    for file in files:
        if isinstance(file, tuple):
            # A CSV file, and the form of its times.
            name, form = file
            frame = pd.read_csv(Path(folder) / name, usecols=[*times, *others], float_precision="round_trip")
            unit = None if form == "iso" else form
        else:
            frame = pd.read_parquet(Path(folder) / file, columns=[*times, *others])
            unit = None
        for time in times:
            frame[time] = pd.to_datetime(frame[time], unit=unit, utc=True)
        inside = frame[times[0]].notna()
        if FROM is not None:
            inside &= frame[times[0]] >= pd.Timestamp(FROM, tz="UTC")
        if TO is not None:
            inside &= frame[times[0]] < pd.Timestamp(TO, tz="UTC")
        frame = frame[inside]
        if len(frame) > 0:
            yield frame

TIMES = {"klines": ["open_time", "close_time"], "trades": ["time"], "aggTrades": ["transact_time"]}
SIZES = {"klines": "volume", "trades": "qty", "aggTrades": "quantity"}
KEYS = {"klines": "open_time", "trades": "id", "aggTrades": "agg_trade_id"}
PRICES = {"klines": ["open", "high", "low", "close"], "trades": ["price"], "aggTrades": ["price"]}


def precision_of(group):
    """Digits of prices and sizes in all series of an instrument; None if the range has no rows."""
    found = []
    for *_, dataset, _, folder, files in group:
        for frame in frames(folder, files, TIMES[dataset], [*PRICES[dataset], SIZES[dataset]]):
            prices = max(decimals(frame[name]) for name in PRICES[dataset])
            found.append((prices, decimals(frame[SIZES[dataset]])))
    return tuple(map(max, zip(*found))) if found else None


def load(catalog, instrument, dataset, step, folder, files):
    others = [*PRICES[dataset], SIZES[dataset]]
    if dataset != "klines":
        others += [KEYS[dataset], "is_buyer_maker"]
    for frame in frames(folder, files, TIMES[dataset], others):
        # Of rows with one key, the first published one counts.
        frame = frame.drop_duplicates(KEYS[dataset])
        # The wranglers take nanoseconds as integers.
        if dataset == "klines":
            bar_type = BarType.from_str(f"{instrument.id}-{step}-LAST-EXTERNAL")
            # close_time is the last millisecond of the candle; the bar is known one millisecond later.
            time = frame["open_time"] if BAR_TIME == "open" else frame["close_time"].dt.floor("ms") + pd.Timedelta("1ms")
            index = pd.DatetimeIndex(time, name="timestamp").as_unit("ns")
            bars = frame[["open", "high", "low", "close", "volume"]].astype(float).set_index(index)
            catalog.write_data(BarDataWrangler(bar_type, instrument).process(bars))
        else:
            index = pd.DatetimeIndex(frame[TIMES[dataset][0]], name="timestamp").as_unit("ns")
            ticks = pd.DataFrame(
                {
                    "trade_id": frame[KEYS[dataset]].astype(str),
                    "price": frame["price"].astype(float),
                    "quantity": frame[SIZES[dataset]].astype(float),
                    "buyer_maker": frame["is_buyer_maker"],
                }
            ).set_index(index)
            catalog.write_data(TradeTickDataWrangler(instrument).process(ticks))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    catalog = ParquetDataCatalog(sys.argv[1])
    for assets in dict.fromkeys(series[:4] for series in SERIES):
        group = [series for series in SERIES if series[:4] == assets]
        precision = precision_of(group)
        if precision is None:
            print("no rows in the range:", assets[0])
            continue
        instrument = instrument_of(*assets, *precision)
        catalog.write_data([instrument])
        for *_, dataset, step, folder, files in group:
            print("loading", instrument.id, dataset, step)
            load(catalog, instrument, dataset, step, folder, files)


if __name__ == "__main__":
    main()
