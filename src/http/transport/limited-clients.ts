/** Clients of undici that together have a limited number of sockets. */
import type { Socket } from 'node:net';
import { Client, errors, type buildConnector, type Pool } from 'undici';
import { faultOfProxy, PROXY_HINT } from './socks.js';

export interface Connection {
  readonly client: Client;
  socket?: Socket;
}

export interface SocketLimit {
  /** Direct sockets of all origins together, at most. The caller must send no more requests at the same time. */
  readonly most?: number | undefined;
  /** The open sockets of all pools that share `most`; by default those of this call alone. */
  readonly open?: Set<Connection> | undefined;
}

/** Makes clients that together have at most `most` sockets: before a further one is opened, an idle one is closed. */
export function clientsWithin({ most, open = new Set() }: SocketLimit): Required<Pool.Options>['factory'] {
  const makeRoom = (): void => {
    if (open.size < (most ?? Number.POSITIVE_INFINITY)) return;
    for (const connection of open) {
      if (connection.socket === undefined || connection.client.stats.size > 0) continue;
      open.delete(connection);
      connection.socket.destroy();
      return;
    }
  };
  return (origin, given) => {
    const { connect, ...options } = given as Client.Options & { connect: buildConnector.connector };
    const client: Client = new Client(origin, {
      ...options,
      connect: (target, callback) => {
        makeRoom();
        const connection: Connection = { client };
        open.add(connection);
        connect(target, (...answer) => {
          const ended = withoutLoop(answer, target.hostname);
          if (ended[0] === null) {
            connection.socket = ended[1];
            ended[1].once('close', () => open.delete(connection));
          } else open.delete(connection);
          callback(...ended);
        });
      },
    });
    return client;
  };
}

/** undici (7.30.2) fails no request after a SocketError of a connector or early bytes, but connects again at once and for ever. */
function withoutLoop(ended: Parameters<buildConnector.Callback>, host: string): typeof ended {
  const [error, socket] = ended;
  if (error === null && !socket.destroyed && socket.readableLength === 0) return ended;
  if (error !== null && !(error instanceof errors.SocketError)) return ended;
  socket?.destroy();
  const fault = `gave no connection to ${host}: ${error?.message ?? 'bytes before the first request'}`;
  return [faultOfProxy('proxy-unreachable', fault, PROXY_HINT), null];
}
