/** Parsers for the flags of monitoring: text in, checked value out, or a usage error that names the expected form. */
import { parser } from './parsers.js';

/** The address at which a server listens. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

const LOOPBACK = '127.0.0.1';

/** `9464`, `0.0.0.0:9464`, `[::]:9464`, or the address with these: `http://0.0.0.0:9464/metrics`. The second example is for other machines. */
export const endpoint = parser(
  'a port from 1 to 65535 with or without an address in front',
  ['9464', '0.0.0.0:9464'],
  (text) =>
    endpointOf(
      text
        .replace(/^https?:\/\//, '')
        .replace(/\/.*/s, '')
        .replace(/^:/, '0.0.0.0:'),
    ),
);

function endpointOf(value: string): Endpoint | undefined {
  const [, bracketed, name, digits] = /^(?:(?:\[([\da-f:.]+)\]|([\w.-]+)):)?(\d{1,5})$/i.exec(value) ?? [];
  const port = Number(digits);
  return port >= 1 && port <= 65_535 ? { host: bracketed ?? name ?? LOOPBACK, port } : undefined;
}

/** `127.0.0.1:9464` */
export function endpointText({ host, port }: Endpoint): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The path of a file for the textfile collector. node_exporter reads only files of this ending. */
export const promFile = parser('a file with the ending .prom', ['cryptodl.prom'], (text) =>
  /[^\\/]\.prom$/.test(text) ? text : undefined,
);
