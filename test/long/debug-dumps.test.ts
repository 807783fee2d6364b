/** SIGUSR2 in each phase of a run, many signals, CPU profiles and heap snapshots, through the real program. */
import type { ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { lineOf, readDump, spawned, standAt } from '../helpers/debug-dumps.js';
import { preload } from '../helpers/preload.js';
import { isListing, isZip, useScene } from '../helpers/scene.js';
import type { SceneRun } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --days 3 --json',
});
const TWO = '--symbols BTCUSDT,ETHUSDT';

const debugFiles = (lake: string): string[] =>
  readdirSync(join(lake, '.cryptodl')).filter((name) => name.startsWith('debug-'));

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

async function appears(path: string): Promise<void> {
  while (!existsSync(path)) await new Promise((again) => setTimeout(again, 10));
}

describe('SIGUSR2', () => {
  it.each([
    ['selecting', isListing],
    ['planning', (path: string) => isListing(path) && decodeURIComponent(path).includes('/ETHUSDT/')],
  ] as const)('while a run is %s', async (phase, isMeant) => {
    const standing = await standAt(scene, isMeant, TWO);
    const { runs } = readDump(await standing.dump());
    expect(runs).toMatchObject([{ phase }]);
    const { workInProgress } = runs[0] as { workInProgress: { stage: string; name: string }[] };
    expect(workInProgress.some(({ stage, name }) => stage === 'request' && isMeant(name))).toBe(true);
    expect(runs[0]?.['queue']).toBeUndefined();
    standing.release();
    expectWell(await standing.ended);
  });

  it.each([
    ['converts', 'rm', /\.csv$/, 'working', 'convert'],
    ['commits', 'rename', /\.parquet$/, 'working', 'commit'],
    ['writes its record', 'rename', /\/runs\//, 'ending', undefined],
  ] as const)('while a run %s', async (_, name, path, phase, stage) => {
    const { env, held, go } = holding(name, path);
    const running = spawned(scene, TWO, { env });
    await appears(held);
    const { runs } = readDump(await running.dump());
    expect(runs).toMatchObject([{ phase }]);
    const { workInProgress } = runs[0] as { workInProgress: { stage: string }[] };
    expect(workInProgress.map((work) => work.stage)).toEqual(
      stage === undefined ? [] : (expect.arrayContaining(['partition', 'write', stage]) as unknown),
    );
    writeFileSync(go, '');
    expectWell(await running.ended);
  });

  it('while a run waits for --jitter', async () => {
    const waiting = spawned(scene, `${TWO} --jitter 1h`);
    await lineOf(waiting.said, /--jitter/);
    expect(readDump(await waiting.dump()).runs).toMatchObject([{ phase: 'waiting-for-jitter' }]);
    waiting.child.kill('SIGTERM');
    expect((await waiting.ended).code).toBe(143);
  });

  it('while a run waits for the lock of its lake, also by the holder of the lock', async () => {
    const holder = await standAt(scene, isZip, TWO, { lake: 'shared', most: 6 });
    const waiting = spawned(scene, `${TWO} --wait-lock 60s`, { lake: 'shared' });
    await lineOf(waiting.said, /--wait-lock/);
    const path = await waiting.dump();
    expect(readDump(path).runs).toMatchObject([
      { phase: 'opening-lake', waitingFor: expect.stringContaining('--wait-lock') as string },
    ]);
    expect(readDump(await holder.dump()).runs).toMatchObject([{ phase: 'working' }]);
    holder.release();
    const { lake, ...first } = await holder.ended;
    expectWell({ lake, ...first });
    expect((await waiting.ended).summary['outcomes']).toMatchObject({ skipped: 6 });
    expect(debugFiles(lake)).toHaveLength(2);
    expect(existsSync(path)).toBe(true);
  });

  it('fifty times in a row writes one dump and one CPU profile, which ends with the run', async () => {
    const standing = await standAt(scene, isZip, TWO, { most: 6 });
    await standing.dump();
    for (let time = 0; time < 50; time += 1) {
      standing.child.kill('SIGUSR2');
      await new Promise((next) => setTimeout(next, 5));
    }
    await lineOf(standing.said, /recording a CPU profile/);
    await lineOf(standing.said, /SIGUSR2 is ignored/);
    standing.release();
    const run = await standing.ended;
    expectWell(run);
    expect(run.stderr.match(/SIGUSR2 is ignored/g)).toHaveLength(1);
    const files = debugFiles(run.lake).sort();
    expect(files.map((name) => name.replace(/^.*\./, ''))).toEqual(['cpuprofile', 'json']);
    const [profile = ''] = files;
    const { nodes, samples, timeDeltas, startTime, endTime } = JSON.parse(
      readFileSync(join(run.lake, '.cryptodl', profile), 'utf8'),
    ) as Record<'nodes' | 'samples' | 'timeDeltas', unknown[]> & Record<'startTime' | 'endTime', number>;
    expect(nodes.length).toBeGreaterThan(1);
    expect(samples).toHaveLength(timeDeltas.length);
    expect(endTime).toBeGreaterThan(startTime);
    // In microseconds: the whole profile would have ten seconds.
    expect(endTime - startTime).toBeLessThan(9e6);
  });

  it('makes a second dump after a profile, with the growth of the heap', async () => {
    const standing = await standAt(scene, isZip, TWO, { most: 6 });
    const first = await standing.dump();
    await standing.dump(/recording a CPU profile/);
    const profile = await lineOf(standing.said, /^CPU profile: (.*)$/m);
    expect(profile).toBe(first.replace('.json', '.cpuprofile'));
    const { heapGrowthBytes } = readDump(await standing.dump());
    expect(Object.keys(heapGrowthBytes ?? {})).toContain('old_space');
    standing.release();
    expectWell(await standing.ended);
  });

  it('writes a heap snapshot that only its owner may read', async () => {
    const standing = await standAt(scene, isZip, `${TWO} --heap-snapshot-on-signal`, { most: 6 });
    const path = await standing.dump(/^heap snapshot: (.*) \(it may hold secrets\)$/m);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const { snapshot, nodes } = JSON.parse(readFileSync(path, 'utf8')) as {
      snapshot: { node_count: number; meta: { node_fields: string[] } };
      nodes: number[];
    };
    expect(nodes).toHaveLength(snapshot.node_count * snapshot.meta.node_fields.length);
    standing.release();
    expectWell(await standing.ended);
  });

  it('writes beside the file of --debug-dump, and into a lake that is a link', async () => {
    const folder = scene.newFolder();
    const file = join(folder, 'end.json');
    const beside = await standAt(scene, isZip, `${TWO} --debug-dump ${file}`, { most: 6 });
    const path = await beside.dump();
    expect(path).toMatch(/\/end-\d{8}T\d{9}Z-\d+\.json$/);
    beside.release();
    expectWell(await beside.ended);
    expect(readDump(path).runs).toMatchObject([{ phase: 'working' }]);
    expect(readDump(file).runs).toMatchObject([{ phase: 'ended' }]);
    mkdirSync(join(folder, 'real'));
    symlinkSync(join(folder, 'real'), join(scene.scratch, 'linked'));
    const linked = await standAt(scene, isZip, TWO, { lake: 'linked', most: 6 });
    expect(readDump(await linked.dump()).runs).toHaveLength(1);
    linked.release();
    expectWell(await linked.ended);
    expect(debugFiles(join(folder, 'real'))).toHaveLength(1);
  });

  it('warns where the dump cannot be written, and the run goes on', async () => {
    const standing = await standAt(scene, isListing, `${TWO} --dry-run`);
    await standing.dump(/^warning: the debug dump cannot be written: .*dry run/m);
    standing.release();
    expect((await standing.ended).code).toBe(0);
    const folder = join(scene.newFolder(), 'gone');
    mkdirSync(folder);
    const other = await standAt(scene, isZip, `${TWO} --debug-dump ${join(folder, 'end.json')}`, { most: 6 });
    rmSync(folder, { recursive: true });
    await other.dump(/^warning: the debug dump cannot be written: .*$/m);
    other.release();
    expect((await other.ended).code).toBe(0);
  });

  it('does not end a verb without dumps', async () => {
    const held: (() => void)[] = [];
    const arrived = new Promise<void>((stands) => {
      scene.answer(isListing, (request, response) => {
        held.push(() => {
          scene.archive.serve(request, response);
        });
        stands();
      });
    });
    let child: ChildProcess | undefined;
    const listed = cryptodl(['list', 'symbols', '--archive-url', scene.archive.url], {
      onSpawn: (started) => (child = started),
    });
    await arrived;
    for (let time = 0; time < 3; time += 1) child?.kill('SIGUSR2');
    scene.archive.fault = undefined;
    for (const serve of held) serve();
    expect(await listed).toMatchObject({
      code: 0,
      stderr: '2 symbols\n',
      stdout: expect.stringContaining('ETHUSDT') as string,
    });
  });

  it('does not end a run, also not while the process ends', async () => {
    for (let time = 0; time < 5; time += 1) {
      let storm: NodeJS.Timeout | undefined;
      const run = await cryptodl(
        [
          'vision',
          '--symbols',
          'BTCUSDT',
          '--interval',
          '1h',
          '--from',
          '2026-11-18',
          '--to',
          '2026-11-20',
        ].concat(['--archive-url', scene.archive.url, '--out', scene.newFolder()]),
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
