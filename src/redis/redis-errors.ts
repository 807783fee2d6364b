/** What is wrong with a Redis server, in one line. The lines and their causes contain no password: errors of ioredis hold the arguments of AUTH. */
import { CryptodlError } from '../model/errors.js';

/** The address of a server as messages show it: without user and password. */
export function shownRedis(address: string): string {
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname.replace(/^\/$/, '')}`;
}

/** A pattern of the beginning of a message or of its code, what is wrong, and the next step. */
type Problem = readonly [pattern: RegExp, what: string, hint?: string];

const PASSWORD_HINT =
  'write --redis redis://:PASSWORD@HOST:PORT, or redis://USER:PASSWORD@HOST:PORT for a user of an ACL; CRYPTODL_REDIS keeps it out of the list of processes';
const START_HINT = 'start the server, or check host and port of --redis';

/** Errors of commands and scripts that find a value of an unexpected type. */
const FOREIGN = /^WRONGTYPE|^ERR .*(?:user_script|not an integer)|^the answer is not/;
/** Redis 6 puts the error of a command into one of its script. */
const IN_SCRIPT = /^ERR Error running script .*@user_script: ?\d+: -?(?=[A-Z]{2,} )/;

/** Problems that do not pass by themselves, in this order. */
const REFUSED: readonly Problem[] = [
  [/^WRONGPASS|invalid (?:username-)?password/, 'the user or the password is wrong', PASSWORD_HINT],
  [/^NOAUTH/, 'the server requires a password', PASSWORD_HINT],
  [
    /DB index/,
    'the server does not have the database of the address',
    'write redis://HOST:PORT/0, which each server has',
  ],
  [/^NOPERM/, 'the user may not run the commands that cryptodl needs', 'give the user +@all on ~cryptodl:*'],
  [
    /^ERR unknown command/,
    'the server lacks a command that cryptodl needs',
    'use a server of Redis or Valkey without renamed commands, and not a Sentinel',
  ],
  [
    /^(?:MOVED|ASK|CROSSSLOT|CLUSTERDOWN) /,
    'the server is part of a Redis Cluster',
    'use a server without cluster mode',
  ],
  [
    /Unknown RESP type|Protocol error/,
    'the server is not a Redis server',
    'check host and port of --redis, and whether the server uses TLS (rediss://)',
  ],
  [
    /certificate|self.signed|ERR_TLS/i,
    'the certificate of the server is refused',
    'name the host as the certificate does; NODE_EXTRA_CA_CERTS=FILE trusts a certificate of your own',
  ],
  [
    /EPROTO|ERR_SSL|wrong version number/,
    'the server does not use TLS',
    'write redis:// instead of rediss://',
  ],
];

/** Problems that may pass. */
const UNREACHABLE: readonly Problem[] = [
  [/ECONNREFUSED/, 'the connection is refused', START_HINT],
  [/ENOTFOUND|EAI_AGAIN/, 'the host is unknown', 'check the host of --redis'],
  [
    /ETIMEDOUT|timed out/,
    'the server does not answer in time',
    'check host and port of --redis, and whether the server uses TLS (rediss://)',
  ],
  [/^OOM/, 'the server has no free memory (maxmemory)'],
  [
    FOREIGN,
    'a key of cryptodl has data of another program',
    'use another database of the server (redis://HOST/1), or another --egress-group or --queue',
  ],
];

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
  const isOf = ([pattern]: Problem): boolean => pattern.test(message) || pattern.test(code);
  const refused = REFUSED.find(isOf);
  const [, what, hint] = refused ??
    UNREACHABLE.find(isOf) ?? [
      undefined,
      name === 'ReplyError' ? answered(message) : 'the connection was lost',
    ];
  return new CryptodlError(
    refused === undefined ? 'redis-unreachable' : 'redis-refused',
    `Redis at ${shownRedis(address)}: ${what}`,
    hint === undefined ? {} : { hint },
  );
}

/** Shows the name of the error, for example READONLY. The text may repeat a password. */
function answered(message: string): string {
  const [name = 'ERR'] = /^[A-Z]{2,20}(?= )/.exec(message) ?? [];
  return `the server answers with an error${name === 'ERR' ? '' : ` (${name})`}`;
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
