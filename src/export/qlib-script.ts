/** The program that writes candles of the lake as CSV for dump_bin.py, the writer of qlib. */
import { usage } from '../model/errors.js';
import type { Series } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import {
  filledScript,
  hasNamed,
  pythonFiles,
  pythonRange,
  pythonRows,
  pythonText,
  READER,
} from './script.js';
import type { Script } from './script.js';
import { groupsOf } from './select-export.js';
import type { ExportSelection } from './select-export.js';

/** The name of an interval in qlib. Undefined if qlib does not have it. */
function frequencyOf(interval = ''): string | undefined {
  if (interval === '1d') return 'day';
  return /^\d+m$/.test(interval) ? `${interval}in` : undefined;
}

export const qlibScript: Script = {
  name: 'qlib',
  datasets: ['klines'],
  check: ({ held, selected }, request) => {
    const kinds = groupsOf(selected, 'dataset');
    const [[first] = []] = kinds;
    if (first === undefined || kinds.length > 1)
      throw usage(
        `a qlib folder has one market and one interval, and the selection has ${kinds.map(nameOf).join(', ')}`,
        choiceOf(kinds, selected, request),
      );
    if (frequencyOf(first.interval) !== undefined) return;
    const symbols = new Set(selected.map(({ symbol }) => symbol));
    const others = held.filter(
      ({ market, dataset, symbol }) => market === first.market && dataset === 'klines' && symbols.has(symbol),
    );
    throw usage(
      `qlib has days and minutes, not ${first.interval ?? ''}`,
      choiceOf(groupsOf(others, 'dataset'), selected, request),
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

/** Series of one market and one interval. */
type Kind = readonly Series[];

function nameOf([first]: Kind): string {
  return `${first?.market ?? ''} ${first?.interval ?? ''}`;
}

/** The hint: a kind that qlib can load, days before minutes. */
function choiceOf(
  kinds: readonly Kind[],
  selected: ExportSelection['selected'],
  request: VerbRequest,
): string {
  const symbols = new Set(selected.map(({ symbol }) => symbol));
  const fitting = kinds
    .filter(([first]) => frequencyOf(first?.interval) !== undefined)
    .sort((a, b) => Number(b[0]?.interval === '1d') - Number(a[0]?.interval === '1d'));
  const whole = fitting.find((kind) => hasNamed(kind, symbols, request));
  const [best] = whole ?? fitting[0] ?? [];
  if (best?.interval === undefined) return 'the lake has no days or minutes of this selection';
  return `choose one: --market ${best.market} --interval ${best.interval}`;
}

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
