/** What is wrong with a Redis server, in one line. The lines and their causes contain no password: errors of ioredis hold the arguments of AUTH. */
import { CryptodlError } from '../model/errors.js';

/** The address of a server as messages show it: without user and password. */
export function shownRedis(address: string): string {
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname.replace(/^\/$/, '')}`;
}

interface Problem {
  readonly code: 'redis-unreachable' | 'redis-refused';
  readonly what: string;
  readonly hint?: string;
}

const PASSWORD_HINT =
  'write --redis redis://:PASSWORD@HOST:PORT, or redis://USER:PASSWORD@HOST:PORT for a user of an ACL; CRYPTODL_REDIS keeps it out of the list of processes';
const START_HINT = 'start the server, or check host and port of --redis';

/** Errors of commands and scripts that find a value of an unexpected type. */
const FOREIGN = /^WRONGTYPE|^ERR .*(?:user_script|not an integer)|^the answer is not/;
/** Redis 6 puts the error of a command into one of its script. */
const IN_SCRIPT = /^ERR Error running script .*@user_script: ?\d+: -?(?=[A-Z]{2,} )/;

/** By the beginning of the message or by its code, in this order. */
const PROBLEMS: readonly (readonly [RegExp, Problem])[] = [
  [
    /^WRONGPASS|invalid (?:username-)?password/,
    { code: 'redis-refused', what: 'the user or the password is wrong', hint: PASSWORD_HINT },
  ],
  [/^NOAUTH/, { code: 'redis-refused', what: 'the server requires a password', hint: PASSWORD_HINT }],
  [
    /DB index/,
    {
      code: 'redis-refused',
      what: 'the server does not have the database of the address',
      hint: 'write redis://HOST:PORT/0, which each server has',
    },
  ],
  [
    /^NOPERM/,
    {
      code: 'redis-refused',
      what: 'the user may not run the commands that cryptodl needs',
      hint: 'give the user +@all on ~cryptodl:*',
    },
  ],
  [
    /^ERR unknown command/,
    {
      code: 'redis-refused',
      what: 'the server lacks a command that cryptodl needs',
      hint: 'use a server of Redis or Valkey without renamed commands, and not a Sentinel',
    },
  ],
  [
    /^(?:MOVED|ASK|CROSSSLOT|CLUSTERDOWN) /,
    {
      code: 'redis-refused',
      what: 'the server is part of a Redis Cluster',
      hint: 'use a server without cluster mode',
    },
  ],
  [
    /Unknown RESP type|Protocol error/,
    {
      code: 'redis-refused',
      what: 'the server is not a Redis server',
      hint: 'check host and port of --redis, and whether the server uses TLS (rediss://)',
    },
  ],
  [
    /certificate|self.signed|ERR_TLS/i,
    {
      code: 'redis-refused',
      what: 'the certificate of the server is refused',
      hint: 'name the host as the certificate does; NODE_EXTRA_CA_CERTS=FILE trusts a certificate of your own',
    },
  ],
  [
    /EPROTO|ERR_SSL|wrong version number/,
    {
      code: 'redis-refused',
      what: 'the server does not use TLS',
      hint: 'write redis:// instead of rediss://',
    },
  ],
  [/ECONNREFUSED/, { code: 'redis-unreachable', what: 'the connection is refused', hint: START_HINT }],
  [
    /ENOTFOUND|EAI_AGAIN/,
    { code: 'redis-unreachable', what: 'the host is unknown', hint: 'check the host of --redis' },
  ],
  [
    /ETIMEDOUT|timed out/,
    {
      code: 'redis-unreachable',
      what: 'the server does not answer in time',
      hint: 'check host and port of --redis, and whether the server uses TLS (rediss://)',
    },
  ],
  [/^LOADING/, { code: 'redis-unreachable', what: 'the server still loads its data' }],
  [/^OOM/, { code: 'redis-unreachable', what: 'the server has no free memory (maxmemory)' }],
  [/^BUSY /, { code: 'redis-unreachable', what: 'the server is busy with a script' }],
  [/max number of clients/, { code: 'redis-unreachable', what: 'the server has too many clients' }],
  [
    /^MASTERDOWN|^NOREPLICAS/,
    { code: 'redis-unreachable', what: 'the server has lost its primary or its replicas' },
  ],
  [
    FOREIGN,
    {
      code: 'redis-unreachable',
      what: 'a key of cryptodl has data of another program',
      hint: 'use another database of the server (redis://HOST/1), or another --egress-group or --queue',
    },
  ],
  [/^READONLY/, { code: 'redis-unreachable', what: 'the server is a read-only replica' }],
  [
    /^MISCONF/,
    { code: 'redis-unreachable', what: 'the server cannot save its data and refuses writes (MISCONF)' },
  ],
];

const LOST: Problem = { code: 'redis-unreachable', what: 'the connection was lost' };
/** Its text may repeat a password. */
const ANSWERED: Problem = { code: 'redis-unreachable', what: 'the server answers with an error' };

/** Whether a command found data that no program of ours wrote. It finds them again until they are removed. */
export function isForeignData(error: unknown): boolean {
  return error instanceof Error && FOREIGN.test(error.message.replace(IN_SCRIPT, ''));
}

/** The error for an error of ioredis. `redis-unreachable` may pass by itself, `redis-refused` does not. */
export function redisProblem(address: string, error: unknown): CryptodlError {
  const {
    message: told = '',
    code = '',
    name = '',
  } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  const message = told.replace(IN_SCRIPT, '');
  const [, problem] = PROBLEMS.find(([pattern]) => pattern.test(message) || pattern.test(code)) ?? [
    undefined,
    name === 'ReplyError' ? ANSWERED : LOST,
  ];
  const { hint } = problem;
  return new CryptodlError(
    problem.code,
    `Redis at ${shownRedis(address)}: ${problem.what}`,
    hint === undefined ? {} : { hint },
  );
}

/** BullMQ needs this version too. */
const LEAST_VERSION = [6, 2] as const;

/** Why the program cannot use the server with this answer to INFO; undefined if it can. */
export function refusedServer(info: string): string | undefined {
  const [, major, minor] = /^redis_version:(\d+)\.(\d+)/m.exec(info) ?? [];
  if (major === undefined || minor === undefined) return 'the server is not a Redis server';
  if (/^redis_mode:sentinel/m.test(info))
    return 'the server is a Sentinel; use the address of the Redis server that it watches';
  const isOld =
    Number(major) < LEAST_VERSION[0] ||
    (Number(major) === LEAST_VERSION[0] && Number(minor) < LEAST_VERSION[1]);
  if (isOld) return `the server has version ${major}.${minor}; at least ${LEAST_VERSION.join('.')} is needed`;
  if (/^cluster_enabled:1/m.test(info))
    return 'the server is part of a Redis Cluster; use a server without cluster mode';
  return undefined;
}
