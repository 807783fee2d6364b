/** The program that writes candles of the lake as CSV for dump_bin.py, the writer of qlib. */
import { usage } from '../model/errors.js';
import { filledScript, pythonFiles, pythonRange, pythonRows, pythonText, READER } from './script.js';
import type { Script } from './script.js';
import { groupsOf } from './select-export.js';

/** The name of an interval in qlib. Undefined if qlib does not have it. */
function frequencyOf(interval = ''): string | undefined {
  if (interval === '1d') return 'day';
  return /^\d+m$/.test(interval) ? `${interval}in` : undefined;
}

export const qlibScript: Script = {
  name: 'qlib',
  datasets: ['klines'],
  check: ({ selected }) => {
    const kinds = groupsOf(selected, 'dataset').map(([first]) => first);
    const [first] = kinds;
    const names = kinds.map((kind) => `${kind?.market ?? ''} ${kind?.interval ?? ''}`);
    if (kinds.length === 1 && frequencyOf(first?.interval) !== undefined) return;
    throw usage(
      `a qlib folder has one market and one interval, of days or minutes, and the selection has ${names.join(', ')}`,
      'choose one with --market and --interval',
    );
  },
  textOf: (held, _request, range) =>
    filledScript(SCRIPT, {
      SERIES: pythonRows(held.map(({ series, files }) => [pythonText(series.symbol), pythonFiles(files)])),
      FREQUENCY: pythonText(frequencyOf(held[0]?.series.interval)),
      RANGE: pythonRange(range),
      READER,
    }),
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

# symbol, folder, files; a CSV file with the form of its times
SERIES = @SERIES@
FREQUENCY = @FREQUENCY@

# The first day, and the day after the last one. None: no limit.
FROM, TO = @RANGE@

FIELDS = ["open", "high", "low", "close", "volume", "quote_volume", "count"]


@READER@

def candles(folder, files):
    """The rows for dump_bin.py; None if the range has none."""
    form = "%Y-%m-%d" if FREQUENCY == "day" else "%Y-%m-%d %H:%M:%S"
    parts = [
        # Prices of crypto assets have no splits, so the factor is 1.
        frame[FIELDS].astype(float).assign(date=frame["open_time"].dt.strftime(form), factor=1.0)
        for frame in frames(folder, files, ["open_time"], FIELDS)
    ]
    return pd.concat(parts, ignore_index=True) if parts else None


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    dump_bin, qlib_dir = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for symbol, source, files in SERIES:
            print("reading", symbol)
            rows = candles(source, files)
            if rows is None:
                print("no rows in the range:", symbol)
            else:
                rows.to_csv(Path(folder) / f"{symbol}.csv", index=False)
        if not any(Path(folder).iterdir()):
            sys.exit("the lake has no rows in the range")
        subprocess.run(
            [sys.executable, dump_bin, "dump_all", "--data_path", folder, "--qlib_dir", qlib_dir,
             "--freq", FREQUENCY, "--date_field_name", "date", "--include_fields", ",".join([*FIELDS, "factor"])],
            check=True,
        )


if __name__ == "__main__":
    main()
`;
