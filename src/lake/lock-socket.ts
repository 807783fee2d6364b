/** The lock of the kernel: an abstract unix socket for each lake (Linux only). */
import { stat } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** `taken`: the socket is bound already. `unknown`: it cannot be bound, for example on macOS. Else the lock of this process. */
export type SocketLock = 'taken' | 'unknown' | { release(): Promise<void> };

export async function releaseSocket(socket: SocketLock): Promise<void> {
  if (typeof socket === 'object') await socket.release();
}

/** The length of sun_path without the first byte. All names are this long, because only some versions of Node pad with zeros. */
const NAME_BYTES = 107;

/**
 * Binds the abstract unix socket of the directory (unix(7)). The kernel frees it when the process ends in any way. The lock is
 * valid in one network namespace. It does not keep the process running.
 */
export async function bindSocket(directory: string): Promise<SocketLock> {
  if (process.platform !== 'linux') return 'unknown';
  return listenOn(await socketName(directory));
}

/** Whether a process has bound the socket; false on platforms without abstract sockets. Does not bind it. */
export async function isSocketTaken(directory: string): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  const socket = connect({ path: await socketName(directory) });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

const socketName = async (directory: string): Promise<string> =>
  `\0${(await nameOf(directory)).padEnd(NAME_BYTES, '-')}`;

/** From device and inode, so that a symbolic link or another spelling of the path gives the same name. */
export async function nameOf(directory: string): Promise<string> {
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
      resolve({
        release: () =>
          new Promise((closed) => {
            server.close(() => closed());
          }),
      });
    });
  });
}
