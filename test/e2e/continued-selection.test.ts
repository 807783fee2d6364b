/** The series of a lake that a run without symbols continues, and those that the verbs for lakes choose. */
import { describe, expect, it } from 'vitest';
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
