import { describe, expect } from 'vitest';
import { expectIntact, fault, faultScene, socketOf, VICTIM } from '../helpers/faults.js';

describe('N: the network and HTTP', () => {
  const scene = faultScene();

  fault(
    { id: 'N2', fault: 'reset before the headers', outcome: 'asked again, ok', exit: 0 },
    async (exit) => {
      scene.onPath(VICTIM, (_request, response, time) => {
        if (time > 1) return false;
        socketOf(response).resetAndDestroy();
        return true;
      });
      const run = await scene.run();
      expect(run.code).toBe(exit);
      expect(run.requestsOf(VICTIM)).toBe(2);
      await expectIntact(scene, run);
    },
  );

  fault(
    { id: 'N20', fault: '401', outcome: 'failed at once with http-refused, never asked again', exit: 4 },
    async (exit) => {
      scene.onPath(VICTIM, (_request, response) => {
        response.writeHead(401).end();
        return true;
      });
      const run = await scene.run();
      expect(run.code).toBe(exit);
      expect(run.requestsOf(VICTIM)).toBe(1);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9, failed: 1 }, failed: { 'http-refused': 1 } });
      await expectIntact(scene, run, 'victim');
    },
  );
});
