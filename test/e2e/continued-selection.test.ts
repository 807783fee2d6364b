/** The series of a lake that a run without symbols continues, and those that the verbs for lakes choose. */
import { describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { cryptodl } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';

const days = { from: '2026-11-18', to: '2026-11-20' };
const scene = useScene({
  archive: [days, { ...days, dataset: 'metrics' }],
});

describe('--interval in a lake that also has series without an interval', () => {
  const lake = 'mixed';
  const objectsOf = (): string[] => [
    ...new Set(
      scene.archive.objectRequests().map((path) => path.split('/').at(-1)?.replace('.CHECKSUM', '') ?? ''),
    ),
  ];

  it('alone continues and shows only series with an interval', async () => {
    await scene.vision('--interval 1h --symbols BTCUSDT --days 2', { lake });
    const { lake: out } = await scene.vision('--dataset metrics --symbols BTCUSDT --days 2', { lake });
    scene.reset();
    const { code } = await scene.vision('--interval 1h --days 3', { lake });
    expect([code, objectsOf()]).toEqual([0, ['BTCUSDT-1h-2026-11-18.zip']]);
    const { events } = await cryptodl(['coverage', '--out', out, '--interval', '1h', '--json']);
    expect(events.flatMap(({ dataset }) => dataset ?? [])).toEqual(['klines']);
  });

  it('does not filter a dataset that is given too', async () => {
    scene.reset();
    const { code } = await scene.vision('--interval 1h --dataset klines,metrics --days 3', { lake });
    expect([code, objectsOf()]).toEqual([0, ['BTCUSDT-metrics-2026-11-18.zip']]);
  });

  it('metrics without symbols names --symbols if the lake has no series of REST', async () => {
    const { code, stderr } = await scene.metrics([], { lake });
    expect([code, stderr]).toEqual([2, expect.stringContaining('holds no series to continue over REST')]);
    expect(stderr).toContain('name some: --symbols BTCUSDT,ETHUSDT');
  });
});

describe('a run without symbols', () => {
  const grown = useScene({ archive: [{ ...days, symbols: ['BTCUSDT', 'ETHUSDT'] }], flags: '--interval 1h' });
  const NEW = ['BNEWUSDT', 'BNEWBTC', 'CNEWUSDT'] as const;

  it('continues an order with the new symbols of its globs, from the first day of the order', async () => {
    const lake = 'grown';
    await grown.vision(['--symbols', 'B*,!*DOWN*', '--quote', 'USDT', '--days', '3'], { lake });
    for (const symbol of [...NEW, 'BDOWNUSDT'])
      makeArchive(grown.folder, {
        ...days,
        market: 'um',
        dataset: 'klines',
        cadence: 'daily',
        interval: '1h',
        symbols: [symbol],
      });
    const { stderr, lake: out } = await grown.vision([], { lake });
    expect(stderr).toContain('3 ok');
    const coverage = await cryptodl(['coverage', '--out', out, '--json']);
    expect(
      coverage.events.flatMap(({ symbol, held }) => (symbol === undefined ? [] : [[symbol, held]])),
    ).toEqual([
      ['BNEWUSDT', 72],
      ['BTCUSDT', 72],
    ]);
    const checked = await cryptodl(['check', '--out', out, '--now', grown.now, '--json']);
    const { orders } = JSON.parse(checked.stdout) as { orders: { series: number }[] };
    expect([checked.code, orders]).toMatchObject([0, [{ series: 2 }]]);
    grown.archive.requests.length = 0;
    const again = await grown.vision([], { lake });
    expect(again.stderr).toContain('to fetch   nothing');
  });

  it('continues the symbols that an order has when the listing of symbols fails', async () => {
    const lake = 'unlisted';
    await grown.vision(['--symbols', '*USDT', '--days', '2'], { lake });
    grown.refuse((path) => path.includes('delimiter='), 403);
    const { code, stderr } = await grown.vision(['--days', '3'], { lake });
    expect([code, stderr]).toEqual([0, expect.stringMatching(/new ones of \*USDT are left out/)]);
  });
});

it('an asset name means the symbol of its order while the listing is not available', async () => {
  const lake = 'asset';
  await scene.vision('--interval 1h --symbols BTC --days 3', { lake });
  scene.refuse((path) => path.includes('prefix='), 403);
  const { lake: out } = await scene.vision('--interval 1h --symbols BTC --days 3', { lake });
  const { events } = await cryptodl(['check', '--json', '--out', out, '--now', scene.now]);
  expect(events[0]?.['orders']).toMatchObject([{ series: 1, lacking: 0 }]);
});
