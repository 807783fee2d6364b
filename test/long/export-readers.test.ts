/**
 * Exported files, read as the readers of freqtrade, hftbacktest and nautilus_trader read them: their steps, written again from their
 * documented sources, with pandas and Polars. Real files of freqtrade come back from an export with equal values.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeZip } from '../../scripts/make-zip.js';
import { startArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';
import { VENUE_SAMPLES, venueSamplesMissing } from '../helpers/samples.js';

const PYTHON = process.env['CRYPTODL_TEST_PYTHON'] ?? 'python3';
const HAS_READERS = spawnSync(PYTHON, ['-c', 'import pandas, polars, pyarrow']).status === 0;
const WHY = HAS_READERS ? '' : ` (skipped: ${PYTHON} lacks packages: pip install pandas polars pyarrow)`;

const SAMPLES = [
  ['XRP_ETH-5m.feather', 'XRP_ETH-5m.parquet'],
  ['XRP_USDT_USDT-1h-futures.feather', 'futures/XRP_USDT_USDT-1h-futures.parquet'],
  ['XRP_USDT_USDT-1h-mark.feather', 'futures/XRP_USDT_USDT-1h-mark.parquet'],
  ['XRP_USDT_USDT-8h-funding_rate.feather', 'futures/XRP_USDT_USDT-8h-funding_rate.parquet'],
] as const;
const missing = venueSamplesMissing(...SAMPLES.map(([name]) => `exports-freqtrade/${name}`));
if (missing !== undefined) process.stderr.write(`files of freqtrade: ${missing}\n`);

const MONTH = { cadence: 'monthly', from: '2024-01-01', to: '2024-02-29' } as const;
const DAYS = { cadence: 'daily', from: '2024-01-01', to: '2024-01-03' } as const;
const scene = useScene({
  now: '2024-03-10T12:00:00Z',
  archive: [
    {
      ...MONTH,
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      symbols: ['BTCUSDT', '1000SHIBUSDT', 'BTCUSDT_240329'],
    },
    { ...MONTH, market: 'um', dataset: 'klines', interval: '1mo', symbols: ['BTCUSDT'] },
    { ...MONTH, market: 'spot', dataset: 'klines', interval: '1h', symbols: ['BTCUSDT'] },
    { ...MONTH, market: 'cm', dataset: 'klines', interval: '1d', symbols: ['BTCUSD_PERP'] },
    { ...MONTH, market: 'um', dataset: 'markPriceKlines', interval: '1h', symbols: ['BTCUSDT'] },
    { ...MONTH, market: 'um', dataset: 'premiumIndexKlines', interval: '1h', symbols: ['BTCUSDT'] },
    { ...MONTH, market: 'um', dataset: 'fundingRate', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'aggTrades', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'metrics', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'bookTicker', symbols: ['BTCUSDT'] },
  ],
});

const lakeOf = (name: string, ...downloads: readonly string[]): Promise<string> =>
  scene.lakeOf(downloads, name);

/** The parsed output of a program, in a local time zone that is not UTC. */
function python(code: string, ...args: readonly string[]): unknown {
  const { status, stdout, stderr } = spawnSync(PYTHON, ['-c', code, ...args], {
    encoding: 'utf8',
    maxBuffer: 1e9,
    env: { ...process.env, TZ: 'Asia/Tokyo' },
  });
  expect([stderr, status]).toEqual(['', 0]);
  return JSON.parse(stdout);
}

/** `ohlcv_get_available_data`, `_ohlcv_load`, and the integer times of btanalysis.py and jsondatahandler.py. */
const FREQTRADE = `
import json, re, sys
from pathlib import Path
import pandas as pd
from pyarrow import dataset

REGEX = r"^([a-zA-Z_\\d-]+)\\-(\\d+[a-zA-Z]{1,2})\\-?([a-zA-Z_]*)?(?=\\.)"
COLUMNS = ["date", "open", "high", "low", "close", "volume"]
TYPES = ["", "spot", "futures", "mark", "index", "premiumIndex", "funding_rate"]

def pair_of(name):
    name = re.sub(r"^(([A-Za-z\\d]{1,10})|^([A-Za-z\\-]{1,6}))(_)", r"\\g<1>/", name, count=1)
    return re.sub("_", ":", name, count=1)

def load(path):
    data = pd.read_parquet(path)
    # Later versions read with a filter of Arrow, whose bounds have a zone, and keep the zone of the file.
    start = data["date"].iloc[0].to_pydatetime()
    assert start.tzinfo is not None
    later = dataset.dataset(path, format="parquet").to_table(filter=dataset.field("date") >= start)
    assert later.num_rows == len(data) and str(later.to_pandas()["date"].dt.as_unit("ms").dtype) == "datetime64[ms, UTC]"
    assert list(data.columns) == COLUMNS, data.columns
    data.columns = COLUMNS
    data = data.astype(dtype={name: "float" for name in COLUMNS[1:]})
    data["date"] = pd.to_datetime(data["date"], unit="ms", utc=True)
    assert str(data["date"].dtype) == "datetime64[ns, UTC]", data["date"].dtype
    assert data["date"].is_monotonic_increasing and data["date"].is_unique
    return data

def milliseconds(data):
    return (data["date"].astype("int64") // 1000 // 1000).tolist()

def available(folder):
    for path in sorted(Path(folder).glob("*.parquet")):
        match = re.search(REGEX, path.name)
        if match:
            assert match[3] in TYPES, match[3]
            yield path, pair_of(match[1]), re.sub("1mo", "1M", match[2], flags=re.IGNORECASE), match[3]
`;

describe(`freqtrade${WHY}`, { skip: !HAS_READERS }, () => {
  it('finds and opens each exported file, with the rows and times of the lake', async () => {
    const range = '--from 2024-01 --to 2024-02';
    const lake = await lakeOf(
      'freqtrade',
      `-m um -i 1h -s BTCUSDT,1000SHIBUSDT,BTCUSDT_240329 ${range}`,
      `-m um -i 1mo -s BTCUSDT ${range}`,
      `-m spot -i 1h -s BTCUSDT ${range}`,
      `-m cm -i 1d -s BTCUSD_PERP ${range}`,
      `-m um --dataset markPriceKlines,premiumIndexKlines -i 1h -s BTCUSDT ${range}`,
      `-m um --dataset fundingRate -s BTCUSDT ${range}`,
    );
    const target = join(scene.newFolder(), 'binance');
    expect((await cryptodl(['export', 'freqtrade', '--out', lake, '--target', target])).code).toBe(0);
    const found = python(
      `${FREQTRADE}
files = [*available(sys.argv[1]), *available(Path(sys.argv[1]) / "futures")]
print(json.dumps([[pair, frame, kind, len(load(path)), milliseconds(load(path))[1]] for path, pair, frame, kind in files]))`,
      target,
    );
    const [start, hour, day] = [Date.UTC(2024, 0, 1), 3_600_000, 86_400_000];
    expect(found).toEqual(
      [
        ['BTC/USDT', '1h', '', 1440, start + hour],
        ['BTC/USDT:USDT', '1M', 'futures', 2, Date.UTC(2024, 1, 1)],
        ['BTC/USDT:USDT', '1h', 'funding_rate', 180, start + 8 * hour],
        ['BTC/USDT:USDT', '1h', 'futures', 1440, start + hour],
        ['BTC/USDT:USDT', '1h', 'mark', 1440, start + hour],
        ['BTC/USDT:USDT', '1h', 'premiumIndex', 1440, start + hour],
        ['BTC/USDT:USDT-240329', '1h', 'futures', 1440, start + hour],
        ['BTC/USDT:USDT', '8h', 'funding_rate', 180, start + 8 * hour],
        ['BTC/USDT:USDT', '8h', 'mark', 180, start + 8 * hour],
        ['BTC/USD:BTC', '1d', 'futures', 60, start + day],
        ['1000SHIB/USDT:USDT', '1h', 'futures', 1440, start + hour],
      ].sort((a, b) => (fileName(a) < fileName(b) ? -1 : 1)),
    );
    const rows = python(
      `${FREQTRADE}
own = pd.concat(pd.read_parquet(path) for path in sorted(Path(sys.argv[2]).glob("*.parquet")))
data = load(Path(sys.argv[1]) / "futures/BTC_USDT_USDT-1h-futures.parquet")
same = [(data[name].to_numpy() == own[name].to_numpy()).all() for name in COLUMNS[1:]]
same.append(milliseconds(data) == (own["open_time"].astype("int64") // 1000).tolist())
print(json.dumps([bool(each) for each in same]))`,
      target,
      join(lake, 'binance/um/klines/interval=1h/symbol=BTCUSDT'),
    );
    expect(rows).toEqual([true, true, true, true, true, true]);
  });

  it.skipIf(missing !== undefined)(
    'has equal values in its own files and in ours of the same rows',
    async () => {
      const archive = join(scene.newFolder(), 'archive');
      for (const [name] of SAMPLES) writeObjects(archive, name);
      const server = await startArchive(archive);
      const lake = join(scene.newFolder(), 'lake');
      try {
        const of = ['--archive-url', server.url, '--out', lake, '--now', '2024-03-10T12:00:00Z', ...FAST];
        for (const flags of [
          '-m spot -i 5m -s XRPETH --from 2019-10-11 --to 2019-10-13',
          '-m um -i 1h -s XRPUSDT --from 2021-11-17 --to 2021-11-21',
          '-m um --dataset markPriceKlines -i 1h -s XRPUSDT --from 2021-11-15 --to 2021-11-19',
          '-m um --dataset fundingRate -s XRPUSDT --from 2021-11 --to 2021-12',
        ])
          expect((await cryptodl(['vision', ...of, ...flags.split(' ')])).code).toBe(0);
      } finally {
        await server.close();
      }
      const target = join(scene.newFolder(), 'binance');
      expect((await cryptodl(['export', 'freqtrade', '--out', lake, '--target', target])).code).toBe(0);
      for (const [name, file] of SAMPLES) {
        // Its mark candles have no volume; the archive publishes 0.
        const same = python(
          `${FREQTRADE}
theirs = pd.read_feather(sys.argv[1]).fillna({"volume": 0.0})
# Later versions cut the times of funding rates to seconds when they download.
theirs["date"] = theirs["date"].dt.floor("s")
assert str(theirs["date"].dtype) == str(pd.read_parquet(sys.argv[2])["date"].dtype)
ours = load(sys.argv[2])
print(json.dumps([len(theirs), *[bool((theirs[name] == ours[name]).all()) for name in COLUMNS], milliseconds(theirs) == milliseconds(ours)]))`,
          join(VENUE_SAMPLES, 'exports-freqtrade', name),
          join(target, file),
        ) as readonly unknown[];
        expect([name, ...same.slice(1)]).toEqual([name, ...Array.from({ length: 7 }, () => true)]);
        expect(same[0]).toBeGreaterThan(90);
      }
    },
  );
});

/** The name of a file, from what its reader finds in it. */
function fileName([pair, interval, type]: readonly unknown[]): string {
  const name = String(pair).replaceAll(/[/:]/g, '_');
  const frame = String(interval).replace('M', 'Mo');
  return `${String(pair).includes(':') ? 'futures/' : ''}${name}-${frame}${type === '' ? '' : `-${String(type)}`}.parquet`;
}

/** Writes the rows of a file of freqtrade as objects of the archive. */
function writeObjects(archive: string, name: string): void {
  const rows = python(
    `import json, sys
import pandas as pd
data = pd.read_feather(sys.argv[1])
times = (data["date"].astype("int64") // 1000 // 1000).tolist()
print(json.dumps([[time, *map(repr, row)] for time, row in zip(times, data[["open", "high", "low", "close", "volume"]].fillna(0.0).values.tolist())]))`,
    join(VENUE_SAMPLES, 'exports-freqtrade', name),
  ) as readonly (readonly [number, ...string[]])[];
  const [, pair = '', interval = '', type = ''] = /^(.+)-(\d+\w)(?:-(\w+))?\.feather$/.exec(name) ?? [];
  const symbol = pair.replace('_USDT_USDT', 'USDT').replace('_', '');
  const isFunding = type === 'funding_rate';
  const groups = new Map<string, string[]>();
  for (const [time, ...cells] of rows) {
    const date = new Date(time).toISOString().slice(0, isFunding ? 7 : 10);
    const line = isFunding
      ? `${time},8,${cells[0] ?? ''}`
      : `${time},${cells.join(',')},${time + (interval === '5m' ? 300_000 : 3_600_000) - 1},0,0,0,0,0`;
    groups.set(date, [...(groups.get(date) ?? []), line]);
  }
  for (const [date, lines] of groups) {
    const key = isFunding
      ? `data/futures/um/monthly/fundingRate/${symbol}/${symbol}-fundingRate-${date}`
      : `data/${type === '' ? 'spot' : 'futures/um'}/daily/${type === 'mark' ? 'markPriceKlines' : 'klines'}/${symbol}/${interval}/${symbol}-${interval}-${date}`;
    const file = key.slice(key.lastIndexOf('/') + 1);
    const zip = makeZip([{ name: `${file}.csv`, data: `${lines.join('\n')}\n` }]);
    mkdirSync(dirname(join(archive, key)), { recursive: true });
    writeFileSync(join(archive, `${key}.zip`), zip);
    const digest = createHash('sha256').update(zip).digest('hex');
    writeFileSync(join(archive, `${key}.zip.CHECKSUM`), `${digest}  ${file}.zip\n`);
  }
}

/** The schemas that the readers demand: by order, and each cell of its type. */
const TARDIS = `
import gzip, json, sys
import polars as pl

TEXT, INT, NUM = pl.String, pl.Int64, pl.Float64
HEAD = {"exchange": TEXT, "symbol": TEXT, "timestamp": INT, "local_timestamp": INT}
SCHEMAS = {
    "trades": {**HEAD, "id": TEXT, "side": TEXT, "price": NUM, "amount": NUM},
    "quotes": {**HEAD, "ask_amount": NUM, "ask_price": NUM, "bid_price": NUM, "bid_amount": NUM},
    "derivative_ticker": {**HEAD, "funding_timestamp": INT, "funding_rate": NUM, "predicted_funding_rate": NUM,
        "open_interest": NUM, "last_price": NUM, "index_price": NUM, "mark_price": NUM},
}

def read(path, kind):
    with gzip.open(path) as file:
        assert file.readline().decode().strip().split(",") == list(SCHEMAS[kind]), kind
    # Without a null value, Polars refuses a cell that is not of its type.
    data = pl.read_csv(path, schema=SCHEMAS[kind])
    assert data.columns == list(SCHEMAS[kind])
    assert data["local_timestamp"].is_sorted()
    return data
`;

describe(`the readers of Tardis files${WHY}`, { skip: !HAS_READERS }, () => {
  it('take trades, quotes and derivative_ticker by their column order and types', async () => {
    const lake = await lakeOf(
      'tardis',
      '-m um --dataset aggTrades,metrics,bookTicker -s BTCUSDT --from 2024-01-01 --to 2024-01-03',
      '-m um --dataset fundingRate -s BTCUSDT --from 2024-01 --to 2024-01',
    );
    const target = join(scene.newFolder(), 'tardis');
    const flags = ['--from', '2024-01-01', '--to', '2024-01-03'];
    expect((await cryptodl(['export', 'tardis', '--out', lake, '--target', target, ...flags])).code).toBe(0);
    const counts = python(
      `${TARDIS}
from pathlib import Path
found = {}
for path in sorted(Path(sys.argv[1]).rglob("*.csv.gz")):
    kind = path.parts[-5]
    data = read(path, kind)
    assert set(data["exchange"]) == {"binance-futures"} and set(data["symbol"]) == {"BTCUSDT"}
    assert (data["timestamp"] == data["local_timestamp"]).all()
    if kind == "trades":
        assert set(data["side"]) == {"buy", "sell"}
    found[kind] = found.get(kind, 0) + 1
print(json.dumps(found))`,
      target,
    );
    expect(counts).toEqual({ trades: 3, quotes: 3, derivative_ticker: 3 });
  });

  it.skipIf(venueSamplesMissing('tardis/derivative_ticker_1.csv') !== undefined)(
    'have the headers of real files of Tardis',
    () => {
      const headers = python(
        `${TARDIS}
from pathlib import Path
samples = {"trades": "bitmex_trades_XBTUSD.csv", "quotes": "huobi-dm-swap_quotes_BTC-USD.csv", "derivative_ticker": "derivative_ticker_1.csv"}
print(json.dumps([(Path(sys.argv[1]) / name).read_text().splitlines()[0].split(",") == list(SCHEMAS[kind]) for kind, name in samples.items()]))`,
        join(VENUE_SAMPLES, 'tardis'),
      );
      expect(headers).toEqual([true, true, true]);
    },
  );
});
