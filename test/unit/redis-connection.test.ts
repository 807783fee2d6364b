import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { redis } from '../../src/options/addresses.js';
import { connectRedis } from '../../src/redis/connection.js';
import { redisProblem, refusedServer, shownRedis } from '../../src/redis/redis-errors.js';

const ADDRESS = 'rediss://joe:open-sesame@queue:6380/2';

describe('--redis', () => {
  it.each([
    'redis://queue',
    'redis://queue:6379',
    'redis://:secret@queue',
    'rediss://joe:secret@queue:6380/2',
    'redis://[::1]:6379/0',
  ])('takes %s', (value) => {
    expect(redis(value, '--redis')).toBe(value);
  });

  it.each([
    ['queue:6379', 'is not the address of a Redis server'],
    ['http://:open-sesame@queue', 'is not the address of a Redis server'],
    ['redis://', 'is not the address of a Redis server'],
    ['redis://open-sesame@queue', 'has a user without a password'],
    ['redis://:open-sesame@queue/zero', 'has more than host, port and number of the database'],
    ['redis://:open-sesame@queue?db=1', 'has more than host, port and number of the database'],
  ])('refuses %s without showing it', (value, problem) => {
    expect(() => redis(value, '--redis')).toThrow(expect.objectContaining({ message: `--redis ${problem}` }));
  });

  it('is shown without user and password', () => {
    expect(shownRedis(ADDRESS)).toBe('rediss://queue:6380/2');
    const auth = { name: 'auth', args: ['joe', 'open-sesame'] };
    const error = redisProblem(ADDRESS, Object.assign(new Error('WRONGPASS invalid'), { command: auth }));
    expect(error.message).toBe('Redis at rediss://queue:6380/2: the user or the password is wrong');
    expect(error.cause).toBeUndefined();
  });
});

describe('a server for --redis', () => {
  it.each([
    ['redis_version:7.0.15\r\ncluster_enabled:0\r\n', undefined],
    ['redis_version:6.2.0\r\n', undefined],
    ['redis_version:6.0.16\r\n', 'the server has version 6.0; at least 6.2 is needed'],
    ['redis_version:10.0.0\r\n', undefined],
    [
      'redis_version:7.0.15\r\ncluster_enabled:1\r\n',
      'the server is part of a Redis Cluster; use a server without cluster mode',
    ],
    ['hello', 'the server is not a Redis server'],
  ])('with the INFO %j is refused for: %s', (info, problem) => {
    expect(refusedServer(info)).toBe(problem);
  });

  it('must speak the protocol of Redis', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    await expect(connectRedis(`redis://127.0.0.1:${port}`, 'limit')).rejects.toThrow(
      `Redis at redis://127.0.0.1:${port}: the server is not a Redis server`,
    );
    server.close();
  });
});
