/** N33: proxies that are used, down, or want to know who asks. */
import { createServer, request as ask } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { HAS_OPENSSL, makeCertificate } from '../helpers/certificates.js';
import type { Certificate } from '../helpers/certificates.js';
import { argv, cryptodl } from '../helpers/cli.js';
import { expectIntact, fault, faultScene, VICTIM } from '../helpers/faults.js';
import { scratchFolder } from '../helpers/folders.js';

const SECRET = 'pa55-w0rd';

interface Proxy {
  readonly address: string;
  /** `GET http://…` or `CONNECT host:port`, in order of arrival. */
  readonly asked: string[];
}

describe.skipIf(!HAS_OPENSSL)('N: proxies (needs openssl)', () => {
  const scene = faultScene();
  const scratch = scratchFolder();
  const closings: (() => void)[] = [];
  let certificate: Certificate;
  beforeAll(() => {
    certificate = makeCertificate(scratch, 'archive', { names: 'IP:127.0.0.1', days: 2 });
  });
  afterEach(() => {
    for (const close of closings.splice(0)) close();
  });

  /** Forwards http and tunnels https; with `wants`, only for those who give these credentials. */
  async function proxy(wants?: string): Promise<Proxy> {
    const asked: string[] = [];
    const sockets = new Set<Socket>();
    const isKnown = (given: string | undefined): boolean =>
      wants === undefined || given === `Basic ${Buffer.from(wants).toString('base64')}`;
    const server = createServer((request, response) => {
      asked.push(`${request.method ?? ''} ${request.url ?? ''}`);
      if (!isKnown(request.headers['proxy-authorization'])) {
        response.writeHead(407, { 'proxy-authenticate': 'Basic' }).end();
        return;
      }
      const { 'proxy-authorization': _, ...headers } = request.headers;
      const forwarded = ask(request.url ?? '', { headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      forwarded.on('error', () => response.destroy());
      forwarded.end();
    });
    server.on('connect', (request, socket: Socket) => {
      asked.push(`CONNECT ${request.url ?? ''}`);
      socket.on('error', () => undefined);
      if (!isKnown(request.headers['proxy-authorization'])) {
        socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n');
        return;
      }
      const target = connect(Number(request.url?.split(':')[1]), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        socket.pipe(target).pipe(socket);
      });
      sockets.add(target);
      target.on('error', () => socket.destroy());
    });
    server.on('connection', (socket: Socket) => sockets.add(socket));
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    closings.push(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
  }
  async function secure(): Promise<TestArchive> {
    const archive = await startArchive(scene.folder, { tls: certificate });
    closings.push(() => void archive.close());
    return archive;
  }
  const counted = (asked: readonly string[], word: string): number =>
    asked.filter((line) => line.startsWith(word)).length;

  const WAYS: readonly [
    what: string,
    flags: (url: string) => string[],
    env: (url: string) => Record<string, string>,
  ][] = [
    ['HTTP_PROXY', () => [], (url) => ({ HTTP_PROXY: url })],
    ['--proxy', (url) => ['--proxy', url], () => ({})],
  ];
  for (const [what, flags, env] of WAYS) {
    fault(
      {
        id: 'N33',
        fault: `a proxy for http (${what})`,
        outcome: 'all requests go through it, ok',
        exit: 0,
      },
      async (exit) => {
        const { address, asked } = await proxy();
        const run = await scene.runTo(exit, flags(`http://${address}`), { env: env(`http://${address}`) });
        expect(asked).toContain(`GET ${scene.archive().url}/${VICTIM}`);
        expect(counted(asked, 'GET ')).toBe(run.summary['requests']);
        await expectIntact(scene, run);
      },
    );
  }

  fault(
    {
      id: 'N33',
      fault: 'a proxy for https (HTTPS_PROXY)',
      outcome: 'all requests go through its tunnel, ok',
      exit: 0,
    },
    async (exit) => {
      const archive = await secure();
      const { address, asked } = await proxy();
      const flags = ['--archive-url', archive.url, '--listing-url', scene.archive().url];
      const run = await scene.runTo(exit, [...flags, '--ca-file', certificate.file], {
        env: { HTTPS_PROXY: `http://${address}` },
      });
      expect(new Set(asked)).toEqual(new Set([`CONNECT ${new URL(archive.url).host}`]));
      expect(archive.requests).toHaveLength(20);
      await expectIntact(scene, run);
    },
  );

  const BYPASSES: readonly [what: string, flags: readonly string[], env: Readonly<Record<string, string>>][] =
    [
      ['NO_PROXY names the host', [], { NO_PROXY: '127.0.0.1' }],
      ['--proxy none', ['--proxy', 'none'], {}],
    ];
  for (const [what, flags, env] of BYPASSES) {
    fault(
      {
        id: 'N33',
        fault: `a proxy in the environment, but ${what}`,
        outcome: 'requests go directly to the host, ok',
        exit: 0,
      },
      async (exit) => {
        const { address, asked } = await proxy();
        const run = await scene.run(flags, { env: { HTTP_PROXY: `http://${address}`, ...env } });
        expect([run.code, asked]).toEqual([exit, []]);
        await expectIntact(scene, run);
      },
    );
  }

  fault(
    { id: 'N33', fault: 'a proxy that is down', outcome: 'the run ends with unreachable', exit: 1 },
    async (exit) => {
      const run = await scene.run('--proxy http://127.0.0.1:9 --max-wait 1h --breaker-open 1h'.split(' '));
      expect(run.code).toBe(exit);
      expect(run.requestsOf(VICTIM)).toBe(0);
      expect(run.stderr).toContain('the proxy 127.0.0.1:9 cannot be reached: connect ECONNREFUSED');
      expect(run.stderr).toContain('check --proxy, HTTPS_PROXY, HTTP_PROXY and ALL_PROXY');
      expect(run.stderr).not.toContain('check the network');
    },
  );

  for (const scheme of ['http', 'https'] as const) {
    fault(
      {
        id: 'N33',
        fault: `407 from a proxy for ${scheme}`,
        outcome: 'the run ends at once and names the flag for user and password',
        exit: 1,
      },
      async (exit) => {
        const url = scheme === 'http' ? scene.archive().url : (await secure()).url;
        const { address } = await proxy(`me:${SECRET}`);
        const run = await scene.runTo(
          exit,
          argv`--archive-url ${url} --proxy http://${address} --ca-file ${certificate.file}`,
        );
        expect(run.requestsOf(VICTIM)).toBe(0);
        expect(run.stderr).toContain('407');
        expect(run.stderr).toContain('--proxy with user and password');
      },
    );

    fault(
      {
        id: 'N33',
        fault: `a proxy for ${scheme} that requires user and password, and one object that fails`,
        outcome: 'requests go through it with both, and the password is in no output, log or report',
        exit: 4,
      },
      async (exit) => {
        const archive = scheme === 'http' ? scene.archive() : await secure();
        archive.fault = (path, _request, response) => {
          if (path !== `/${VICTIM}`) return false;
          response.writeHead(401).end();
          return true;
        };
        const { address } = await proxy(`me:${SECRET}`);
        const through = ['--proxy', `http://me:${SECRET}@${address}`];
        const log = join(scratch, `${scheme}.log`);
        const where = ['--archive-url', archive.url, '--ca-file', certificate.file];
        const run = await scene.run([...where, ...through, '--log-file', log, '--log-level', 'trace']);
        expect(run.code).toBe(exit);
        await expectIntact(scene, run, 'victim');
        const shown = await cryptodl(['vision', '--symbols', 'BTCUSDT', '--print-options', ...through]);
        expect(shown.stdout).toContain(address);
        const report = readFileSync(String(run.summary['failures']), 'utf8');
        const written = [
          run.stdout,
          run.stderr,
          readFileSync(log, 'utf8'),
          report,
          shown.stdout,
          shown.stderr,
        ];
        expect(written.filter((text) => text === '')).toHaveLength(1);
        for (const text of written) expect(text).not.toContain(SECRET);
      },
    );
  }
});
