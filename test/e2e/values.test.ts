/** Rows whose values cannot be right or that conflict: they are held, counted, and shown with the first one. */
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { manifestLines } from '../helpers/lake.js';
import { publish } from '../helpers/published.js';
import { useScene } from '../helpers/scene.js';
import type { SceneRun } from '../helpers/scene.js';

const scene = useScene({ now: '2023-12-20T12:00:00Z', archive: [] });
const HOUR_MS = 3_600_000;

function put(dataset: string, period: string, csv: string, interval?: string): void {
  const folder = interval === undefined ? 'BTCUSDT' : `BTCUSDT/${interval}`;
  const name = `BTCUSDT-${interval ?? dataset}-${period}.zip`;
  publish(scene.folder, `data/futures/um/daily/${dataset}/${folder}/${name}`, csv);
}

/** The bars of a day. Some hours have other prices (open, high, low, close) and another volume. */
function bars(day: string, others: Readonly<Record<number, string>> = {}): string {
  return Array.from({ length: 24 }, (_, hour) => {
    const at = Date.parse(day) + hour * HOUR_MS;
    return `${at},${others[hour] ?? '2,4,1,3,5'},${at + HOUR_MS - 1},9,3,1,1,0\n`;
  }).join('');
}

/** Snapshots of a book every 30 seconds. A frozen band has one value. */
function bands(day: string, frozen?: string): string {
  const rows = Array.from({ length: 2880 }, (_, index) => {
    const at = new Date(Date.parse(day) + index * 30_000).toISOString().slice(0, 19).replace('T', ' ');
    return ['-5.00', '-0.20', '0.20', '5.00'].map(
      (band) => `${at},${band},${band === frozen ? '7,70' : `${index + 1},${index + 2}`}\n`,
    );
  });
  return `timestamp,percentage,depth,notional\n${rows.flat().join('')}`;
}

/** The output of a verb about the lake, as text and as the first and the last object of its JSON. */
async function shown(verb: string, { lake }: SceneRun) {
  const words = [verb, '--out', lake, '--now', scene.now];
  const { stdout, code } = await cryptodl(words);
  return { stdout, code, events: (await cryptodl([...words, '--json'])).events };
}

const ASKED = '-i 1h -s BTCUSDT --from 2023-05-01 --to 2023-05-03';
const SUSPICIOUS = [
  { kind: 'negative', rows: 1, first: '2023-05-02T07:00:00Z volume -1' },
  { kind: 'order', rows: 2, first: '2023-05-01T03:00:00Z low 5, open 2, high 4, close 3' },
  { kind: 'zero', rows: 1, first: '2023-05-02T09:00:00Z close 0' },
];

describe('bars whose values cannot be right', () => {
  it.each(['', '--format csv', '--numbers string'])('are counted and kept %s', async (flags) => {
    put('klines', '2023-05-01', bars('2023-05-01', { 3: '2,4,5,3,5' }), '1h');
    put('klines', '2023-05-02', bars('2023-05-02', { 7: '2,4,1,3,-1', 9: '2,4,1,0,5' }), '1h');
    put('klines', '2023-05-03', bars('2023-05-03'), '1h');
    const run = await scene.vision(`${ASKED} ${flags}`, { lake: flags });
    expect(run.code).toBe(0);
    expect(run.stderr).toContain('2 with values that cannot be right; the rows are kept');
    expect(run.stderr).toContain('2023-05-01.zip: 1 row order, first 2023-05-01T03:00:00Z low 5, open 2');
    const lines = manifestLines(`${run.lake}/binance/um/klines/interval=1h/symbol=BTCUSDT`);
    expect(lines.map(({ suspicious }) => suspicious)).toEqual([
      [{ ...SUSPICIOUS[1], rows: 1 }],
      [
        SUSPICIOUS[0],
        { ...SUSPICIOUS[1], rows: 1, first: '2023-05-02T09:00:00Z low 1, open 2, high 4, close 0' },
        SUSPICIOUS[2],
      ],
      undefined,
    ]);
    const { stdout, events } = await shown('coverage', run);
    expect(stdout).toMatch(
      /suspicious: 2 rows order, first BTCUSDT (\(csv\) )?2023-05-01T03:00:00Z low 5, open 2/,
    );
    for (const event of [events[0], events.at(-1)])
      expect(event).toMatchObject({
        conflicts: 0,
        suspicious: expect.arrayContaining([expect.objectContaining({ kind: 'zero', rows: 1 })]),
      });
    expect(events[0]).toMatchObject({ held: 72, missing: 0, percent: 100 });
  });

  it('do not change the verdict of check, which shows them', async () => {
    const run = await scene.vision(ASKED);
    const { stdout, code, events } = await shown('check', run);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^complete: /);
    expect(stdout).toContain(
      'suspicious: 1 row zero, first um klines 1h BTCUSDT 2023-05-02T09:00:00Z close 0',
    );
    expect(events).toMatchObject([{ verdict: 'complete', orders: [{ conflicts: 0 }] }]);
  });

  it('are those of whole days without a change, for each band of a book', async () => {
    put('bookDepth', '2023-05-01', bands('2023-05-01'));
    put('bookDepth', '2023-05-02', bands('2023-05-02', '0.20'));
    const run = await scene.vision('--dataset bookDepth -s BTCUSDT --from 2023-05-01 --to 2023-05-02');
    const { events } = await shown('coverage', run);
    expect(events[0]).toMatchObject({
      suspicious: [
        { kind: 'constant', rows: 2880, first: '2023-05-02T00:00:00Z percentage 0.2, depth 7, notional 70' },
      ],
    });
  });
});

describe('rows in conflict', () => {
  it('are shown by coverage and check', async () => {
    put(
      'klines',
      '2023-06-01',
      `${bars('2023-06-01')}${bars('2023-06-01', { 23: '2,4,1,2,5' }).split('\n').at(-2) ?? ''}\n`,
      '1h',
    );
    const run = await scene.vision('-i 1h -s BTCUSDT --from 2023-06-01 --to 2023-06-01');
    const { stdout, events } = await shown('coverage', run);
    expect(stdout).toContain('conflicts: 1 row in 1 series');
    expect(events[0]).toMatchObject({ conflicts: 1, suspicious: [] });
    const verdict = await shown('check', run);
    expect(verdict.stdout).toContain('conflicts: 1 row in 1 series');
    expect(verdict.events).toMatchObject([{ verdict: 'complete', orders: [{ conflicts: 1 }] }]);
  });
});

describe('a new column of the archive', () => {
  const HEAD =
    'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore';
  /** The bars of a day with a header and the cells of further columns. */
  const withCells = (day: string, head: string, cells: string): string =>
    `${head}\n${bars(day).trimEnd().split('\n').join(`${cells}\n`)}${cells}\n`;

  it('at the end is named once and left out, and the rows are read', async () => {
    put('klines', '2023-07-01', bars('2023-07-01'), '1h');
    for (const day of ['2023-07-02', '2023-07-03'])
      put('klines', day, withCells(day, `${HEAD},open_interest,note`, ',7,a b'), '1h');
    const run = await scene.vision('-i 1h -s BTCUSDT --from 2023-07-01 --to 2023-07-03');
    expect(run.code).toBe(0);
    for (const name of ['open_interest', 'note'])
      expect(
        run.stderr.split(`um klines has a new column ${name}, which this version does not know`),
      ).toHaveLength(2);
    const lines = manifestLines(`${run.lake}/binance/um/klines/interval=1h/symbol=BTCUSDT`);
    expect(lines.map(({ rows, newColumns }) => [rows, newColumns])).toEqual([
      [24, undefined],
      [24, ['open_interest', 'note']],
      [24, ['open_interest', 'note']],
    ]);
    expect((await cryptodl(['verify', '--deep', '--out', run.lake])).code).toBe(0);
  });

  it.each([
    ['elsewhere', HEAD.replace('volume,', 'open_interest,volume,'), ',7'],
    ['in place of a known one', HEAD.replace('ignore', 'open_interest'), ''],
    ['that only the header has', `${HEAD},open_interest`, ''],
    ['with a name that exists', `${HEAD},close`, ',7'],
  ])('%s is refused', async (_, head, cells) => {
    put('klines', '2023-08-01', withCells('2023-08-01', head, cells), '1h');
    const run = await scene.vision('-i 1h -s BTCUSDT --from 2023-08-01 --to 2023-08-01');
    expect(run.code).toBe(4);
    expect(run.stderr).toMatch(/1 failed, (header-unknown|row-malformed)/);
  });
});
