/** A process that may use little of its machine. */
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { enterMemoryCgroup, MISSING } from '../helpers/local-faults.js';
import { useScene } from '../helpers/scene.js';

const DAYS = { from: '2026-09-01', to: '2026-11-20' };

describe('little of the machine', () => {
  const scene = useScene({
    archive: [{ symbols: ['BTCUSDT', 'ETHUSDT', 'SOLUSDT', 'XRPUSDT'], ...DAYS }],
    now: '2026-11-21T12:00:00Z',
    flags: ['--symbols', 'all', '--interval', '1h', '--from', DAYS.from, '--to', DAYS.to],
  });

  it.skipIf(MISSING.cgroup !== undefined)(
    'a sort larger than the memory of an outer cgroup ends',
    async () => {
      const { lake } = await scene.vision();
      const sort =
        "SELECT hash(i) AS a, repeat('x', 300) || i AS b FROM range(1200000) t(i) ORDER BY a OFFSET 1199999";
      const run = await cryptodl(['sql', sort, '--csv', '--out', lake], {
        wrap: ['sh', '-c', `${enterMemoryCgroup(250e6)}; exec "$@"`, 'sh'],
      });
      expect([run.code, run.signal]).toEqual([0, null]);
      expect(run.stdout).toMatch(/^a,b\n\d+,x{300}\d+\n$/);
    },
  );
});
