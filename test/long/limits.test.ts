/** A process that may use little of its machine: memory of a cgroup, open files. */
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { enterMemoryCgroup, MISSING } from '../helpers/local-faults.js';
import { useScene } from '../helpers/scene.js';

const DAYS = { from: '2026-09-01', to: '2026-11-20' };
const ROWS = 4 * 81 * 24;

describe('little of the machine', () => {
  const scene = useScene({
    archive: [{ symbols: ['BTCUSDT', 'ETHUSDT', 'SOLUSDT', 'XRPUSDT'], ...DAYS }],
    now: '2026-11-21T12:00:00Z',
    flags: ['--symbols', 'all', '--interval', '1h', '--from', DAYS.from, '--to', DAYS.to],
  });
  const within = (line: string): readonly string[] => ['sh', '-c', `${line}; exec "$@"`, 'sh'];

  it.each([
    [64, 1],
    [128, 14],
  ])('with %i open files a run has %i objects in flight, and says so', async (files, most) => {
    const wrap = within(`ulimit -n ${files}`);
    const { code, lake, stderr } = await scene.vision([], { wrap });
    expect(stderr).toContain(
      `--concurrency is ${most} instead of 128: this process may open only ${files} files (ulimit -n)`,
    );
    expect(stderr).not.toContain('EMFILE');
    expect(code).toBe(0);
    const query = ['sql', 'SELECT count(*) AS n FROM um_klines', '--csv', '--out', lake];
    expect((await cryptodl(query, { wrap })).stdout).toBe(`n\n${ROWS}\n`);
  });

  it.skipIf(MISSING.cgroup !== undefined)(
    'a sort larger than the memory of an outer cgroup ends',
    async () => {
      const { lake } = await scene.vision();
      const sort =
        "SELECT hash(i) AS a, repeat('x', 300) || i AS b FROM range(1200000) t(i) ORDER BY a OFFSET 1199999";
      const run = await cryptodl(['sql', sort, '--csv', '--out', lake], {
        wrap: within(enterMemoryCgroup(250e6)),
      });
      expect([run.code, run.signal]).toEqual([0, null]);
      expect(run.stdout).toMatch(/^a,b\n\d+,x{300}\d+\n$/);
    },
  );
});
