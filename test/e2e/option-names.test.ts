import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { vision } from '../../src/library.js';
import { cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { useScene } from '../helpers/scene.js';

const folder = scratchFolder();
const REVERSED = { from: '2024-02-02', to: '2024-02-01' };

describe('every command names an option of the environment by its variable', () => {
  const lake = join(folder, 'data');
  const jobs = join(folder, 'jobs.yaml');
  writeFileSync(
    jobs,
    JSON.stringify({ jobs: { bars: { verb: 'vision', symbols: 'BTCUSDT', days: 1, out: lake } } }),
  );
  it.each([
    ['schema', ['schema', 'klines'], { CRYPTODL_MARKET: 'um,cm' }, 'CRYPTODL_MARKET um,cm: schema takes one'],
    [
      'coverage',
      ['coverage', '--out', lake],
      { CRYPTODL_FROM: REVERSED.from, CRYPTODL_TO: REVERSED.to },
      'CRYPTODL_FROM 2024-02-02 is after CRYPTODL_TO 2024-02-01',
    ],
    [
      'sql',
      ['sql', 'SHOW TABLES'],
      { CRYPTODL_CSV: '1', CRYPTODL_JSON: '1' },
      'CRYPTODL_CSV and CRYPTODL_JSON',
    ],
    ['run', ['run', jobs], { CRYPTODL_ONLY: 'trades' }, `CRYPTODL_ONLY: ${jobs} has no job "trades"`],
  ])('%s', async (_, args, env, message) => {
    const { code, stderr } = await cryptodl(args, { cwd: folder, env });
    expect(stderr).toContain(`cryptodl: ${message}`);
    expect(code).toBe(2);
  });
});

describe('the library names options', () => {
  const SUM = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-20.zip.CHECKSUM';
  const scene = useScene({
    archive: [{ from: '2026-11-20', to: '2026-11-20' }],
    change: (raw) => {
      writeFileSync(join(raw, SUM), `${'0'.repeat(64)}  BTCUSDT-1h-2026-11-20.zip\n`);
    },
  });

  it('in warnings and in the outcome of a failed object', async () => {
    const warnings: string[] = [];
    const request = { symbols: 'BTCUSDT', interval: '1h', days: 1, now: '2026-11-21T12:00:00Z' };
    const settings = {
      out: join(folder, 'stale'),
      archiveUrl: scene.archive.url,
      concurrency: 200,
      retryDelay: 2,
    };
    const messages: string[] = [];
    const hooks = { onWarning: (message: string) => warnings.push(message) };
    for await (const outcome of vision({ ...request, ...settings }, hooks))
      if (outcome.outcome === 'failed') messages.push(outcome.message);
    expect(warnings).toEqual([expect.stringMatching(/^concurrency 200: more than 128 objects in flight/)]);
    expect(messages).toEqual([expect.stringMatching(/\(staleChecksum warn accepts it\)$/)]);
  });
});
