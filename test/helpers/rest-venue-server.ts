/** A REST venue over sockets: one port for each of its hosts, because the real ones are three addresses. */
import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RestVenue } from './rest-venue.js';
import type { Host, VenueAnswer } from './rest-venue-types.js';

export interface ServedVenue {
  /** Without a slash at its end. */
  urlOf(host: Host): string;
  close(): Promise<void>;
}

export async function serveVenue(venue: RestVenue): Promise<ServedVenue> {
  const servers: Record<Host, Server> = {
    fapi: await serverOf(venue, 'fapi'),
    dapi: await serverOf(venue, 'dapi'),
    spot: await serverOf(venue, 'spot'),
  };
  return {
    urlOf: (host) => `http://127.0.0.1:${(servers[host].address() as AddressInfo).port}`,
    close: async () => {
      await Promise.all(Object.values(servers).map(closed));
    },
  };
}

async function serverOf(venue: RestVenue, host: Host): Promise<Server> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://venue');
    say(response, venue.answer(host, pathname, searchParams));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return server;
}

function say(response: ServerResponse, { status, headers, body, cut }: VenueAnswer): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, { ...headers, 'content-length': bytes.length });
  if (cut === undefined) {
    response.end(bytes);
    return;
  }
  response.write(bytes.subarray(0, bytes.length >> 1), () => {
    // A stalled answer says nothing more until the client gives up or the server is closed.
    if (cut === 'truncate') response.socket?.end();
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}
