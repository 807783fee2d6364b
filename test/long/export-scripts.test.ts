/**
 * The Python program of `cryptodl export nautilus-loader`, run with pandas on lakes of all forms. Stand-ins for nautilus_trader print what they
 * get. Warnings are errors.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl, cryptodlOk } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';

const PYTHON = process.env['CRYPTODL_TEST_PYTHON'] ?? 'python3';
const HAS_PANDAS = spawnSync(PYTHON, ['-c', 'import pandas, pyarrow']).status === 0;
const WHY = HAS_PANDAS ? '' : ` (skipped: ${PYTHON} lacks packages: pip install pandas pyarrow)`;

const MONTH = { cadence: 'monthly', from: '2024-01-01', to: '2024-02-29' } as const;
const DAYS = { cadence: 'daily', from: '2024-01-01', to: '2024-01-03' } as const;
const scene = useScene({
  now: '2024-03-10T12:00:00Z',
  archive: [
    { ...MONTH, market: 'um', dataset: 'klines', interval: '1d', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'aggTrades', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'spot', dataset: 'trades', symbols: ['BTCUSDT'] },
  ],
});
const ALL = [
  '-m um -i 1d -s BTCUSDT --from 2024-01 --to 2024-02',
  '-m um --dataset aggTrades -s BTCUSDT --from 2024-01-01 --to 2024-01-03',
  '-m spot --dataset trades -s BTCUSDT --from 2024-01-01 --to 2024-01-03',
];
const FOLDER = 'binance/um/klines/interval=1d/symbol=BTCUSDT';

const lakeOf = (name: string, ...downloads: readonly string[]): Promise<string> =>
  scene.lakeOf(downloads, name);

/** Lakes with the same rows of all datasets, by their form. The mixed lake has a Parquet file that its manifest does not name. */
async function lakes(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const form of [
    '',
    '--timestamps utc',
    '--numbers string',
    '--format csv',
    '--format csv --timestamps ms',
    '--format csv --timestamps iso',
  ])
    found.set(form, await lakeOf(`lake${found.size}`, ...ALL.map((flags) => `${flags} ${form}`)));
  const mixed = await lakeOf(
    'mixed',
    '-m um -i 1d -s BTCUSDT --from 2024-01 --to 2024-01',
    '-m um -i 1d -s BTCUSDT --from 2024-02 --to 2024-02 --format csv --timestamps iso',
    ...ALL.slice(1),
  );
  copyFileSync(join(mixed, FOLDER, '2024-01.parquet'), join(mixed, FOLDER, 'copy.parquet'));
  return found.set('mixed', mixed);
}

const RUN = `import json, runpy, sys, types, warnings
from unittest.mock import MagicMock
import pandas as pd
import pyarrow.parquet

class Wrangler:
    def __init__(self, *args):
        pass
    def process(self, frame):
        assert str(frame.index.dtype) == "datetime64[ns, UTC]", frame.index.dtype
        assert frame.index.is_monotonic_increasing
        return [[time, *row] for time, row in zip(frame.index.astype("int64").tolist(), frame.values.tolist())]

class Catalog:
    def __init__(self, path):
        pass
    def write_data(self, data):
        found.append([json.loads(json.dumps(row, default=str)) for row in data])

def instrument(**facts):
    own = types.SimpleNamespace(**{name: facts[name] for name in ["price_precision", "size_precision"]})
    own.id = "BTCUSDT"
    return own

found = []
for name in ["", ".model", ".model.data", ".model.identifiers", ".model.instruments", ".model.objects", ".persistence", ".persistence.catalog", ".persistence.wranglers"]:
    sys.modules["nautilus_trader" + name] = MagicMock()
sys.modules["nautilus_trader.persistence.catalog"].ParquetDataCatalog = Catalog
wranglers = sys.modules["nautilus_trader.persistence.wranglers"]
wranglers.BarDataWrangler = wranglers.TradeTickDataWrangler = Wrangler
instruments = sys.modules["nautilus_trader.model.instruments"]
instruments.CurrencyPair = instruments.CryptoPerpetual = instrument
warnings.simplefilter("error")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print(json.dumps(found))
`;

/** The version of nautilus_trader that Python finds. */
let installed = '1.231.0';

/** The output of the script. Local time is not UTC. */
function run(script: string, failure = ''): string {
  const folder = scene.newFolder();
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'load.py');
  writeFileSync(path, script);
  writeFileSync(join(folder, 'run.py'), RUN);
  if (installed !== 'none') {
    const facts = join(folder, `nautilus_trader-${installed}.dist-info`);
    mkdirSync(facts);
    writeFileSync(join(facts, 'METADATA'), `Name: nautilus_trader\nVersion: ${installed}\n`);
  }
  const { status, signal, stdout, stderr } = spawnSync(PYTHON, [join(folder, 'run.py'), path, 'target'], {
    encoding: 'utf8',
    maxBuffer: 1e9,
    env: { ...process.env, TZ: 'Asia/Tokyo' },
  });
  // After the script has ended, threads of pyarrow and DuckDB can abort the interpreter with this line.
  const said = stderr.replace('terminate called without an active exception\n', '').trimEnd();
  const isAborted = signal === 'SIGABRT' && said !== stderr.trimEnd();
  const expected = failure === '' ? 0 : 1;
  expect([said, isAborted ? expected : status]).toEqual([failure, expected]);
  return stdout;
}

async function loaded(lake: string, ...flags: readonly string[]): Promise<string> {
  const words = ['export', 'nautilus-loader', '--out', lake, '--now', scene.now, ...flags];
  const { stdout } = await cryptodlOk(words);
  return run(stdout);
}

const BOTH_MONTHS = 60;
/** A run of Python takes a second, and several on a busy machine. */
const TIMEOUT_MS = 240_000;

describe(`the script${WHY}`, { skip: !HAS_PANDAS }, () => {
  it(
    'loads the same rows of each form of a lake, with and without a range',
    { timeout: TIMEOUT_MS },
    async () => {
      const all = await lakes();
      for (const [flags, days] of [
        [[], BOTH_MONTHS],
        [['--from', '2024-01-31', '--to', '2024-02-01'], 2],
      ] as const) {
        const rows = new Map<string, string>();
        for (const [form, lake] of all) rows.set(form, await loaded(lake, ...flags, '--dataset', 'klines'));
        for (const [form, text] of rows) expect([form, text]).toEqual([form, rows.get('')]);
        const [, ...parts] = JSON.parse(rows.get('')?.trimEnd().split('\n').at(-1) ?? '[]') as unknown[][];
        expect(parts.flat()).toHaveLength(days);
      }
    },
  );

  it('loads trades and aggTrades of each form of a lake', { timeout: TIMEOUT_MS }, async () => {
    const all = await lakes();
    for (const flags of [[], ['--from', '2024-01-02', '--to', '2024-01-02']]) {
      const rows = new Map<string, string>();
      for (const [form, lake] of all)
        rows.set(form, await loaded(lake, ...flags, '--dataset', 'trades,aggTrades'));
      // Times of 2024 have milliseconds in all markets, so a lake with `--timestamps ms` has the same ones.
      for (const [form, text] of rows) expect([form, text]).toEqual([form, rows.get('')]);
      expect(rows.get('')?.match(/(true|false)\]/g)?.length).toBeGreaterThan(10);
    }
  });

  it.each(['2.0.0', '2.1.0rc1', 'none'])('ends with one line for nautilus_trader %s', async (version) => {
    const lake = await lakeOf('january', '-m um -i 1d -s BTCUSDT --from 2024-01 --to 2024-01');
    const { stdout } = await cryptodl(['export', 'nautilus-loader', '--out', lake]);
    expect(stdout).toContain('Needs: pip install "nautilus_trader<2" pandas pyarrow\n');
    installed = version;
    try {
      const failure = `This program needs pip install "nautilus_trader<2". Installed: ${version}`;
      expect(run(stdout, failure)).toBe('');
    } finally {
      installed = '1.231.0';
    }
  });

  it('tells series without rows in the range', async () => {
    const lake = await lakeOf('january', '-m um -i 1d -s BTCUSDT --from 2024-01 --to 2024-01');
    const { stdout } = await cryptodl(['export', 'nautilus-loader', '--out', lake]);
    const later = stdout.replace('FROM, TO = (None, None)', 'FROM, TO = ("2024-02-01", None)');
    expect(run(later)).toBe('no rows in the range: BTCUSDT\n[]\n');
  });
});
