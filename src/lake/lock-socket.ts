import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';

/** The kernel's word on a directory: `taken` by another, `unknown` where there are no abstract sockets, or ours. */
export type SocketLock = 'taken' | 'unknown' | { release(): Promise<void> };

/** Fills sun_path: whether shorter names are padded with zeros depends on the version of Node. */
const NAME_BYTES = 107;

/**
 * Binds the abstract unix socket that stands for the directory (unix(7)). The kernel frees it with its process,
 * however that ends; it reaches as far as the network namespace. Does not keep the process alive.
 */
export async function bindSocket(directory: string): Promise<SocketLock> {
  if (process.platform !== 'linux') return 'unknown';
  return listenOn(await socketName(directory));
}

/** Whether somebody else has bound it, found out without binding it; false where there are no abstract sockets. */
export async function isSocketTaken(directory: string): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  const path = await socketName(directory);
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });
}

/** What the name of the socket begins with, as ss(8) shows it. */
export async function socketNamePrefix(directory: string): Promise<string> {
  return (await nameOf(directory)).slice(0, 24);
}

async function socketName(directory: string): Promise<string> {
  return `\0${(await nameOf(directory)).padEnd(NAME_BYTES, '-')}`;
}

/** By identity, so that a symlink or a second spelling of the path is the same lake. */
async function nameOf(directory: string): Promise<string> {
  const { dev, ino } = await stat(directory, { bigint: true });
  return `cryptodl-${createHash('sha256').update(`${dev}:${ino}`).digest('hex')}`;
}

function listenOn(path: string): Promise<SocketLock> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'EADDRINUSE' ? 'taken' : 'unknown');
    });
    server.listen({ path, exclusive: true }, () => {
      server.removeAllListeners('error').on('error', () => undefined);
      server.unref();
      resolve({ release: () => close(server) });
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
