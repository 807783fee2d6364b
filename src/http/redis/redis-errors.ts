/** What is wrong with a Redis server, in one line. The lines and their causes contain no password: errors of ioredis hold the arguments of AUTH. */
import { CryptodlError } from '../../model/errors.js';

/** The address of a server as messages show it: without user and password. */
export function shownRedis(address: string): string {
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname.replace(/^\/$/, '')}`;
}

/** Errors of commands and scripts that find a value of an unexpected type: data that no program of ours wrote. */
const FOREIGN = /^WRONGTYPE|^ERR .*(?:user_script|not an integer)/;
/** Redis 6 puts the error of a command into one of its script. */
const IN_SCRIPT = /^ERR Error running script .*@user_script: ?\d+: -?(?=[A-Z]{2,} )/;
/** Patterns of the message or code of problems that do not pass by themselves, and words for messages that do not explain themselves. */
const REFUSED: readonly (readonly [pattern: RegExp, what?: string])[] = [
  [/^(?:WRONGPASS|NOAUTH|NOPERM)|invalid (?:username-)?password|DB index/],
  [/^(?:MOVED|ASK|CROSSSLOT|CLUSTERDOWN) |^ERR unknown command/],
  [/certificate|self.signed|ERR_TLS/i],
  [/Unknown RESP type|Protocol error/, 'the server is not a Redis server'],
  [/EPROTO|ERR_SSL|wrong version number/, 'the server does not use TLS'],
];

const HINT =
  'check host, port, database, user and password of --redis (redis://USER:PASSWORD@HOST:PORT/0, with rediss:// only for TLS); a user of an ACL needs +@all on ~cryptodl:*; NODE_EXTRA_CA_CERTS=FILE trusts a certificate of your own';
const FOREIGN_HINT =
  'use another database of the server (redis://HOST/1), or another --egress-group or --queue';

/** The error for an error of ioredis. `redis-unreachable` may pass by itself, `redis-refused` does not. */
export function redisProblem(address: string, error: unknown): CryptodlError {
  const { message: said = '', code = '' } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  const message = said.replace(IN_SCRIPT, '');
  const refused = REFUSED.find(([pattern]) => pattern.test(message) || pattern.test(code));
  // A general error may repeat the words of a command, and so a password.
  const told = message.startsWith('ERR ') ? (message.split(/['"`]/)[0] ?? '').trimEnd() : message;
  const { username, password } = new URL(address);
  const words = [password, username]
    .flatMap((secret) => (secret === '' ? [] : [secret, decodeURIComponent(secret)]))
    .reduce((text, secret) => text.replaceAll(secret, '***'), told);
  const isForeign = FOREIGN.test(message);
  const known = isForeign ? 'a key of cryptodl has data of another program' : refused?.[1];
  const what = known ?? (words === '' ? 'the connection was lost' : words);
  return new CryptodlError(
    refused === undefined ? 'redis-unreachable' : 'redis-refused',
    `Redis at ${shownRedis(address)}: ${what}`,
    { hint: isForeign ? FOREIGN_HINT : HINT },
  );
}

/** BullMQ needs this version too. */
const LEAST_VERSION = '6.2';

/** Why the program cannot use the server with this answer to INFO; undefined if it can. */
export function refusedServer(info: string): string | undefined {
  const [, major, minor] = /^redis_version:(\d+)\.(\d+)/m.exec(info) ?? [];
  if (major === undefined || minor === undefined) return 'the server is not a Redis server';
  const version = `${major}.${minor}`;
  if (version.localeCompare(LEAST_VERSION, 'en', { numeric: true }) < 0)
    return `the server has version ${version}; at least ${LEAST_VERSION} is needed`;
  const isAlone = !/^(?:redis_mode:sentinel|cluster_enabled:1)/m.test(info);
  return isAlone
    ? undefined
    : 'the server is a Sentinel or part of a Redis Cluster; use a server without them';
}
