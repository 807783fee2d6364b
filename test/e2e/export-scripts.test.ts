/** `cryptodl export nautilus-loader`: the files that the script loads, and the series that it leaves out. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { flipByte } from '../helpers/folders.js';
import { useScene } from '../helpers/scene.js';

const MONTH = { cadence: 'monthly', from: '2024-01-01', to: '2024-02-29' } as const;
const SETTLED = ['CVCUSDTSETTLED', 'SRMUSDTSETTLED', 'FTTUSDTSETTLED', 'RAYUSDTSETTLED'];
const scene = useScene({
  now: '2024-03-10T12:00:00Z',
  archive: [
    {
      ...MONTH,
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      symbols: ['BTCUSDT', 'ETHUSDT', 'BTCUSDT_240329', 'FOOBAR', ...SETTLED],
    },
    { ...MONTH, market: 'um', dataset: 'klines', interval: '1d', symbols: ['BTCUSDT'] },
    { ...MONTH, market: 'um', dataset: 'klines', interval: '1mo', symbols: ['BTCUSDT'] },
    {
      cadence: 'daily',
      from: '2024-01-01',
      to: '2024-01-03',
      market: 'um',
      dataset: 'aggTrades',
      symbols: ['BTCUSDT'],
    },
    { ...MONTH, market: 'cm', dataset: 'klines', interval: '1d', symbols: ['BTCUSD_PERP'] },
  ],
});
const RANGE = '--from 2024-01 --to 2024-02';
const BTC = 'binance/um/klines/interval=1h/symbol=BTCUSDT';

/** A new lake with these downloads. */
const lakeOf = (...downloads: readonly string[]): Promise<string> => scene.lakeOf(downloads);

function scriptOf(lake: string, ...flags: readonly string[]): Promise<CliResult> {
  return cryptodl(['export', 'nautilus-loader', '--out', lake, '--now', scene.now, ...flags]);
}

const HAS_PYTHON = spawnSync('python3', ['--version']).status === 0;
const noPython = HAS_PYTHON ? '' : ' (skipped: apt-get install python3)';

describe('the script', () => {
  it('holds the series with their assets, steps, folders and files', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`, `-m cm -i 1d -s BTCUSD_PERP ${RANGE}`);
    const { stdout } = await scriptOf(lake);
    expect(stdout).toContain(
      `("BTCUSDT", "BTC", "USDT", "USDT", "klines", "1-HOUR", "${lake}/${BTC}", ["2024-01.parquet", "2024-02.parquet"]),`,
    );
    expect(stdout).toContain('("BTCUSD_PERP", "BTC", "USD", "BTC", "klines", "1-DAY", ');
    expect(stdout).toContain('FROM, TO = (None, None)\n');
  });

  it('holds the range, and only the files that can have its rows', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`);
    for (const [from, to, end, files] of [
      ['2024-01-02', '2024-01-03', '2024-01-04', '["2024-01.parquet"]'],
      ['2024-01-31', '2024-02-03', '2024-02-04', '["2024-01.parquet", "2024-02.parquet"]'],
    ] as const) {
      const { stdout } = await scriptOf(lake, '--from', from, '--to', to);
      expect(stdout).toContain(`FROM, TO = ("${from}", "${end}")\n`);
      expect(stdout).toContain(`${BTC}", ${files}),`);
    }
    const none = await scriptOf(lake, '--from', '2023-01', '--to', '2023-02');
    expect([none.code, none.stdout]).toEqual([4, '']);
    expect(none.stderr).toContain(
      'nothing is exported, because the lake has no rows of these series in the range',
    );
  });

  it.skipIf(!HAS_PYTHON)(`is a program of Python${noPython}`, async () => {
    const lake = await lakeOf(`-m cm -i 1d -s BTCUSD_PERP ${RANGE}`);
    const { stdout } = await scriptOf(lake);
    const parsed = spawnSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
      input: stdout,
      encoding: 'utf8',
    });
    expect([parsed.stderr, parsed.status]).toEqual(['', 0]);
    // A frame and its times are filtered together.
    expect(stdout).not.toMatch(/frame = frame\[time\b/);
  });
});

describe('the files of a script', () => {
  it('are the committed ones: Parquet and CSV, and no stray file', async () => {
    const lake = await lakeOf(
      '-m um -i 1d -s BTCUSDT --from 2024-01 --to 2024-01',
      '-m um -i 1d -s BTCUSDT --from 2024-02 --to 2024-02 --format csv --timestamps iso',
    );
    const folder = join(lake, 'binance/um/klines/interval=1d/symbol=BTCUSDT');
    copyFileSync(join(folder, '2024-01.parquet'), join(folder, 'copy.parquet'));
    const { code, stdout } = await scriptOf(lake);
    expect(code).toBe(0);
    expect(stdout).toContain(`"${folder}", ["2024-01.parquet", ("2024-02.csv", "iso")]),`);
    expect(stdout).not.toContain('glob(');
  });

  it('are complete, or the series is left out', async () => {
    const lake = await lakeOf(`-m um -i 1d -s BTCUSDT ${RANGE}`, `-m cm -i 1d -s BTCUSD_PERP ${RANGE}`);
    const file = join(lake, 'binance/um/klines/interval=1d/symbol=BTCUSDT/2024-01.parquet');
    const damages = [
      (): void => flipByte(file, 300),
      (): void => truncateSync(file, 100),
      (): void => rmSync(file),
    ];
    for (const [at, damage] of damages.entries()) {
      damage();
      const result = await scriptOf(lake);
      expect(result.code).toBe(4);
      expect(result.stderr).toContain('left out: um klines 1d BTCUSDT: ');
      expect(result.stderr).toContain(
        `2024-01.parquet ${at === 0 ? 'does not have the content that was committed' : 'is missing or damaged'}`,
      );
      expect(result.stdout).toContain('("BTCUSD_PERP", ');
      expect(result.stdout).not.toContain('("BTCUSDT", ');
      const complete = await scriptOf(lake, '--require-complete');
      expect([complete.code, complete.stdout]).toEqual([4, '']);
      expect(complete.stderr).toContain('nothing is exported, because --require-complete is given');
    }
  });

  it('are the only text of stdout, also with --json', async () => {
    const lake = await lakeOf(
      '-m um --dataset aggTrades -s BTCUSDT --from 2024-01-01 --to 2024-01-01',
      '-m um --dataset aggTrades -s BTCUSDT --from 2024-01-03 --to 2024-01-03 --recheck-days 0',
    );
    const { code, stdout, stderr } = await scriptOf(lake, '--json');
    expect([code, stdout.slice(0, 2)]).toEqual([0, '#!']);
    expect(stderr).toContain('the lake lacks um aggTrades BTCUSDT: 2024-01-02');
  });
});

describe('series without an instrument or a bar type', () => {
  it('are left out with a line', async () => {
    const lake = await lakeOf(
      `-m um -i 1h -s * ${RANGE}`,
      `-m um -i 1mo -s BTCUSDT ${RANGE}`,
      `-m um -i 1d -s BTCUSDT ${RANGE}`,
    );
    const all = await scriptOf(lake);
    expect(all.code).toBe(0);
    const lines = all.stderr.split('\n').filter((line) => line.startsWith('left out: '));
    expect(lines).toEqual([
      'left out: um klines 1h BTCUSDT_240329: the loader has no instruments of contracts that end',
      'left out: um klines 1h CVCUSDTSETTLED, um klines 1h FTTUSDTSETTLED, um klines 1h RAYUSDTSETTLED and 1 more: a settled contract has no instrument',
      'left out: um klines 1h FOOBAR: base and quote asset are not known',
      'left out: um klines 1mo BTCUSDT: nautilus_trader has no bar type for 1mo',
    ]);
    const symbols = [...all.stdout.matchAll(/^ {4}\("(\w+)", .*"(\d-\w+)", "/gm)].map(([, ...found]) =>
      found.join(' '),
    );
    expect(symbols).toEqual(['BTCUSDT 1-DAY', 'BTCUSDT 1-HOUR', 'ETHUSDT 1-HOUR']);
    const none = await scriptOf(lake, '-s', 'CVCUSDTSETTLED,FOOBAR', '-i', '1h');
    expect([none.code, none.stdout]).toEqual([4, '']);
    expect(none.stderr).toContain('nothing is exported, because all series are left out');
  });
});
