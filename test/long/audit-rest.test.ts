/** `cryptodl audit --against rest`: the bars of a lake compared with those that REST has. */
import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { publishKlines } from '../helpers/metrics-archive.js';
import { closing, joinedScene, NOW } from '../helpers/metrics-scene.js';
import type { JoinedScene } from '../helpers/metrics-scene.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const HOUR_MS = 3_600_000;
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
const ETH: VenueSymbol = { symbol: 'ETHUSDT', host: 'spot' };
const FROM = Date.parse('2026-11-10');
const DAYS = 8;

type Bar = (string | number)[];

interface Audited extends JoinedScene {
  readonly audit: (...args: readonly string[]) => Promise<CliResult>;
}

/** A lake with eight days of 1h and of 15m. `edit` changes what REST answers for bars of 15m; `lacks`: bars that the archive lacks on 2026-11-12. */
async function scene(
  edit: (bars: Bar[]) => Bar[] = (bars) => bars,
  { lacks = [] as readonly number[], symbol = BTC, flags = [] as readonly string[] } = {},
): Promise<Audited> {
  const opened: JoinedScene = await closing(
    joinedScene(scratch, {
      symbols: [BTC, ETH],
      disturb: (asked) => {
        if (!asked.path.endsWith('/klines') || asked.query.get('interval') !== '15m') return undefined;
        const answer = opened.venue.usual(asked);
        return { ...answer, body: JSON.stringify(edit(JSON.parse(answer.body) as Bar[])) };
      },
    }),
  );
  for (let day = 0; day < DAYS; day += 1)
    for (const [interval, stepMs] of [
      ['15m', HOUR_MS / 4],
      ['1h', HOUR_MS],
    ] as const)
      publishKlines(opened.folder, symbol, interval, stepMs, FROM + day * 24 * HOUR_MS, {
        lacks: day === 2 && interval === '15m' ? lacks : [],
      });
  const market = symbol.host === 'spot' ? 'spot' : 'um';
  const range = ['--from', '2026-11-10', '--to', '2026-11-17'];
  const what = ['--market', market, '--interval', '15m,1h', '--symbols', symbol.symbol];
  expect((await opened.run(['vision', ...what, ...range, ...flags])).code).toBe(0);
  const nowhere = ['--archive-url', 'http://127.0.0.1:9'];
  return { ...opened, audit: (...args) => opened.run(['audit', '--against', 'rest', ...nowhere, ...args]) };
}

const at = (iso: string): number => Date.parse(`${iso}Z`);

describe('audit --against rest', () => {
  it.each([
    ['doubles', BTC, []],
    ['digits, and times with a zone', BTC, ['--numbers', 'string', '--timestamps', 'utc']],
    ['CSV, with microseconds of spot', ETH, ['--format', 'csv']],
  ])(
    'finds nothing in a lake of %s that has the rows of REST, without the archive',
    async (_, symbol, flags) => {
      const { audit } = await scene(undefined, { symbol, flags });
      const audited = await audit('--json');
      expect(audited.code).toBe(0);
      // Eight days of 15m, and one month of 1h.
      expect(audited.events).toMatchObject([
        { event: 'audit', series: 2, months: 9, compared: 9, rows: 8 * 96 + 8 * 24, findings: {}, failed: 0 },
      ]);
    },
  );

  it('names rows that differ with both values, rows only here, and rows only there', async () => {
    const changed = at('2026-11-11T06:15:00');
    const edit = (bars: Bar[]): Bar[] =>
      bars
        .filter(([time]) => time !== at('2026-11-14T00:30:00'))
        .map((bar) => (bar[0] === changed ? bar.with(4, '1.5').with(8, 7) : bar));
    const { audit } = await scene(edit, { lacks: [0, 95] });
    const audited = await audit('--json');
    expect(audited.code).toBe(4);
    const key = (day: string): string => `rest/um/klines/15m/BTCUSDT/${day}`;
    expect(audited.events).toMatchObject([
      {
        event: 'finding',
        kind: 'rows-differ',
        month: '2026-11-11',
        symbol: 'BTCUSDT',
        interval: '15m',
        rows: 1,
        columns: { close: 1, count: 1 },
        example: { open_time: '2026-11-11 06:15:00', 'rest.close': 1.5 },
      },
      {
        kind: 'rows-missing',
        month: '2026-11-12',
        rows: 2,
        days: ['2026-11-12'],
        example: { open_time: '2026-11-12 00:00:00' },
      },
      { kind: 'rows-extra', month: '2026-11-14', rows: 1, example: { open_time: '2026-11-14 00:30:00' } },
      { event: 'audit', findings: { 'rows-differ': 1, 'rows-missing': 1, 'rows-extra': 1 } },
    ]);
    expect(audited.events.map((event) => event['key'])).toContain(key('2026-11-11'));
    const told = await audit('--interval', '15m', '--from', '2026-11-14', '--to', '2026-11-14');
    expect([told.code, told.stdout]).toEqual([
      4,
      'um klines 15m BTCUSDT 2026-11-14  rows-extra  1 row, 2026-11-14; first open_time 2026-11-14 00:30:00\n',
    ]);
    expect(told.stderr).toBe('1 series, 1 period compared with REST, 96 rows; 1 finding\n');
  });

  it('draws a sample of each series, and the same one again with the printed seed', async () => {
    const { audit } = await scene((bars) => bars.map((bar) => bar.with(4, '1.5')));
    const daysOf = ({ events }: CliResult): unknown[] =>
      events.filter(({ event }) => event === 'finding').map(({ month }) => month);
    const first = await audit('--sample', '3', '--json');
    expect(daysOf(first)).toHaveLength(3);
    expect(first.events.at(-1)).toMatchObject({ months: 4, rows: 3 * 96 + 8 * 24 });
    const sample = first.events.at(-1)?.['sample'];
    expect(sample).toMatch(/^3:[0-9a-f]+$/);
    const again = await audit('--sample', String(sample), '--json');
    expect(daysOf(again)).toEqual(daysOf(first));
    const draws = new Set<string>();
    for (const seed of ['a', 'b', 'c'])
      draws.add(daysOf(await audit('--sample', `3:${seed}`, '--json')).join());
    expect(draws.size).toBeGreaterThan(1);
    const told = await audit('--sample', '1:a', '--interval', '15m');
    expect(told.stderr).toContain('; --sample 1:a draws the same periods again');
  });

  it('retries refused requests, and counts those that stay refused as failed', async () => {
    let refusals = 2;
    let isDown = false;
    const opened: JoinedScene = await closing(
      joinedScene(scratch, {
        symbols: [BTC],
        disturb: (asked) => {
          if (!asked.path.endsWith('/klines') || (!isDown && refusals === 0)) return undefined;
          refusals -= isDown ? 0 : 1;
          return { ...opened.venue.usual(asked), status: 503, body: '' };
        },
      }),
    );
    publishKlines(opened.folder, BTC, '1h', HOUR_MS, FROM);
    const range = ['--from', '2026-11-10', '--to', '2026-11-10'];
    await opened.run(['vision', '--interval', '1h', '--symbols', 'BTCUSDT', ...range]);
    const audited = await opened.run(['audit', '--against', 'rest', '--json']);
    expect([refusals, audited.code]).toEqual([0, 0]);
    isDown = true;
    const failed = await opened.run(['audit', '--against', 'rest', '--json']);
    expect(failed.code).toBe(3);
    expect(failed.events).toMatchObject([
      { event: 'failed', retryable: true },
      { failed: 1, compared: 0 },
    ]);
  });

  it('names a symbol that REST lacks, which is no finding, and a damaged file', async () => {
    const { audit, lake, folder, run } = await scene();
    publishKlines(folder, { ...BTC, symbol: 'OLDUSDT' }, '1h', HOUR_MS, FROM);
    const range = ['--from', '2026-11-10', '--to', '2026-11-10'];
    await run(['vision', '--interval', '1h', '--symbols', 'OLDUSDT', ...range]);
    const old = await audit('--symbols', 'OLDUSDT');
    expect([old.code, old.stderr]).toEqual([
      0,
      'warning: um klines 1h OLDUSDT is not compared: REST does not have the symbol\n' +
        '0 series, 0 periods compared with REST, 0 rows; 0 findings\n',
    ]);
    const file = join(lake, 'binance/um/klines/interval=1h/symbol=BTCUSDT/2026-11.parquet');
    truncateSync(file, 100);
    const audited = await audit('--json');
    expect(audited.code).toBe(4);
    expect(audited.events.filter(({ event }) => event === 'failed')).toMatchObject([
      { interval: '1h', message: expect.stringContaining('is missing or damaged') as unknown },
    ]);
  });

  it.each([
    [['--prefer', 'daily'], 'leave --prefer or --against out'],
    [['--dataset', 'trades'], 'holds no'],
  ])('refuses %j', async (flags, hint) => {
    const { audit } = await scene();
    const refused = await audit(...flags);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(hint)]);
  });

  it('needs --against rest for a sample', async () => {
    const refused = await cryptodl(['audit', '--sample', '3', '--now', NOW, '--out', join(scratch, 'none')]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('add --against rest')]);
  });
});
