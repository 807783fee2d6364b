import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { redis } from '../../../src/plan/options/addresses.js';
import { connectRedis } from '../../../src/http/redis/connection.js';
import { redisProblem, refusedServer, shownRedis } from '../../../src/http/redis/redis-errors.js';

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
    'http://:open-sesame@queue',
    'redis://',
    'redis://open-sesame@queue',
    'redis://:open-sesame@queue/zero',
    'redis://:open-sesame@queue?db=1',
  ])('refuses %s without showing it', (value) => {
    const message = '--redis is not the address of a Redis server';
    expect(() => redis(value, '--redis')).toThrow(expect.objectContaining({ message }));
  });

  it('is shown without user and password', () => {
    expect(shownRedis(ADDRESS)).toBe('rediss://queue:6380/2');
    const auth = { name: 'auth', args: ['joe', 'open-sesame'] };
    const error = redisProblem(ADDRESS, Object.assign(new Error('WRONGPASS invalid'), { command: auth }));
    expect(error.message).toBe('Redis at rediss://queue:6380/2: WRONGPASS invalid');
    expect(error.cause).toBeUndefined();
  });

  it('does not show the password when the server repeats the command', () => {
    const error = redisProblem(ADDRESS, new Error('ERR bad request *3 $4 auth $3 joe $11 open-sesame'));
    expect(error.message).not.toMatch(/joe|open-sesame/);
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
      'the server is a Sentinel or part of a Redis Cluster; use a server without them',
    ],
    [
      'redis_version:7.0.15\r\nredis_mode:sentinel\r\n',
      'the server is a Sentinel or part of a Redis Cluster; use a server without them',
    ],
    ['hello', 'the server is not a Redis server'],
  ])('with the INFO %j is refused for: %s', (info, problem) => {
    expect(refusedServer(info)).toBe(problem);
  });
});

describe('an error of a server', () => {
  const reply = (message: string): string => {
    const error = Object.assign(new Error(message), { name: 'ReplyError' });
    const { code, message: shown } = redisProblem(ADDRESS, error);
    return `${code}: ${shown.replace('Redis at rediss://queue:6380/2: ', '')}`;
  };
  const IN_6 = 'ERR Error running script (call to f_6b1bf486): @user_script:5: ';

  it.each([
    [
      'OOM command not allowed. script: f3, on @user_script:7.',
      'unreachable: OOM command not allowed. script: f3, on @user_script:7.',
    ],
    [`${IN_6}-OOM command not allowed`, 'unreachable: OOM command not allowed'],
    [`${IN_6}-READONLY You can't write`, "unreachable: READONLY You can't write"],
    ['ERR max number of clients reached', 'unreachable: ERR max number of clients reached'],
    ['NOPERM this user may not use eval', 'refused: NOPERM this user may not use eval'],
    ['WRONGTYPE Operation against a key', 'unreachable: a key of cryptodl has data of another program'],
    ['ERR user_script:9: attempt to compare', 'unreachable: a key of cryptodl has data of another program'],
    [`${IN_6}WRONGTYPE Operation`, 'unreachable: a key of cryptodl has data of another program'],
    ["ERR unknown command 'EVAL'", 'refused: ERR unknown command'],
    ["ERR new with 'open-sesame'", 'unreachable: ERR new with'],
  ])('is one line: %s', (message, line) => {
    expect(reply(message)).toBe(`redis-${line}`);
  });
});

it.each([
  ['cuts the connection in the middle of an answer', 'redis', '$900\r\nredis_ver', 'the connection was lost'],
  [
    'answers with another protocol',
    'redis',
    'HTTP/1.1 400 Bad Request\r\n\r\n',
    'the server is not a Redis server',
  ],
  ['does not use TLS', 'rediss', '-ERR unknown command', 'the server does not use TLS'],
])('a server that %s is one line', async (_, scheme, answer, problem) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(answer));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await expect(connectRedis(`${scheme}://127.0.0.1:${port}`, 'limit')).rejects.toThrow(
    `Redis at ${scheme}://127.0.0.1:${port}: ${problem}`,
  );
  server.close();
});
