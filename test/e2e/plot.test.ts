/** `cryptodl plot`: exact pictures of small lakes, and refused names. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { writeFunding, writeHours } from '../helpers/plot-lake.js';
import type { Candle } from '../helpers/plot-lake.js';

const scratch = scratchFolder();
const LAKE = join(scratch, 'lake');
const NOW = '2024-01-10T08:00:00Z';
let archive: TestArchive;

const DAY_1: readonly Candle[] = Array.from({ length: 24 }, (_, hour) => {
  const open = 100 + 10 * Math.sin(hour / 4);
  const close = 100 + 10 * Math.sin((hour + 1) / 4);
  return [open, Math.max(open, close) + 1, Math.min(open, close) - 1, close, 10 + hour];
});
/** Hours 6 to 11 are missing. */
const DAY_2 = DAY_1.map((candle, hour) => (hour >= 6 && hour < 12 ? undefined : candle));
const RATES = [0.0001, 0.0002, -0.0001, -0.0003, 0, 0.0001, 0.0004, 0.0001, -0.0002];

beforeAll(async () => {
  const folder = join(scratch, 'archive');
  writeHours(folder, 'BTCUSDT', '2024-01-01', DAY_1);
  writeHours(folder, 'BTCUSDT', '2024-01-02', DAY_2);
  writeHours(folder, 'FLATUSDT', '2024-01-01', [[5, 5, 5, 5, 0]]);
  writeHours(folder, 'TINYUSDT', '2024-01-01', [
    [1.2e-9, 1.5e-9, 1e-9, 1.4e-9, 4e12],
    [1.4e-9, 1.6e-9, 1.3e-9, 1.35e-9, 1e12],
  ]);
  writeFunding(folder, 'BTCUSDT', '2024-01', RATES);
  const many = {
    market: 'um',
    symbols: ['MANYUSDT'],
    cadence: 'daily',
    dataset: 'klines',
    from: '2024-01-01',
  } as const;
  makeArchive(folder, { ...many, interval: '1h', to: '2024-01-06' });
  makeArchive(folder, { ...many, interval: '1d', to: '2024-01-07' });
  archive = await startArchive(folder);
  const range = ['--from', '2024-01-01', '--to', '2024-01-02', '-i', '1h', '--now', NOW];
  const one = ['--from', '2024-01-01', '--to', '2024-01-01', '-i', '1h', '--now', NOW];
  await download('-s', 'BTCUSDT', ...range);
  await download('-s', 'FLATUSDT,TINYUSDT', ...one);
  await download('-s', 'MANYUSDT', '-i', '1h,1d', '--from', '2024-01-01', '--to', '2024-01-06', '--now', NOW);
  await download(
    ...'-s BTCUSDT --dataset fundingRate --from 2024-01 --to 2024-01 --now 2024-02-10T08:00:00Z'.split(' '),
  );
});
afterAll(() => archive.close());

function download(...args: readonly string[]): Promise<unknown> {
  return cryptodlOk(['vision', '--archive-url', archive.url, '--out', LAKE, ...FAST, ...args]);
}

const SMALL = { COLUMNS: '64', LINES: '18' };

function plot(args: readonly string[], env: Readonly<Record<string, string>> = SMALL) {
  return cryptodl(['plot', ...args, '--out', 'lake'], { cwd: scratch, env });
}

async function picture(
  args: readonly string[],
  env: Readonly<Record<string, string>> = SMALL,
): Promise<string> {
  const { stdout, stderr, code } = await plot(args, env);
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  return `\n${stdout}`;
}

describe('a plot', () => {
  it('has candles and volumes, with missing hours as a gap and the command that fetches them', async () => {
    expect(await picture(['BTCUSDT'], { ...SMALL, LINES: '23' })).toMatchInlineSnapshot(`
      "
      BTCUSDT um klines 1h  2024-01-01 … 2024-01-02 UTC
      a candle is 1 hour
      last 97.205845 (-2.79 %)  high 110.97495  low 89.007072
      volume 921  ┃ up █ down
         ╷╽╽▄▄╷                  ╷╽╽                  ┤ 110
        ╷┃╿╵╵▀█▄╷               ╷┃╿╵                  │
       ╽┃╹    ╵▀█╷             ╽┃╹                    │
      ╽┃╵       ▀█╷           ╽┃╵         ╷           │
      ┃╵         ▀█           ┃╵          █           ┤ 100
      ╵           ▀█         ╷╵           ▀█         ╷│
                   █▄       ╷┃             █▄       ╷┃│<97.205845
                    ▀█╷    ╷┃╿              ▀█╷    ╷┃╿│
                     ▀█▄╷╷╽┃╹                ▀█▄╷╷╽┃╹ │
                      ╵▀▀╿╿╵                  ╵▀▀╿╿╵  ┤ 90
                   ▁▁▂▃▄▄▅▆▇▇█             ▁▁▂▃▄▄▅▆▇▇█│ 33
        ▁▁▂▃▄▄▅▆▇▇████████████  ▁▁▂▃      ████████████│
      ▇███████████████████████▇█████      ████████████│
      ┬───────┬───────┬───────┬─────╌╌┬╌╌╌────┬───────┘
      2024    08:00   16:00   Jan 2   08:00   16:00
      missing: 2024-01-02 06:00 … 11:00 (unexplained)
      to fetch them: cryptodl repair --out lake -m um --dataset klines -i 1h -s BTCUSDT
      "
    `);
  });

  it('has colours instead of two kinds of bodies where colour is forced, and the same lines without them', async () => {
    const coloured = await picture(['BTCUSDT', '-q'], { ...SMALL, FORCE_COLOR: '1' });
    // eslint-disable-next-line no-control-regex -- the codes of colours begin with ESC
    const codes = new Set(coloured.match(/\u001b\[\d+m/g));
    expect([...codes].sort()).toEqual(['\u001b[0m', '\u001b[1m', '\u001b[31m', '\u001b[32m', '\u001b[90m']);
    // eslint-disable-next-line no-control-regex -- as above
    const plain = coloured.replaceAll(/\u001b\[\d+m/g, '');
    const widths = (text: string): number[] => text.split('\n').map(({ length }) => length);
    const without = await picture(['BTCUSDT', '-q'], { ...SMALL, NO_COLOR: '1' });
    expect(widths(plain).slice(5)).toEqual(widths(without).slice(5));
    expect(plain).not.toContain('█ down');
  });

  it('joins the values of a column, except across a gap', async () => {
    expect(await picture(['BTCUSDT', '--column', 'close', '-q'])).toMatchInlineSnapshot(`
      "
      BTCUSDT um klines 1h close  2024-01-01 … 2024-01-02 UTC
      last 97.205845  high 109.97495  low 90.007072
          ╻┃╹┃╻                   ╻┃                  │
         ┃╹   ┃╻                 ┃╹                   │
        ┃╹     ┃╻               ┃╹                    │
       ┃╹       ┃              ┃╹                     ┤ 105
      ╻┃        ╹┃            ╻┃                      │
                 ┃╻           ┃                       │
                  ┃           ┃                       ┤ 100
                  ╹┃          ┃           ╹┃          │
                   ┃╻        ┃╹            ┃╻        ┃│<97.205845
                    ┃       ╻┃              ┃       ╻┃┤ 95
                    ╹┃     ╻┃               ╹┃     ╻┃ │
                     ╹┃   ╻┃                 ╹┃   ╻┃  │
                      ╹┃╻┃╹                   ╹┃╻┃╹   │
      ┬───────┬───────┬───────┬─────╌╌┬╌╌╌────┬───────┘
      2024    08:00   16:00   Jan 2   08:00   16:00
      "
    `);
  });

  it('takes the newest interval that fills the picture, in the given range', async () => {
    const first = async (...args: readonly string[]): Promise<string[]> => {
      const { stdout } = await plot(['MANYUSDT', ...args], { COLUMNS: '80', LINES: '24' });
      return stdout.split('\n').filter((line) => line.includes('MANYUSDT'));
    };
    expect(await first()).toEqual([
      expect.stringMatching(/^MANYUSDT um klines 1h {2}2024-01-01 … 2024-01-06 UTC/),
    ]);
    expect((await first('-i', '1d'))[0]).toContain('MANYUSDT um klines 1d');
    // The daily candles are newer.
    await download('-s', 'MANYUSDT', '-i', '1d', '--from', '2024-01-07', '--to', '2024-01-07', '--now', NOW);
    expect((await first())[0]).toContain('MANYUSDT um klines 1d  2024-01-01 … 2024-01-07 UTC');
    expect((await first('--to', '2024-01-06'))[0]).toContain('MANYUSDT um klines 1h');
  });
});

describe('a plot as a file', () => {
  const read = (name: string): string => readFileSync(join(scratch, name), 'utf8');

  it('has the candles of all rows, the repair of a gap, and a broken line', async () => {
    const dataOf = (name: string) => {
      const [, json = ''] =
        /<script type="application\/json" data-kind="plot">(.*?)<\/script>/.exec(read(name)) ?? [];
      return JSON.parse(json) as { bars: number[][]; breaks: number[]; notes: string[] };
    };
    const { stdout, code } = await plot(['BTCUSDT', '--html', 'btc.html']);
    expect({ stdout, code }).toEqual({
      stdout: expect.stringMatching(/^wrote btc\.html: [\d.]+ kB\n$/) as string,
      code: 0,
    });
    const { bars, notes } = dataOf('btc.html');
    const hours = [...DAY_1, ...DAY_2].filter((candle) => candle !== undefined);
    const rising = hours.filter(([open, , , close]) => close >= open).length;
    expect(bars).toHaveLength(hours.length);
    expect(bars.filter(([, , open = 0, , , close = 0]) => close >= open)).toHaveLength(rising);
    expect(notes.join('\n')).toContain(
      'to fetch them: cryptodl repair --out lake -m um --dataset klines -i 1h -s BTCUSDT',
    );
    // The steps of missing hours stay free: the widest distance between candles is that of seven steps.
    const distances = bars.slice(1).map(([start = 0], at) => start - (bars[at]?.[0] ?? 0));
    expect(Math.max(...distances) / Math.min(...distances)).toBe(7);
    await plot(['BTCUSDT', '--column', 'close', '--html', 'close.html']);
    expect(dataOf('close.html').breaks).toHaveLength(1);
  });

  it('is a page with its data, which is replaced, unlike another file', async () => {
    await plot(['BTCUSDT', '--html', 'btc.html']);
    const html = read('btc.html');
    const [, json = ''] =
      /<script type="application\/json" data-kind="plot">(.*?)<\/script>/.exec(html) ?? [];
    expect(JSON.parse(json)).toMatchObject({
      kind: 'candles',
      title: 'BTCUSDT um klines 1h',
      hasVolume: true,
    });
    expect(html).toContain("default-src 'none'");
    expect(await plot(['FLATUSDT', '-q', '--html', 'btc.html'])).toMatchObject({ code: 0, stdout: '' });
    expect(read('btc.html')).toContain('FLATUSDT um klines 1h');
    writeFileSync(join(scratch, 'mine.html'), '<!doctype html>\nmine');
    const refused = await plot(['BTCUSDT', '--html', 'mine.html']);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('mine.html is not a plot, and is not replaced');
    expect(read('mine.html')).toBe('<!doctype html>\nmine');
  });
});

describe('a plot refuses', () => {
  it.each([
    [['BTCUSD'], 'lake has no BTCUSD in um ', 'did you mean BTCUSDT?'],
    [['-s', 'BTCUSD'], 'lake has no BTCUSD in um ', 'did you mean BTCUSDT?'],
    [[], 'plot needs a symbol; lake holds BTCUSDT, FLATUSDT, MANYUSDT, TINYUSDT', 'cryptodl plot SYMBOL'],
    [['BTCUSDT,FLATUSDT'], 'plot needs a symbol; lake holds BTCUSDT, FLATUSDT\n', 'cryptodl plot SYMBOL'],
    [
      ['BTCUSDT', '-i', '1m'],
      'holds no 1m; it holds 1h',
      'choose one of these with --interval, or leave it out',
    ],
    [
      ['BTCUSDT', '--column', 'volum'],
      '--column volum: no such column of numbers; um klines has open, high, low, close, volume',
      'did you mean volume?',
    ],
    [
      ['BTCUSDT', '-d', '3', '--now', NOW],
      'lake holds no Parquet or CSV rows of BTCUSDT um klines in 2024-01-07 … 2024-01-09 (3 days)',
      'cryptodl coverage shows what the lake holds',
    ],
  ])('%j', async (args, message, hint) => {
    const { code, stderr, stdout } = await plot(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
  });

  it('a lake of zip files', async () => {
    const zips = join(scratch, 'zips');
    await download('-s', 'FLATUSDT', '-i', '1h', '-d', '9', '--now', NOW, '--format', 'zip', '--out', zips);
    const { code, stderr } = await cryptodl(['plot', 'FLATUSDT', '-o', zips]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('holds no Parquet or CSV rows of FLATUSDT')]);
  });
});
