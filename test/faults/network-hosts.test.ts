/** N1, N29, N30: hosts that are not there, and hosts whose names no name server knows. */
import { describe, expect } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { expectIntact, fault, faultScene } from '../helpers/faults.js';
import type { FaultRun } from '../helpers/faults.js';
import { closedPort } from '../helpers/wire-server.js';

describe('N: hosts that are not there', () => {
  const scene = faultScene();

  const archiveAt = (url: string): string[] => ['--archive-url', url, '--listing-url', scene.archive().url];
  const codesOf = (run: FaultRun): string[] => Object.keys(run.summary['failed'] ?? {});

  fault(
    {
      id: 'N1',
      fault: 'connection refused by the archive, not by the listing',
      outcome: 'tasks wait for the breaker and stay undone after --max-wait; retry completes them',
      exit: 7,
    },
    async (exit) => {
      const port = await closedPort();
      const waits = ['--breaker-open', '300ms', '--max-wait', '1s'];
      const run = await scene.runTo(exit, [...archiveAt(`http://127.0.0.1:${port}`), ...waits]);
      expect(run.summary).toMatchObject({ outcomes: { ok: 0, failed: 10 } });
      expect(codesOf(run)).toContain('wait-too-long');
      expect(['connect-failed', 'wait-too-long']).toEqual(expect.arrayContaining(codesOf(run)));
      const opened = run.events.filter(({ event, state }) => event === 'breaker' && state === 'open').length;
      // All at once at first; then three each time that the breaker lets somebody through.
      expect(run.summary).toHaveProperty('network.errors.connect-failed');
      expect(
        Number((run.summary['network'] as { errors: Record<string, number> }).errors['connect-failed']),
      ).toBeLessThanOrEqual(20 + 3 * opened);
      const again = await scene.retry(run, archiveAt(scene.archive().url));
      expect(again.code).toBe(0);
      await expectIntact(scene, again);
    },
  );

  fault(
    {
      id: 'N1',
      fault: 'connection refused by the archive until the breaker has opened',
      outcome: 'the run continues when the archive is back, ok',
      exit: 0,
    },
    async (exit) => {
      const port = await closedPort();
      let late: Promise<TestArchive> | undefined;
      const run = await scene.runTo(exit, archiveAt(`http://127.0.0.1:${port}`), {
        onSpawn: (child) =>
          child.stdout?.on('data', (text: Buffer) => {
            if (text.includes('"state":"open"')) late ??= startArchive(scene.folder, { port });
          }),
      });
      const archive = await late;
      await archive?.close();
      expect(new Set(archive?.requests).size).toBe(20);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10, failed: 0 } });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N1',
      fault: 'connection refused by every host',
      outcome: 'the run ends at once with unreachable, without a wait',
      exit: 1,
    },
    async (exit) => {
      const url = `http://127.0.0.1:${await closedPort()}`;
      const run = await scene.runTo(exit, ['--archive-url', url, '--max-wait', '1h', '--breaker-open', '1h']);
      expect(run.stderr).toMatch(/^cryptodl: .*cannot be reached/m);
      expect(run.stderr).toContain('check the network');
    },
  );

  fault(
    {
      id: 'N29',
      fault: 'no such host (ENOTFOUND) for the archive, while the listing answers',
      outcome:
        'the run ends with unreachable and the name of the host after a few attempts, without ten failed tasks',
      exit: 1,
    },
    async (exit) => {
      const waits = ['--max-wait', '1h', '--breaker-open', '1h'];
      const run = await scene.runTo(exit, [...archiveAt('http://no-such-host.invalid'), ...waits]);
      expect(run.stderr).toContain('there is no host no-such-host.invalid');
      expect(run.stderr).toContain('--archive-url');
      expect(run.summary).toMatchObject({ outcomes: { ok: 0, failed: 0 }, undone: 10 });
      const again = await scene.runTo(0, [], { out: run.out });
      await expectIntact(scene, again);
    },
  );

  /** The system's resolver for the run, in place of Node's: `act` is the body of a function of (name, time, tell). */
  function resolver(act: string): Readonly<Record<string, string>> {
    const script = `
      import dns from 'node:dns';
      import { syncBuiltinESMExports } from 'node:module';
      const real = dns.lookup;
      let time = 0;
      dns.lookup = (name, options, tell) => {
        if (name !== 'archive.test') return real(name, options, tell);
        time += 1;
        ${act}
      };
      syncBuiltinESMExports();`;
    return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` };
  }
  const named = (): string[] => archiveAt(scene.archive().url.replace('127.0.0.1', 'archive.test'));
  const HERE = "{ address: '127.0.0.1', family: 4 }";
  const refuse = (code: string): string =>
    `tell(Object.assign(new Error('lookup ${code}'), { code: '${code}' }))`;

  fault(
    { id: 'N30', fault: 'EAI_AGAIN from the resolver, three times', outcome: 'requested again, ok', exit: 0 },
    async (exit) => {
      const env = resolver(`time <= 3 ? ${refuse('EAI_AGAIN')} : tell(null, [${HERE}])`);
      const run = await scene.runTo(exit, named(), { env });
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 } });
      expect(run.summary).toHaveProperty('network.errors.dns-failed');
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N30',
      fault: 'a resolver that does not answer the first time',
      outcome: 'ended by --connect-timeout, requested again, ok',
      exit: 0,
    },
    async (exit) => {
      const env = resolver(`if (time > 1) tell(null, [${HERE}])`);
      const run = await scene.runTo(exit, [...named(), '--connect-timeout', '1s'], { env });
      expect(run.summary).toHaveProperty('network.errors.connect-timeout');
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N30',
      fault: 'a first address (IPv6) that cannot be reached',
      outcome: 'the next address is taken, nothing is requested again, ok',
      exit: 0,
    },
    async (exit) => {
      const env = resolver(`tell(null, [{ address: '100::1', family: 6 }, ${HERE}])`);
      const run = await scene.runTo(exit, named(), { env });
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, retries: 0 });
      await expectIntact(scene, run);
    },
  );
});
