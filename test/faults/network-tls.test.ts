/** N19, N31, N32, N38: TLS that cannot be trusted or does not come, and HTTP/2. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import type { Http2ServerRequest } from 'node:http2';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeAll, describe, expect } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { ArchiveOptions, TestArchive } from '../helpers/archive.js';
import { HAS_OPENSSL, makeCertificate } from '../helpers/certificates.js';
import type { Certificate } from '../helpers/certificates.js';
import { expectIntact, fault, faultScene, VICTIM } from '../helpers/faults.js';
import type { FaultRun } from '../helpers/faults.js';
import { scratchFolder } from '../helpers/folders.js';

describe.skipIf(!HAS_OPENSSL)('N: TLS and HTTP/2 (needs openssl)', () => {
  const scene = faultScene();
  const scratch = scratchFolder();
  const closings: (() => Promise<void>)[] = [];
  let sound: Certificate;
  let strange: Certificate;
  let expired: Certificate;
  beforeAll(() => {
    sound = makeCertificate(scratch, 'sound', { names: 'IP:127.0.0.1', days: 2 });
    strange = makeCertificate(scratch, 'strange', { names: 'DNS:other.test', days: 2 });
    expired = makeCertificate(scratch, 'expired', { names: 'IP:127.0.0.1', days: -1 });
  });
  afterEach(async () => {
    for (const close of closings.splice(0)) await close();
  });

  async function secure(tls: Certificate, options: ArchiveOptions = {}): Promise<TestArchive> {
    const archive = await startArchive(scene.folder, { ...options, tls });
    closings.push(() => archive.close());
    return archive;
  }
  /** The listing stays in the clear. */
  const runAt = (url: string, ...flags: string[]): Promise<FaultRun> =>
    scene.run(['--archive-url', url, '--listing-url', scene.archive().url, ...flags]);

  const REFUSED: readonly {
    what: string;
    certificate: () => Certificate;
    trusts: boolean;
    says: RegExp;
    next: string;
  }[] = [
    {
      what: 'a self-signed certificate',
      certificate: () => sound,
      trusts: false,
      says: /self-signed/,
      next: '--ca-file',
    },
    {
      what: 'a certificate of another host',
      certificate: () => strange,
      trusts: true,
      says: /altnames/,
      next: '--ca-file',
    },
    {
      what: 'an expired certificate',
      certificate: () => expired,
      trusts: true,
      says: /expired/,
      next: 'the clock of this machine',
    },
  ];
  for (const { what, certificate, trusts, says, next } of REFUSED) {
    fault(
      {
        id: 'N31',
        fault: what,
        outcome: `the run ends at once with the reason and ${next} as the next step; no request is sent`,
        exit: 1,
      },
      async (exit) => {
        const tls = certificate();
        const archive = await secure(tls);
        const run = await runAt(archive.url, ...(trusts ? ['--ca-file', tls.file] : []));
        expect(run.code).toBe(exit);
        expect(run.stderr).toMatch(says);
        expect(run.stderr).toContain(next);
        expect(archive.requests).toEqual([]);
        expect(run.summary).toMatchObject({ outcomes: { ok: 0, failed: 0 }, undone: 10 });
        expect(run.events.filter(({ event }) => event === 'retry')).toEqual([]);
      },
    );
  }

  fault(
    { id: 'N31', fault: 'a self-signed certificate that --ca-file names', outcome: 'trusted, ok', exit: 0 },
    async (exit) => {
      const archive = await secure(sound);
      const run = await runAt(archive.url, '--ca-file', sound.file);
      expect(run.code).toBe(exit);
      expect(archive.requests).toHaveLength(20);
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N32',
      fault: 'plain HTTP on the port where TLS is expected',
      outcome: 'the run ends at once with tls-failed',
      exit: 1,
    },
    async (exit) => {
      const run = await runAt(scene.archive().url.replace('http:', 'https:'));
      expect(run.code).toBe(exit);
      expect(run.requestsOf(VICTIM)).toBe(0);
      expect(run.summary).toHaveProperty('network.errors.tls-failed');
      expect(run.summary).toMatchObject({ undone: 10 });
    },
  );

  /** In front of a server: connections that are never answered, as long as `isStalled` says so. */
  async function stalling(to: string, isStalled: (connection: number) => boolean): Promise<string> {
    const sockets = new Set<Socket>();
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      sockets.add(socket);
      socket.on('error', () => undefined);
      if (isStalled(connections)) return;
      const target = connect(Number(new URL(to).port), '127.0.0.1');
      target.on('error', () => undefined);
      sockets.add(target);
      socket.on('close', () => target.destroy());
      socket.pipe(target).pipe(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closings.push(async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    });
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  fault(
    {
      id: 'N32',
      fault: 'a handshake that stalls, on the first three connections',
      outcome: 'ended by --connect-timeout, requested again, ok',
      exit: 0,
    },
    async (exit) => {
      const archive = await secure(sound);
      const url = await stalling(archive.url, (connection) => connection <= 3);
      const run = await runAt(url, '--ca-file', sound.file, '--connect-timeout', '2s');
      expect(run.code).toBe(exit);
      expect(run.summary).toHaveProperty('network.errors.connect-timeout');
      await expectIntact(scene, run);
    },
  );

  fault(
    {
      id: 'N32',
      fault: 'a handshake that stalls, always',
      outcome: 'tasks wait for the breaker and stay undone after --max-wait; the next run completes them',
      exit: 7,
    },
    async (exit) => {
      const url = await stalling(scene.archive().url, () => true);
      const run = await runAt(url, '--connect-timeout', '300ms', '--breaker-open', '5s', '--max-wait', '1s');
      expect(run.code).toBe(exit);
      expect(run.summary).toMatchObject({ outcomes: { ok: 0, failed: 10 } });
      const next = await scene.runTo(0, [], { out: run.out });
      await expectIntact(scene, next);
    },
  );

  fault(
    {
      id: 'N19',
      fault: '302 from https to http, to a host that the run knows',
      outcome: 'failed at once with redirect-refused, no request is sent in plain text',
      exit: 4,
    },
    async (exit) => {
      const archive = await secure(sound);
      archive.fault = (path, _request, response) => {
        if (path !== `/${VICTIM}`) return false;
        response.writeHead(302, { location: `${scene.archive().url}${path}` }).end();
        return true;
      };
      const run = await runAt(archive.url, '--ca-file', sound.file);
      expect(run.code).toBe(exit);
      expect(run.requestsOf(VICTIM)).toBe(0);
      expect(run.summary).toMatchObject({ outcomes: { ok: 9 }, failed: { 'redirect-refused': 1 } });
      await expectIntact(scene, run, 'victim');
    },
  );

  type Act = (request: IncomingMessage, response: ServerResponse) => boolean;
  interface Spoken {
    readonly run: FaultRun;
    readonly archive: TestArchive;
    readonly versions: ReadonlySet<string>;
    readonly connections: number;
  }

  /** `--http2`; `act` answers the first request of the victim. */
  async function speak(options: ArchiveOptions, act: Act = () => false): Promise<Spoken> {
    const versions = new Set<string>();
    const connections = new Set<unknown>();
    const archive = await secure(sound, options);
    let isFirst = true;
    archive.fault = (path, request, response) => {
      versions.add(request.httpVersion);
      connections.add(request.httpVersion === '2.0' ? streamOf(request).session : request.socket);
      if (path !== `/${VICTIM}` || !isFirst) return false;
      isFirst = false;
      return act(request, response);
    };
    const run = await runAt(archive.url, '--ca-file', sound.file, '--http2');
    return { run, archive, versions, connections: connections.size };
  }
  const streamOf = (request: IncomingMessage): Http2ServerRequest['stream'] =>
    (request as unknown as Http2ServerRequest).stream;

  fault(
    {
      id: 'N38',
      fault: '--http2 and a host that speaks it',
      outcome: 'HTTP/2 over few connections, ok',
      exit: 0,
    },
    async (exit) => {
      const { run, archive, versions } = await speak({ http2: true });
      expect([run.code, ...versions]).toEqual([exit, '2.0']);
      expect(archive.requests).toHaveLength(20);
      await expectIntact(scene, run);
    },
  );

  fault(
    { id: 'N38', fault: '--http2 and a host that does not speak it', outcome: 'HTTP/1.1, ok', exit: 0 },
    async (exit) => {
      const { run, archive, versions } = await speak({});
      expect([run.code, ...versions]).toEqual([exit, '1.1']);
      expect(archive.requests).toHaveLength(20);
      await expectIntact(scene, run);
    },
  );

  const TROUBLES: readonly [what: string, act: Act][] = [
    [
      'a stream that is reset',
      (request) => {
        streamOf(request).close(constants.NGHTTP2_INTERNAL_ERROR);
        return true;
      },
    ],
    [
      'a stream that is refused',
      (request) => {
        streamOf(request).close(constants.NGHTTP2_REFUSED_STREAM);
        return true;
      },
    ],
    [
      'a stream that is reset within the body',
      (request, response) => {
        response.writeHead(200, { 'content-length': scene.bytesOf(VICTIM).length });
        response.write(scene.bytesOf(VICTIM).subarray(0, 5000), () => {
          streamOf(request).close(constants.NGHTTP2_INTERNAL_ERROR);
        });
        return true;
      },
    ],
    [
      'a connection that sends GOAWAY and ends',
      (request) => {
        const { session } = streamOf(request);
        session?.goaway(constants.NGHTTP2_INTERNAL_ERROR);
        session?.destroy();
        return true;
      },
    ],
  ];
  for (const [what, act] of TROUBLES) {
    fault(
      { id: 'N38', fault: `HTTP/2: ${what}`, outcome: 'connection-lost, requested again, ok', exit: 0 },
      async (exit) => {
        const { run, archive } = await speak({ http2: true }, act);
        expect(run.code).toBe(exit);
        expect(run.causesOf(VICTIM)).toContain('connection-lost');
        expect(archive.requests.filter((path) => path === `/${VICTIM}`).length).toBeGreaterThan(1);
        await expectIntact(scene, run);
      },
    );
  }
});
