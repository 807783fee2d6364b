/** N2 to N15, N34: answers that are cut, late or no HTTP. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { describe, expect } from 'vitest';
import {
  expectIntact,
  expectRetried,
  fault,
  faultScene,
  headOf,
  sayRaw,
  socketOf,
  trickle,
  VICTIM,
} from '../helpers/faults.js';

interface Lie {
  readonly id: string;
  readonly fault: string;
  /** What the attempt fails with. */
  readonly code: string;
  readonly flags?: readonly string[];
  readonly tell: (response: ServerResponse, object: Buffer) => void;
}

const half = (object: Buffer): Buffer => object.subarray(0, object.length / 2);
const said = (head: string, ...bytes: readonly Buffer[]): Buffer =>
  Buffer.concat([Buffer.from(head), ...bytes]);
const sized = (object: Buffer, difference = 0): string =>
  headOf(`Content-Length: ${object.length + difference}`);

const CUT: readonly Lie[] = [
  {
    id: 'N2',
    fault: 'reset before the headers',
    code: 'connection-lost',
    tell: (response) => socketOf(response).resetAndDestroy(),
  },
  {
    id: 'N3',
    fault: 'end of the connection before the headers',
    code: 'connection-lost',
    tell: (response) => socketOf(response).end(),
  },
  {
    id: 'N4',
    fault: 'reset within a small body',
    code: 'connection-lost',
    tell: (response, object) => {
      sayRaw(response, said(sized(object), half(object)), 'reset');
    },
  },
  {
    id: 'N5',
    fault: 'end of the connection within a body of known length',
    code: 'connection-lost',
    tell: (response, object) => {
      sayRaw(response, said(sized(object), half(object)), 'end');
    },
  },
  {
    id: 'N6',
    fault: 'chunks without the last one',
    code: 'connection-lost',
    tell: (response, object) => {
      const chunk = `${object.length.toString(16)}\r\n`;
      sayRaw(
        response,
        said(`${headOf('Transfer-Encoding: chunked')}${chunk}`, object, Buffer.from('\r\n')),
        'end',
      );
    },
  },
  {
    id: 'N8',
    fault: 'a length that is less than the object',
    code: 'zip-truncated',
    tell: (response, object) => {
      sayRaw(response, said(sized(object, -5000), object));
    },
  },
  {
    id: 'N9',
    fault: 'a length that is more than the object, and the end of the connection',
    code: 'connection-lost',
    tell: (response, object) => {
      sayRaw(response, said(sized(object, 1000), object), 'end');
    },
  },
  {
    id: 'N10',
    fault: 'a negative length',
    code: 'http-protocol',
    tell: (response, object) => {
      sayRaw(response, said(headOf('Content-Length: -1'), object));
    },
  },
  {
    id: 'N10',
    fault: 'two lengths',
    code: 'length-mismatch',
    tell: (response, object) => {
      sayRaw(response, said(headOf(`Content-Length: ${object.length}`, 'Content-Length: 4'), object));
    },
  },
  {
    id: 'N10',
    fault: 'a length and chunks',
    code: 'length-mismatch',
    tell: (response, object) => {
      sayRaw(
        response,
        said(
          headOf(`Content-Length: ${object.length}`, 'Transfer-Encoding: chunked'),
          Buffer.from('0\r\n\r\n'),
        ),
      );
    },
  },
  {
    id: 'N11',
    fault: 'a body that trickles, a byte every 50 ms',
    // The floor of 1 KiB/s needs its 30 s, which no flag shortens: test/unit/http/timeout.test.ts has it on a virtual clock.
    code: 'total-timeout',
    flags: ['--total-timeout', '1500ms'],
    tell: (response, object) => {
      sayRaw(response, sized(object));
      trickle(response, object, 50);
    },
  },
  {
    id: 'N12',
    fault: 'headers that trickle, a byte every 20 ms',
    code: 'headers-timeout',
    flags: ['--headers-timeout', '1500ms'],
    tell: (response, object) => {
      trickle(
        response,
        Buffer.from(headOf(`X-Slow: ${'x'.repeat(1000)}`, `Content-Length: ${object.length}`)),
        20,
      );
    },
  },
  {
    id: 'N13',
    fault: 'a body that stops',
    code: 'idle-timeout',
    flags: ['--idle-timeout', '1s'],
    tell: (response, object) => {
      sayRaw(response, said(sized(object), half(object)));
    },
  },
  {
    id: 'N15',
    fault: 'a header of 100 KB',
    code: 'http-protocol',
    tell: (response, object) => {
      sayRaw(
        response,
        said(headOf(`X-Long: ${'x'.repeat(100_000)}`, `Content-Length: ${object.length}`), object),
      );
    },
  },
];

describe('N: what arrives on the wire', () => {
  const scene = faultScene();

  for (const lie of CUT) {
    fault(
      { id: lie.id, fault: `${lie.fault}, once`, outcome: `${lie.code}, requested again, ok`, exit: 0 },
      async (exit) => {
        scene.once(VICTIM, (response) => {
          lie.tell(response, scene.bytesOf(VICTIM));
        });
        const run = await scene.runTo(exit, lie.flags);
        expect(run.requestsOf(VICTIM)).toBe(2);
        expect(run.causesOf(VICTIM)).toEqual([lie.code]);
        expect(run.summary).toMatchObject({ outcomes: { ok: 10, failed: 0 }, retries: 1 });
        await expectIntact(scene, run);
      },
    );
  }

  fault(
    {
      id: 'N7',
      fault: 'a body without a length, cut by the end of the connection, once',
      outcome: 'noticed by the digest, requested again bypassing caches, ok',
      exit: 0,
    },
    async (exit) => {
      const caches: (string | undefined)[] = [];
      scene.onPath(VICTIM, (request, response, time) => {
        caches.push(request.headers['cache-control']);
        if (time > 1) return false;
        sayRaw(response, said(headOf('Connection: close'), half(scene.bytesOf(VICTIM))), 'end');
        return true;
      });
      const run = await scene.runTo(exit);
      expect(caches).toEqual([undefined, 'no-cache']);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N7',
      fault: 'a body without a length that never ends, for an object whose size is listed',
      outcome: 'ended a little beyond the listed size, failed with length-mismatch; retry completes it',
      exit: 3,
    },
    async (exit) => {
      const sent: number[] = [];
      scene.onPath(VICTIM, (_request, response) => {
        const socket = socketOf(response);
        socket.write(headOf('Connection: close'));
        const more = (): void => {
          while (!socket.destroyed && socket.bytesWritten < 64e6)
            if (!socket.write(Buffer.alloc(65_536, 'PK\u0003\u0004'))) {
              socket.once('drain', more);
              return;
            }
        };
        more();
        socket.on('close', () => sent.push(socket.bytesWritten));
        return true;
      });
      const run = await scene.runTo(exit);
      expect(Math.max(...sent)).toBeLessThan(32e6);
      const listed = scene.bytesOf(VICTIM).length;
      const bound = 2 * listed + 1024 * 1024;
      expect(run.stderr).toContain(`sent more than ${bound} bytes, the listing says ${listed}`);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9, failed: 1 }, failed: { 'length-mismatch': 1 } });
      await expectIntact(scene, run, 'victim');
      await expectRetried(scene, run);
    },
  );

  fault(
    {
      id: 'N8',
      fault: 'bytes after a body that look like the next answer',
      outcome: 'no request receives them: all objects are the published ones',
      exit: 0,
    },
    async (exit) => {
      const other = scene.bytesOf(VICTIM.replace('10-03', '10-04'));
      scene.once(VICTIM, (response) => {
        const object = scene.bytesOf(VICTIM);
        sayRaw(response, said(sized(object), object, Buffer.from(sized(other)), other));
      });
      const run = await scene.runTo(exit, ['--concurrency', '1']);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N15',
      fault: 'an answer that is not HTTP, always',
      outcome: 'three attempts in each of four rounds, failed with http-protocol; retry completes it',
      exit: 3,
    },
    async (exit) => {
      scene.onPath(VICTIM, (_request, response) => {
        sayRaw(response, 'SSH-2.0-OpenSSH_9.2\r\n');
        return true;
      });
      const run = await scene.runTo(exit);
      expect(run.requestsOf(VICTIM)).toBe(12);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9, failed: 1 }, failed: { 'http-protocol': 1 } });
      await expectIntact(scene, run, 'victim');
      expect((await expectRetried(scene, run)).requestsOf(VICTIM)).toBe(1);
    },
  );

  fault(
    {
      id: 'N14',
      fault: 'bodies that --bwlimit slows down for longer than --idle-timeout, one of which then stops',
      outcome: 'only the one that stopped is requested again, ok',
      exit: 0,
    },
    async (exit) => {
      scene.once(VICTIM, (response) => {
        const object = scene.bytesOf(VICTIM);
        sayRaw(response, said(sized(object), half(object)));
      });
      const run = await scene.runTo(exit, ['--bwlimit', '40KB', '--idle-timeout', '1s']);
      expect(run.summary).toMatchObject({ retries: 1, network: { errors: { 'idle-timeout': 1 } } });
      expect(run.requestsOf(VICTIM)).toBe(2);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N34',
      fault: 'a server that ends each connection when it is idle, and resets four that are used again',
      outcome: 'requested again on new connections, ok',
      exit: 0,
    },
    async (exit) => {
      const used = new Set<Socket>();
      let resets = 0;
      scene.archive().fault = (_path, _request, response) => {
        const socket = socketOf(response);
        const isReset = used.has(socket) && resets < 4;
        used.add(socket);
        if (isReset) {
          resets += 1;
          socket.resetAndDestroy();
        } else if (resets === 4) response.once('finish', () => socket.end());
        return isReset;
      };
      const run = await scene.run(['--concurrency', '2']);
      expect([run.code, resets]).toEqual([exit, 4]);
      expect(run.summary).toMatchObject({ outcomes: { ok: 10, failed: 0 } });
      await expectIntact(scene, run);
    },
  );
});
