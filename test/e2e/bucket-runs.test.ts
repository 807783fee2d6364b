/** What runs put into a lake in a bucket, and what they remove from it. */
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { bucketScene, dayOf } from '../helpers/bucket-scene.js';
import { cryptodl } from '../helpers/cli.js';
import { publish } from '../helpers/published.js';
import type { TestLake } from '../helpers/lake-kinds.js';

const MIB = 1024 * 1024;

describe('a run on a lake in a bucket', () => {
  const scene = bucketScene();
  const { scratch, server, vision } = scene;
  let lake: TestLake;
  beforeEach(() => {
    ({ lake } = scene.begin());
  });

  it('puts a file above 16 MiB in parts, and reads it again', async () => {
    const begun = Date.parse(`${dayOf(1)}T00:00:00Z`);
    const rows = Array.from(
      { length: 350_000 },
      (_, at) => `${1_000_000 + at},1.5,2.5,${2_000_000 + at},${2_000_000 + at},${begun + at},true`,
    );
    const key = `data/futures/um/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-${dayOf(1)}.zip`;
    publish(join(scratch, 'archive'), key, `${rows.join('\n')}\n`);
    const trades = ['--dataset', 'aggTrades', '--format', 'csv', '--interval', 'none'];
    expect((await vision(1, 1, trades)).code).toBe(0);
    const [file] = [...server.objects].filter(([name]) => name.endsWith('.csv'));
    expect(file?.[1].bytes.length).toBeGreaterThan(17 * MIB);
    expect(server.requests.some(({ query }) => query['partNumber'] === '2')).toBe(true);
    const count = ['sql', 'SELECT count(*) AS c FROM um_aggTrades', '--csv', '--out', lake.out];
    expect((await cryptodl(count, { env: lake.environment })).stdout).toBe('c\n350000\n');
  });
});
