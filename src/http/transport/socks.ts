/** A connection to a host through a SOCKS5 proxy (RFC 1928), with user and password if the proxy requires them (RFC 1929). */
import { once } from 'node:events';
import { isIP, type Socket } from 'node:net';
import type { ErrorCode } from '../../model/errors.js';

/** A plain error: several requests may wait for one connection, and each needs a typed error of its own. */
export class TunnelError extends Error {
  constructor(
    readonly kind: ErrorCode,
    message: string,
    readonly hint?: string,
    readonly proxyFault?: string,
  ) {
    super(message);
  }
}

/** `fault`: what the proxy did: `cannot be reached: …`. */
export function faultOfProxy(kind: ErrorCode, fault: string, hint?: string, host = ''): TunnelError {
  return new TunnelError(kind, `the proxy ${host}${fault}`, hint, fault);
}

export const PROXY_HINT =
  'check --proxy, HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; --proxy none connects directly';
const NO_ANSWER = 'no answer to a SOCKS5 request';
const NO_SOCKS = 'does not speak SOCKS5';
const LOGIN = 'give --proxy with user and password: socks5h://user:password@host:port';

const REPLIES: readonly string[] = [
  '',
  'general failure',
  'not allowed',
  'network unreachable',
  'host unreachable',
  'connection refused',
  'expired',
  'command not supported',
  'kind of address not supported',
];
const NOT_ALLOWED = 2;

/** Asks the proxy at the other end of the socket for a connection to `host`, a name or an address. */
export async function openTunnel(
  socket: Socket,
  proxy: URL,
  { host, port, timeoutMs }: { readonly host: string; readonly port: number; readonly timeoutMs: number },
): Promise<void> {
  const stop = () => socket.destroy(new Error(NO_ANSWER));
  socket.setTimeout(timeoutMs, stop);
  socket.once('end', stop);
  try {
    await logIn(socket, proxy);
    socket.write(Buffer.concat([Buffer.of(5, 1, 0), addressBytes(host), Buffer.of(port >> 8, port & 255)]));
    const [version, reply = 1, reserved, kind = 0] = await take(socket, 4);
    if (reply !== 0)
      throw faultOfProxy(
        reply === NOT_ALLOWED ? 'proxy-refused' : 'connect-failed',
        `cannot connect to ${host}: ${REPLIES[reply] ?? `reply ${reply}`}`,
      );
    if (version !== 5 || reserved !== 0 || ![1, 3, 4].includes(kind))
      throw faultOfProxy('proxy-refused', NO_SOCKS, 'see --proxy');
    const [length = 0] = kind === 1 ? [4] : kind === 4 ? [16] : await take(socket, 1);
    await take(socket, length + 2);
  } catch (error) {
    if (error instanceof TunnelError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw faultOfProxy('proxy-unreachable', `cannot be reached: ${reason}`, PROXY_HINT, `${proxy.host} `);
  } finally {
    socket.setTimeout(0, stop).off('end', stop);
  }
}

async function logIn(socket: Socket, proxy: URL): Promise<void> {
  const [user, password] = [proxy.username, proxy.password].map((text) =>
    Buffer.from(decodeURIComponent(text)),
  ) as [Buffer, Buffer];
  const methods = user.length > 0 ? [0, 2] : [0];
  socket.write(Buffer.of(5, methods.length, ...methods));
  const [version, method = 255] = await take(socket, 2);
  if (version !== 5) throw faultOfProxy('proxy-refused', NO_SOCKS, 'see --proxy');
  if (!methods.includes(method)) throw faultOfProxy('proxy-refused', 'requires another login', LOGIN);
  if (method === 0) return;
  socket.write(Buffer.concat([Buffer.of(1, user.length), user, Buffer.of(password.length), password]));
  const [, status] = await take(socket, 2);
  if (status !== 0) throw faultOfProxy('proxy-refused', 'refused user and password', LOGIN);
}

/** An address of IPv6 is sent as a name, which the proxy resolves. */
function addressBytes(host: string): Buffer {
  if (isIP(host) === 4) return Buffer.of(1, ...host.split('.').map(Number));
  return Buffer.concat([Buffer.of(3, Buffer.byteLength(host)), Buffer.from(host)]);
}

/** Reads exactly so many bytes, because the next ones belong to the host. */
async function take(socket: Socket, count: number): Promise<Buffer> {
  let taken = Buffer.alloc(0);
  while (taken.length < count) {
    // Bytes that stay in the buffer would be announced again at once, for ever.
    const chunk = socket.read(Math.min(count - taken.length, socket.readableLength)) as Buffer | null;
    if (chunk !== null) taken = Buffer.concat([taken, chunk]);
    else if (socket.destroyed) throw socket.errored ?? new Error(NO_ANSWER);
    else await once(socket, 'readable');
  }
  return taken;
}
