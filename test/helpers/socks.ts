/** A SOCKS5 proxy on loopback (RFC 1928, RFC 1929), which connects all names and addresses to loopback. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface SocksOptions {
  /** `user:password` */
  readonly login?: string;
  /** Replies to requests for these names instead of a connection. */
  readonly replies?: Readonly<Record<string, number>>;
  /** The answer to the first bytes instead of that of SOCKS5; empty for none. */
  readonly greeting?: Buffer;
}

export interface TestSocks {
  /** `127.0.0.1:PORT` */
  readonly label: string;
  /** The names and addresses of requests, in order of arrival: `name archive.test`, `4 7f000001`. */
  readonly asked: string[];
  /** The logins that clients sent. */
  readonly logins: string[];
}

/** Ends with the test. */
export async function startSocks(options: SocksOptions = {}): Promise<TestSocks> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  };
  const server = createServer((socket) => {
    keep(socket);
    converse(socket, options, socks, keep).catch(() => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  const socks: TestSocks = { label: `127.0.0.1:${port}`, asked: [], logins: [] };
  return socks;
}

async function converse(
  socket: Socket,
  { login, replies = {}, greeting }: SocksOptions,
  { asked, logins }: TestSocks,
  keep: (socket: Socket) => void,
): Promise<void> {
  const [, count = 0] = await read(socket, 2);
  const methods = await read(socket, count);
  if (greeting !== undefined) {
    if (greeting.length > 0) socket.end(greeting);
    return;
  }
  const method = login === undefined ? 0 : 2;
  if (!methods.includes(method)) {
    socket.end(Buffer.of(5, 255));
    return;
  }
  socket.write(Buffer.of(5, method));
  if (login !== undefined) {
    const [, length = 0] = await read(socket, 2);
    const user = await read(socket, length);
    const password = await read(socket, (await read(socket, 1))[0] ?? 0);
    logins.push(`${user.toString()}:${password.toString()}`);
    socket.write(Buffer.of(1, logins.at(-1) === login ? 0 : 1));
    if (logins.at(-1) !== login) return;
  }
  const [, , , kind = 0] = await read(socket, 4);
  const length = kind === 1 ? 4 : kind === 4 ? 16 : ((await read(socket, 1))[0] ?? 0);
  const host = await read(socket, length);
  asked.push(kind === 3 ? `name ${host.toString()}` : `${kind} ${host.toString('hex')}`);
  const port = (await read(socket, 2)).readUInt16BE();
  const reply = replies[host.toString()] ?? 0;
  if (reply !== 0) {
    socket.end(Buffer.of(5, reply, 0, 1, 0, 0, 0, 0, 0, 0));
    return;
  }
  const target = connect(port, '127.0.0.1');
  keep(target);
  socket.on('close', () => target.destroy());
  target.on('close', () => socket.destroy());
  await once(target, 'connect');
  // The bound address has the kind of the requested one, and may come in several packets.
  socket.write(Buffer.of(5, 0, 0));
  socket.write(Buffer.concat([Buffer.from(kind === 3 ? [3, length] : [kind]), host, Buffer.of(0, 80)]));
  socket.pipe(target).pipe(socket);
}

async function read(socket: Socket, count: number): Promise<Buffer> {
  let taken = Buffer.alloc(0);
  while (taken.length < count) {
    const chunk = socket.read(Math.min(count - taken.length, socket.readableLength)) as Buffer | null;
    if (chunk === null) await once(socket, 'readable');
    else taken = Buffer.concat([taken, chunk]);
  }
  return taken;
}
