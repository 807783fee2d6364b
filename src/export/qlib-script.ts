/** The program that writes candles of the lake as CSV for dump_bin.py, the writer of qlib. */
import { usage } from '../model/errors.js';
import { filledScript, folderFor, pythonRange, pythonRows, pythonText } from './script.js';
import type { Script } from './script.js';

/** Names of frequencies in qlib. */
const FREQUENCIES: Readonly<Record<string, string>> = { '1d': 'day' };

export const qlibScript: Script = {
  name: 'qlib',
  datasets: ['klines'],
  textOf: (selected, request, range) => {
    const [first] = selected;
    const kinds = new Set(selected.map(({ market, interval }) => `${market} ${interval ?? ''}`));
    if (first === undefined || kinds.size > 1)
      throw usage(
        `a qlib folder has one market and one interval, and the selection has ${[...kinds].join(', ')}`,
        'choose one: --market um --interval 1d',
      );
    const interval = first.interval ?? '';
    const frequency = FREQUENCIES[interval] ?? (/^\d+m$/.test(interval) ? `${interval}in` : undefined);
    if (frequency === undefined)
      throw usage(`qlib has days and minutes, not ${interval}`, undefined, { flags: { interval: '1d' } });
    const rows = selected.map((series) => [series.symbol, folderFor(series, request)]);
    return filledScript(SCRIPT, {
      SERIES: pythonRows(rows),
      FREQUENCY: pythonText(frequency),
      RANGE: pythonRange(range),
    });
  },
};

const SCRIPT = `#!/usr/bin/env python3
"""Loads candles of a cryptodl lake into a data folder of qlib.

Usage: python load_qlib.py DUMP_BIN QLIB_DIR
Needs: pip install pandas pyarrow, and scripts/dump_bin.py of qlib (https://github.com/microsoft/qlib) with its packages

The candles are written as CSV files into a temporary folder, and dump_bin.py makes the data folder of them.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

# symbol, folder
SERIES = @SERIES@
FREQUENCY = @FREQUENCY@

# The first day, and the day after the last one. None: no limit.
FROM, TO = @RANGE@

FIELDS = ["open", "high", "low", "close", "volume", "quote_volume", "count"]


def candles(folder):
    parts = [pd.read_parquet(path) for path in sorted(Path(folder).glob("*.parquet"))]
    frame = pd.concat(parts, ignore_index=True)
    time = frame["open_time"]
    if FROM is not None:
        frame = frame[time >= pd.Timestamp(FROM, tz=time.dt.tz)]
    if TO is not None:
        frame = frame[time < pd.Timestamp(TO, tz=time.dt.tz)]
    date = frame["open_time"].dt.strftime("%Y-%m-%d" if FREQUENCY == "day" else "%Y-%m-%d %H:%M:%S")
    # Prices of crypto assets have no splits, so the factor is 1.
    return frame[FIELDS].astype(float).assign(date=date, factor=1.0)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    dump_bin, qlib_dir = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for symbol, source in SERIES:
            print("reading", symbol)
            candles(source).to_csv(Path(folder) / f"{symbol}.csv", index=False)
        subprocess.run(
            [sys.executable, dump_bin, "dump_all", "--data_path", folder, "--qlib_dir", qlib_dir,
             "--freq", FREQUENCY, "--date_field_name", "date", "--include_fields", ",".join([*FIELDS, "factor"])],
            check=True,
        )


if __name__ == "__main__":
    main()
`;
