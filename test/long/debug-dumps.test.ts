/** SIGUSR2 in the phases of a run, and many signals, through the real program. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { readDump, spawned } from '../helpers/debug-dumps.js';
import { preload } from '../helpers/preload.js';
import { isListing, useScene } from '../helpers/scene.js';
import type { SceneRun } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --days 3 --json',
});
const TWO = '--symbols BTCUSDT,ETHUSDT';

/** The run ended as one without a signal does. */
function expectWell({ code, signal, summary, stderr }: SceneRun): void {
  expect([code, signal, summary['outcomes']]).toMatchObject([0, null, { ok: 6, failed: 0 }]);
  expect(stderr).not.toContain('cannot be written');
}

/** Holds the first call of this function of `node:fs/promises` on such a path until the file `go` exists. */
function holding(
  name: 'rename' | 'rm',
  path: RegExp,
): { env: Record<string, string>; held: string; go: string } {
  const folder = scene.newFolder();
  const [held, go] = [join(folder, 'held'), join(folder, 'go')];
  const script = `
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    const { ${name} } = fs.promises;
    fs.promises.${name} = async (...args) => {
      if (${path.toString()}.test(args.filter((arg) => typeof arg === 'string').at(-1))) {
        fs.writeFileSync(${JSON.stringify(held)}, '');
        while (!fs.existsSync(${JSON.stringify(go)})) await new Promise((resolve) => setTimeout(resolve, 10));
      }
      return ${name}(...args);
    };
    syncBuiltinESMExports();`;
  return { env: preload(folder, script), held, go };
}

describe('SIGUSR2', () => {
  it.each([
    ['converts', 'rm', /\.csv$/, 'working', 'convert'],
    ['commits', 'rename', /\.parquet$/, 'working', 'commit'],
    ['writes its record', 'rename', /\/runs\//, 'ending', undefined],
  ] as const)('while a run %s', async (_, name, path, phase, stage) => {
    const { env, held, go } = holding(name, path);
    const running = spawned(scene, TWO, { env });
    while (!existsSync(held)) await new Promise((again) => setTimeout(again, 10));
    const { runs } = readDump(await running.dump());
    expect(runs).toMatchObject([{ phase }]);
    const { workInProgress } = runs[0] as { workInProgress: { stage: string }[] };
    expect(workInProgress.map((work) => work.stage)).toEqual(
      stage === undefined ? [] : (expect.arrayContaining(['partition', 'write', stage]) as unknown),
    );
    writeFileSync(go, '');
    expectWell(await running.ended);
  });

  it('does not end a verb without dumps', async () => {
    const listed = cryptodl(['list', 'symbols', '--archive-url', scene.archive.url], {
      onSpawn: (child) => {
        scene.answer(isListing, (request, response) => {
          scene.archive.fault = undefined;
          for (let time = 0; time < 3; time += 1) child.kill('SIGUSR2');
          setTimeout(() => {
            scene.archive.serve(request, response);
          }, 100);
        });
      },
    });
    expect(await listed).toMatchObject({ code: 0, stdout: expect.stringContaining('ETHUSDT') as string });
  });

  it('does not end a run, also not while the process ends', async () => {
    const range = '--interval 1h --from 2026-11-18 --to 2026-11-20'.split(' ');
    for (let time = 0; time < 5; time += 1) {
      let storm: NodeJS.Timeout | undefined;
      const run = await cryptodl(
        ['vision', '--symbols', 'BTCUSDT', ...range, '--archive-url', scene.archive.url].concat([
          '--out',
          scene.newFolder(),
        ]),
        {
          onSpawn: (child) => {
            child.stderr?.once('data', () => {
              storm = setInterval(() => child.kill('SIGUSR2'), 3);
            });
          },
        },
      );
      clearInterval(storm);
      expect([run.code, run.signal]).toEqual([0, null]);
    }
  });
});
