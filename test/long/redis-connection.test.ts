/** The connection to a real redis-server: passwords, users of an ACL, and servers that the program refuses. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { CryptodlError } from '../../src/model/errors.js';
import { connectRedis, openRedis } from '../../src/http/redis/connection.js';
import type { RedisConnection } from '../../src/http/redis/connection.js';
import { HAS_OPENSSL, makeCertificate } from '../helpers/certificates.js';
import { cryptodlProcess } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { freePort } from '../helpers/prometheus.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis } from '../helpers/redis-server.js';
import type { RedisProcess } from '../helpers/redis-server.js';

const SECRET = 'open-sesame';
const scratch = scratchFolder();
let servers: RedisProcess[] = [];
const opened: RedisConnection[] = [];

const started = async (...given: Parameters<typeof startRedis>): Promise<RedisProcess> => {
  const server = await startRedis(...given);
  servers.push(server);
  return server;
};

afterEach(async () => {
  for (const connection of opened.splice(0)) connection.close();
  await Promise.all(servers.map((server) => server.close()));
  servers = [];
});

const problemOf = async (address: string): Promise<string> => {
  try {
    opened.push(await connectRedis(address, 'limit'));
    return 'none';
  } catch (error) {
    const { code, message, hint = '', cause } = error as CryptodlError;
    expect(cause).toBeUndefined();
    expect(`${message} ${hint}`).not.toContain(SECRET);
    return `${code}: ${message}`;
  }
};

describe.skipIf(!HAS_REDIS)(`a connection to Redis${NEEDS_REDIS}`, () => {
  it('is made with a password, and with a user of an ACL', async () => {
    const server = await started([], SECRET);
    await server.client.acl('SETUSER', 'joe', 'on', `>${SECRET}`, '~*', '+@all');
    expect(await problemOf(server.address)).toBe('none');
    expect(await problemOf(`redis://joe:${SECRET}@127.0.0.1:${server.port}/1`)).toBe('none');
  });

  it('says in one line what is wrong, and never shows the password', async () => {
    const server = await started([], 'another');
    const host = `127.0.0.1:${server.port}`;
    expect(await problemOf(`redis://${host}`)).toContain(
      `redis-refused: Redis at redis://${host}: NOAUTH Authentication required`,
    );
    expect(await problemOf(`redis://:${SECRET}@${host}`)).toContain(
      `redis-refused: Redis at redis://${host}: WRONGPASS invalid username-password pair`,
    );
    await server.kill();
    expect(await problemOf(`redis://:${SECRET}@${host}`)).toBe(
      `redis-unreachable: Redis at redis://${host}: connect ECONNREFUSED ${host}`,
    );
  });

  it.skipIf(!HAS_OPENSSL)('is refused to a certificate that is not trusted', async () => {
    const { file } = makeCertificate(scratch, 'redis', { names: 'IP:127.0.0.1', days: 2 });
    const port = await freePort();
    const key = file.replace(/pem$/, 'key');
    const tls = ['--tls-port', String(port), '--tls-cert-file', file, '--tls-key-file', key];
    await started([...tls, '--tls-ca-cert-file', file, '--tls-auth-clients', 'no']);
    const at = (scheme: string, to: number): string => `${scheme}://127.0.0.1:${to}`;
    expect(await problemOf(at('rediss', port))).toMatch(
      /^redis-refused: Redis at rediss:\S+: self.signed certificate/,
    );
    expect(await problemOf(at('redis', port))).toMatch(/^redis-(?:refused|unreachable): Redis at redis:/);
  });

  it('is checked by doctor, with the programs of the group', async () => {
    const server = await started([], SECRET);
    const hosts = ['archive', 'listing', 'fapi', 'dapi', 'spot'].flatMap((name) => [
      `--${name}-url`,
      'http://127.0.0.1:1',
    ]);
    const flags = [...hosts, '--out', scratch, '--state-dir', scratch, '--json', '--redis', server.address];
    const checked = async (...more: string[]): Promise<unknown> => {
      const { events, stdout, stderr } = await cryptodlProcess(['doctor', ...flags, ...more]);
      expect(stdout + stderr).not.toContain(SECRET);
      return events.filter(({ check }) => check === 'redis').map(({ status, found }) => [status, found]);
    };
    const answers = `redis://127.0.0.1:${server.port} answers in \\d+ ms`;
    expect(await checked()).toEqual([['ok', expect.stringMatching(new RegExp(`^${answers}$`))]]);
    await server.client.hset('cryptodl:{office}', 'member other', `${Date.now()} 2`);
    expect(await checked('--egress-group', 'office')).toEqual([
      [
        'ok',
        expect.stringMatching(new RegExp(`^${answers}; the group office has 2 programs, this one included$`)),
      ],
    ]);
  });

  it('is refused to a server in cluster mode', async () => {
    const server = await started(['--cluster-enabled', 'yes', '--dir', scratch]);
    expect(await problemOf(server.address)).toBe(
      `redis-refused: Redis at ${server.address}: the server is a Sentinel or part of a Redis Cluster; use a server without them`,
    );
  });

  it('comes back by itself after a restart of the server', async () => {
    const server = await started();
    const connection = await openRedis(server.address, 'limit');
    opened.push(connection);
    await connection.opened;
    await server.kill();
    await expect(connection.client.ping()).rejects.toThrow(/Connection|Stream|closed/i);
    expect(connection.problem().code).toBe('redis-unreachable');
    const ready = new Promise((resolve) => connection.client.once('ready', resolve));
    await server.start();
    await ready;
    expect(await connection.client.ping()).toBe('PONG');
  });

  it.each(['limit', 'queue'] as const)(
    'leads to the new server after a failover that leaves the old one as a replica: %s',
    async (use) => {
      // A replica is sent a file.
      const [old, next] = [await started(['--dir', scratch]), await started(['--dir', scratch])];
      let { port } = old;
      const proxy = createServer((socket) => {
        const server = connect(port, '127.0.0.1');
        socket.on('error', () => server.destroy()).pipe(server);
        server.on('error', () => socket.destroy()).pipe(socket);
      }).listen(0, '127.0.0.1');
      await once(proxy, 'listening');
      const connection = await openRedis(`redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`, use);
      opened.push(connection);
      await connection.opened;
      await old.client.replicaof('127.0.0.1', next.port);
      ({ port } = next);
      const isReady = once(connection.client, 'ready');
      await expect(connection.client.set('key', 'lost')).rejects.toThrow('READONLY');
      await isReady;
      await connection.client.set('key', 'kept');
      expect(await next.client.get('key')).toBe('kept');
      proxy.close();
    },
  );
});
