/** N20, N24 to N26, N35, N36, N37: hosts that refuse, fail for a while, or change what they have. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { makeZip } from '../../scripts/make-zip.js';
import { makeCsv } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { expectIntact, fault, faultScene, headOf, sayRaw, socketOf, VICTIM } from '../helpers/faults.js';
import { manifestLines } from '../helpers/lake.js';

const PAGE = '<!DOCTYPE html><html><head><title>Request blocked</title></head><body>no</body></html>';
const SIDECAR = `${VICTIM}.CHECKSUM`;

describe('N: hosts that refuse or fail', () => {
  const scene = faultScene();
  let other: TestArchive;
  beforeAll(async () => {
    other = await startArchive(scene.folder);
  });
  afterAll(() => other.close());

  /** A firewall in front of all objects; of the listing it knows nothing. */
  function block(isUp: (time: number) => boolean): { readonly refused: () => number } {
    let time = 0;
    let refused = 0;
    scene.archive().fault = (path, _request, response) => {
      if (path.includes('prefix=')) return false;
      time += 1;
      if (!isUp(time)) return false;
      refused += 1;
      response.writeHead(403, { 'content-type': 'text/html' }).end(PAGE);
      return true;
    };
    return { refused: () => refused };
  }
  const BLOCKED = ['--blocked-wait', '300ms', '--concurrency', '1'];
  /** One object in flight is a zip and its sidecar; after the wait, at most three are let through to see. */
  const ASKED_AT_MOST = 2 + 3;

  fault(
    {
      id: 'N20',
      fault: "a firewall's page (403, HTML) for all objects, also after --blocked-wait",
      outcome:
        'requested once more after the wait, then all tasks fail with wait-too-long; the next run completes them',
      exit: 7,
    },
    async (exit) => {
      const { refused } = block(() => true);
      const run = await scene.runTo(exit, BLOCKED);
      expect(refused()).toBeGreaterThan(1);
      expect(refused()).toBeLessThanOrEqual(ASKED_AT_MOST);
      expect(run.summary).toMatchObject({ outcomes: { ok: 0, failed: 10 }, failed: { 'wait-too-long': 10 } });
      expect(run.stderr).toContain('refuses this address, also after a wait');
      scene.archive().fault = undefined;
      const next = await scene.runTo(0, [], { out: run.out });
      await expectIntact(scene, next);
    },
  );

  fault(
    {
      id: 'N20',
      fault: "a firewall's page (403, HTML) that is gone after --blocked-wait",
      outcome: 'the run continues, and no attempt is used up, ok',
      exit: 0,
    },
    async (exit) => {
      const { refused } = block((time) => time <= 2);
      const run = await scene.run([...BLOCKED, '--retries', '0']);
      expect([run.code, refused()]).toEqual([exit, 2]);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, retries: 0 });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N20',
      fault: "a firewall's page (403, HTML) at one host of two (--fallback-url)",
      outcome: 'the other host serves meanwhile, and no task waits, ok',
      exit: 0,
    },
    async (exit) => {
      const { refused } = block(() => true);
      const run = await scene.runTo(exit, [
        ...'--blocked-wait 1h --max-wait 2h --fallback-url'.split(' '),
        other.url,
        '--concurrency',
        '1',
      ]);
      expect(refused()).toBeLessThanOrEqual(2);
      expect(new Set(other.objectRequests()).size).toBe(20);
      await expectIntact(scene, run);
    },
  );

  const LIMITS: readonly [id: string, what: string, says: (response: ServerResponse) => ServerResponse][] = [
    ['N24', '429 with Retry-After 1', (response) => response.writeHead(429, { 'retry-after': '1' })],
    [
      'N25',
      '429 with a Retry-After that is past',
      (response) => response.writeHead(429, { 'retry-after': new Date(0).toUTCString() }),
    ],
    [
      'N25',
      '429 with a Retry-After that is garbage',
      (response) => response.writeHead(429, { 'retry-after': 'wait 35' }),
    ],
    ['N25', '429 with Retry-After 0', (response) => response.writeHead(429, { 'retry-after': '0' })],
    ['N26', '418 with Retry-After 1', (response) => response.writeHead(418, { 'retry-after': '1' })],
  ];
  for (const [id, what, says] of LIMITS) {
    fault(
      {
        id,
        fault: `${what}, once`,
        outcome: 'the run waits for the host and uses up no attempt, ok',
        exit: 0,
      },
      async (exit) => {
        scene.once(VICTIM, (response) => {
          says(response).end();
        });
        const run = await scene.run(['--retries', '0']);
        expect([run.code, run.requestsOf(VICTIM)]).toEqual([exit, 2]);
        expect(run.summary).toMatchObject({
          outcomes: { ok: 10 },
          retries: 0,
          network: { limiter: { refusals: 1 } },
        });
        await expectIntact(scene, run);
      },
    );
  }

  fault(
    {
      id: 'N25',
      fault: '429 with Retry-After 1000000000',
      outcome: 'not done, with wait-too-long; objects that had arrived stay',
      exit: 7,
    },
    async (exit) => {
      scene.answer(VICTIM, 429, { 'retry-after': '1000000000' });
      const run = await scene.run();
      expect([run.code, run.requestsOf(VICTIM)]).toEqual([exit, 1]);
      expect(run.summary).toMatchObject({ exitCode: 7 });
      const again = await scene.retry(run);
      expect(again.code).toBe(0);
      await expectIntact(scene, again);
    },
  );

  fault(
    {
      id: 'N35',
      fault: '503 for every object for a second, then a sound host',
      outcome: 'meanwhile only the probes of the open breaker are sent, then all objects are fetched, ok',
      exit: 0,
    },
    async (exit) => {
      let isDown: boolean | undefined;
      let asked = 0;
      scene.archive().fault = (path, _request, response) => {
        if (path.includes('prefix=')) return false;
        asked += 1;
        if (isDown === undefined) setTimeout(() => (isDown = false), 1000);
        isDown ??= true;
        if (isDown) response.writeHead(503).end();
        return isDown;
      };
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10, failed: 0 } });
      const opened = run.events.filter(({ event, state }) => event === 'breaker' && state === 'open').length;
      // All at once at first, three each time that the breaker half-opens, and each once when the host is sound.
      expect(asked).toBeLessThanOrEqual(20 + 3 * opened + 20);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N35',
      fault:
        '503 once for each of five zips, and for their sidecars after the zips arrived at the second attempt',
      outcome: 'no two retries wait for each other, ok',
      exit: 0,
    },
    async (exit) => {
      // Four zips, then one more: five failures in a row would open the breaker, and then no request holds a permit.
      const last: (() => void)[] = [];
      const sidecars: (() => void)[] = [];
      const seen = new Set<string>();
      let second = 0;
      scene.archive().fault = (path, _request, response) => {
        if (!path.includes('BTCUSDT-metrics') || path.includes('prefix=')) return false;
        const isFirst = !seen.has(path);
        seen.add(path);
        const refuse = (): void => void response.writeHead(503).end();
        const isZip = path.endsWith('.zip');
        if (isFirst && !isZip) sidecars.push(refuse);
        else if (isFirst && path.includes('10-05')) last.push(refuse);
        else if (isFirst) refuse();
        else if (isZip) second += 1;
        const held = second === 5 ? sidecars : second === 4 ? last : [];
        for (const act of held.splice(0)) setTimeout(act, 200);
        return isFirst;
      };
      const run = await scene.runTo(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, retries: 10 });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N36',
      fault: 'one request of ten fails, in three ways',
      outcome: 'each is requested again, the breaker stays closed, ok',
      exit: 0,
    },
    async (exit) => {
      const times = new Map<string, number>();
      let failed = 0;
      scene.archive().fault = (path, _request, response) => {
        if (path.includes('prefix=')) return false;
        const time = (times.get(path) ?? 0) + 1;
        times.set(path, time);
        // By name and time, so that the order of arrival does not matter.
        const draw = createHash('md5').update(`seed 9 ${path} ${time}`).digest().readUInt32BE() / 2 ** 32;
        if (draw >= 0.1) return false;
        failed += 1;
        if (draw < 0.03) socketOf(response).resetAndDestroy();
        else if (draw < 0.06) sayRaw(response, headOf('Content-Length: 10000'), 'end');
        else response.writeHead(503).end();
        return true;
      };
      const run = await scene.runTo(exit);
      expect(failed).toBe(3);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, retries: failed });
      expect(run.events.filter(({ event }) => event === 'breaker')).toEqual([]);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N37',
      fault: 'the archive replaces the object during its download',
      outcome: 'its new sidecar is requested, the new object is in the lake, ok',
      exit: 0,
    },
    async (exit) => {
      const sound = [VICTIM, SIDECAR].map((path) => ({
        file: join(scene.folder, path),
        bytes: scene.bytesOf(path),
      }));
      const [zip, sidecar] = sound;
      const { csv } = makeCsv({
        market: 'um',
        dataset: 'metrics',
        symbol: 'BTCUSDT',
        period: '2026-10-03',
        seed: 2,
      });
      const replaced = makeZip([{ name: 'BTCUSDT-metrics-2026-10-03.csv', data: csv }]);
      const digest = createHash('sha256').update(replaced).digest('hex');
      scene.once(VICTIM, (response) => {
        sayRaw(response, headOf('Content-Length: 10000'), 'end');
        writeFileSync(zip?.file ?? '', replaced);
        writeFileSync(sidecar?.file ?? '', `${digest}  BTCUSDT-metrics-2026-10-03.zip\n`);
      });
      const run = await scene.runTo(exit, ['--concurrency', '1']);
      for (const { file, bytes } of sound) writeFileSync(file, bytes);
      expect(run.requestsOf(VICTIM)).toBeLessThanOrEqual(3);
      const lines = manifestLines(join(run.out, 'binance/um/metrics/symbol=BTCUSDT'));
      expect(lines.find(({ key }) => key === VICTIM)).toMatchObject({
        sha256: digest,
        bytes: replaced.length,
      });
      // The archive has the old one again: the next run sees that it is another one.
      scene.archive().fault = undefined;
      const next = await scene.runTo(0, [], { out: run.out });
      await expectIntact(scene, next);
    },
  );
});
