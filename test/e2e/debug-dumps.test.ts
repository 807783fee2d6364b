/** `--debug-dump` at the end of a run, and a dump on SIGUSR2 while a download stands still. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { readDump, standAt } from '../helpers/debug-dumps.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT,ETHUSDT --days 3',
});

describe('SIGUSR2 while a run downloads', () => {
  it('writes what the run does, and changes nothing of the run', async () => {
    const standing = await standAt(scene, isZip, '--ping http://127.0.0.1:1/secret-ping --json', {
      most: 6,
      env: { CRYPTODL_STATE_DIR: scene.newFolder() },
    });
    const path = await standing.dump();
    const text = readFileSync(path, 'utf8');
    expect(text).not.toContain('secret-ping');
    expect(text).toMatch(/^\{\n {2}"cryptodlDebugDump": 1,\n/);
    const { runs, pid, reason, memory, heapSpacesBytes, openFiles } = readDump(path);
    expect([pid, reason, runs.length]).toEqual([standing.child.pid, 'SIGUSR2', 1]);
    expect(runs[0]).toMatchObject({
      verb: 'vision',
      phase: 'working',
      inPhaseForMs: expect.any(Number) as number,
      options: { days: ['3'] },
      queue: { plannedObjects: 6, objectsWithoutOutcome: 6, inFlight: 6, concurrencyLimit: 30 },
      network: { concurrency: 30, pool: { busy: expect.any(Number) as number } },
      buckets: expect.arrayContaining([expect.objectContaining({ name: 'archive', waiting: 0 })]) as unknown,
      retryBudgets: { [new URL(scene.archive.url).host]: { retriesLeft: 10, waitingRetries: 0 } },
    });
    const { workInProgress } = runs[0] as { workInProgress: Record<string, unknown>[] };
    const downloads = workInProgress.filter(({ stage }) => stage === 'download');
    expect(downloads).toHaveLength(6);
    expect(downloads[0]).toMatchObject({
      name: expect.stringMatching(/^data\/futures\/um\/daily\/klines\/.*\.zip$/) as string,
      forMs: expect.any(Number) as number,
    });
    expect(workInProgress).toContainEqual(
      expect.objectContaining({ stage: 'request', name: expect.stringMatching(/\.zip$/) as string }),
    );
    expect(memory['heapUsedBytes']).toBeGreaterThan(1e6);
    expect(Object.keys(heapSpacesBytes)).toContain('old_space');
    expect(openFiles['sockets']).toBeGreaterThan(0);
    standing.release();
    const { code, lake, summary, stderr } = await standing.ended;
    expect([code, summary['outcomes']]).toMatchObject([0, { ok: 6 }]);
    expect(stderr.match(/^debug dump: /gm)).toHaveLength(1);
    expect(path).toMatch(/\/debug\/debug-\d{8}T\d{9}Z-\d+\.json$/);
    expect(existsSync(path.replace('.json', '.cpuprofile'))).toBe(true);
    expect((await cryptodl(['verify', '--out', lake])).code).toBe(0);
  });
});

describe('--debug-dump', () => {
  it('writes a dump at the end, without passwords, and replaces an earlier dump', async () => {
    const file = join(scene.newFolder(), 'debug.json');
    scene.refuse(isZip, 403, 'no');
    const proxied = await scene.vision([
      '--debug-dump',
      file,
      ...'--proxy http://user:hunter2@127.0.0.1:1 --retries 0'.split(' '),
    ]);
    expect(proxied.code).not.toBe(0);
    expect(readFileSync(file, 'utf8')).not.toContain('hunter2');
    expect(readDump(file)).toMatchObject({
      reason: 'end',
      runs: [{ phase: 'ended', exitCode: proxied.code }],
    });
    const run = await scene.vision(['--debug-dump', file]);
    expect(run.stderr).toContain('debug dump: ');
    expect(readDump(file).runs).toMatchObject([
      { phase: 'ended', queue: { objectsWithoutOutcome: 0 }, workInProgress: [] },
    ]);
  });

  it('warns of a full disk, and the run ends as without', async () => {
    const { code, stderr } = await scene.vision(['--debug-dump', '/dev/full', '--quiet']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^warning: the debug dump cannot be written: .*full/m);
    expect(statSync('/dev/full').isCharacterDevice()).toBe(true);
  });
});
