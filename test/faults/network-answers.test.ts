/** N16, N18 to N26: answers that are HTTP but not the object. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { expectIntact, expectRetried, fault, faultScene, VICTIM } from '../helpers/faults.js';
import { filesBelow } from '../helpers/lake.js';

const PAGE = '<!DOCTYPE html><html><head><title>Request blocked</title></head><body>no</body></html>';
const DENIED =
  '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>';
const SIDECAR = `${VICTIM}.CHECKSUM`;
const ROUNDS = 'three attempts in each of four rounds';

describe('N: answers that are not the object', () => {
  const scene = faultScene();
  /** A second host with the same objects. */
  let other: TestArchive;
  beforeAll(async () => {
    other = await startArchive(scene.folder);
  });
  afterAll(() => other.close());

  fault(
    {
      id: 'N16',
      fault: '200 with an HTML page instead of the zip, always',
      outcome: `${ROUNDS}, failed with not-a-zip, the page in the quarantine and its beginning in the report; retry completes it`,
      exit: 3,
    },
    async (exit) => {
      scene.answer(VICTIM, 200, { 'content-type': 'text/html' }, PAGE);
      const run = await scene.runTo(exit);
      expect(run.requestsOf(VICTIM)).toBe(12);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9, failed: 1 }, failed: { 'not-a-zip': 1 } });
      expect(readFileSync(String(run.summary['failures']), 'utf8')).toContain('<!DOCTYPE html>');
      const quarantine = join(run.out, '_quarantine');
      const kept = filesBelow(quarantine).map((path) => readFileSync(join(quarantine, path), 'utf8'));
      expect(kept).toContain(PAGE);
      await expectIntact(scene, run, 'victim');
      await expectRetried(scene, run);
    },
  );

  fault(
    {
      id: 'N16',
      fault: '200 with a JSON document instead of the zip, once',
      outcome: 'requested again bypassing caches, ok',
      exit: 0,
    },
    async (exit) => {
      const caches: (string | undefined)[] = [];
      scene.onPath(VICTIM, (request, response, time) => {
        caches.push(request.headers['cache-control']);
        if (time === 1) response.writeHead(200).end('{"code":-1000}');
        return time === 1;
      });
      const run = await scene.runTo(exit);
      expect(run.causesOf(VICTIM)).toEqual(['not-a-zip']);
      expect(caches).toEqual([undefined, 'no-cache']);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N18',
      fault: 'Content-Encoding gzip, which was not requested, always',
      outcome: `${ROUNDS}, failed with body-encoded; retry completes it`,
      exit: 3,
    },
    async (exit) => {
      const accepted = new Set<unknown>();
      scene.onPath(VICTIM, (request, response) => {
        accepted.add(request.headers['accept-encoding']);
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(scene.bytesOf(VICTIM));
        return true;
      });
      const run = await scene.runTo(exit);
      expect([...accepted]).toEqual(['identity']);
      expect(run.requestsOf(VICTIM)).toBe(12);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9 }, failed: { 'body-encoded': 1 } });
      await expectIntact(scene, run, 'victim');
      await expectRetried(scene, run);
    },
  );

  const moveTo = (location: string): void => {
    scene.answer(VICTIM, 302, { location });
  };

  fault(
    { id: 'N19', fault: '302 to another path of the same host', outcome: 'followed, ok', exit: 0 },
    async (exit) => {
      moveTo(`/data.binance.vision/${VICTIM}`);
      const run = await scene.runTo(exit);
      expect([run.requestsOf(VICTIM), run.requestsOf(`data.binance.vision/${VICTIM}`)]).toEqual([1, 1]);
      expect(run.summary).toMatchObject({ retries: 0 });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N19',
      fault: '302 to another host that the run knows (the listing)',
      outcome: 'followed, ok',
      exit: 0,
    },
    async (exit) => {
      moveTo(`${other.url}/${VICTIM}`);
      const run = await scene.runTo(exit, ['--listing-url', other.url]);
      expect(run.requestsOf(VICTIM)).toBe(1);
      expect(other.objectRequests()).toEqual([`/${VICTIM}`]);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N19',
      fault: '302 to a host that the run does not know',
      outcome: 'failed at once with redirect-refused, and no request goes to the other host',
      exit: 4,
    },
    async (exit) => {
      other.requests.length = 0;
      moveTo(`${other.url}/${VICTIM}`);
      const run = await scene.runTo(exit);
      expect(run.requestsOf(VICTIM)).toBe(1);
      expect(other.requests).toEqual([]);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9 }, failed: { 'redirect-refused': 1 } });
      await expectIntact(scene, run, 'victim');
    },
  );

  fault(
    {
      id: 'N19',
      fault: '302 to itself',
      outcome: 'followed three times, then failed with redirect-refused',
      exit: 4,
    },
    async (exit) => {
      moveTo(`/${VICTIM}`);
      const run = await scene.runTo(exit);
      expect(run.requestsOf(VICTIM)).toBe(4);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9 }, failed: { 'redirect-refused': 1 } });
      await expectIntact(scene, run, 'victim');
    },
  );

  const REFUSALS: readonly [status: number, body: string, what: string, code: string][] = [
    [400, DENIED, '400', 'http-refused'],
    [401, '', '401', 'http-refused'],
    [403, DENIED, "403 with S3's document", 'http-forbidden'],
  ];
  for (const [status, body, what, code] of REFUSALS) {
    fault(
      { id: 'N20', fault: what, outcome: `failed at once with ${code}, never requested again`, exit: 4 },
      async (exit) => {
        scene.answer(VICTIM, status, {}, body);
        const run = await scene.runTo(exit);
        expect(run.requestsOf(VICTIM)).toBe(1);
        expect(run.summary).toMatchObject({ outcomes: { ok: 9, failed: 1 }, failed: { [code]: 1 } });
        await expectIntact(scene, run, 'victim');
      },
    );
  }

  fault(
    {
      id: 'N21',
      fault: '404 of an object that is listed',
      outcome: 'absent (a hole), never requested again; the next run has it',
      exit: 0,
    },
    async (exit) => {
      scene.answer(VICTIM, 404);
      const run = await scene.runTo(exit);
      expect(run.requestsOf(VICTIM)).toBe(1);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9, absent: 1, failed: 0 }, absent: { hole: 1 } });
      await expectIntact(scene, run, 'victim');
      scene.archive().fault = undefined;
      const next = await scene.run([], { out: run.out });
      expect(next.summary).toMatchObject({ outcomes: { ok: 1, skipped: 9 } });
      await expectIntact(scene, next);
    },
  );

  fault(
    {
      id: 'N22',
      fault: '404 of the sidecar only',
      outcome: 'verified by the MD5 of the listing, ok',
      exit: 0,
    },
    async (exit) => {
      scene.answer(SIDECAR, 404);
      const run = await scene.runTo(exit);
      expect([run.requestsOf(VICTIM), run.requestsOf(SIDECAR)]).toEqual([1, 1]);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10 }, unverified: 0 });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N23',
      fault: '408, 500, 502, 503 and 504, one after the other',
      outcome: 'requested again after each, in the next round too, ok',
      exit: 0,
    },
    async (exit) => {
      const statuses = [408, 500, 502, 503, 504];
      scene.onPath(VICTIM, (_request, response, time) => {
        const status = statuses[time - 1];
        if (status !== undefined) response.writeHead(status).end('busy');
        return status !== undefined;
      });
      const run = await scene.runTo(exit);
      expect(run.requestsOf(VICTIM)).toBe(6);
      expect(run.summary).toMatchObject({ network: { errors: { 'http-server-error': 5 } } });
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N23',
      fault: '503, always',
      outcome: `${ROUNDS}, failed with http-server-error; retry completes it`,
      exit: 3,
    },
    async (exit) => {
      scene.answer(VICTIM, 503);
      const run = await scene.runTo(exit);
      expect(run.requestsOf(VICTIM)).toBe(12);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9 }, failed: { 'http-server-error': 1 } });
      await expectIntact(scene, run, 'victim');
      expect((await expectRetried(scene, run)).requestsOf(VICTIM)).toBe(1);
    },
  );
});
