/**
 * `fork(weather.js, [FOLDER, SHARE])`: serves files from memory, each answer with a lognormal delay (60 ms median, 400 ms p99), a
 * share of the requests with a fault. A fixed seed decides delays and faults, in the order of the requests.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { randomFrom } from '../scripts/synthetic-random.js';

/** @import { AddressInfo } from 'node:net' */
/** @import { ServerResponse } from 'node:http' */

const MEDIAN_MS = 60;
/** 99 of 100 values of a normal distribution lie below 2.326 of its widths. */
const WIDTH = Math.log(400 / MEDIAN_MS) / 2.326;

/** @type {readonly ((response: ServerResponse, body: Buffer) => void)[]} */
const FAULTS = [
  (response) => response.writeHead(503).end(),
  (response) => response.socket?.resetAndDestroy(),
  (response, body) => {
    response.writeHead(200, { 'content-length': body.length });
    response.write(body.subarray(0, body.length >> 1), () => response.socket?.end());
  },
  (response, body) => {
    const flipped = Buffer.from(body);
    flipped[flipped.length >> 1] = (flipped[flipped.length >> 1] ?? 0) ^ 0x10;
    response.writeHead(200, { 'content-length': body.length }).end(flipped);
  },
];

const [folder = '', faultShare = '0'] = process.argv.slice(2);
const bodies = new Map(
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(folder.length), readFileSync(path)];
    }),
);
const random = randomFrom('weather');
let requests = 0;
let faults = 0;

const server = createServer((request, response) => {
  requests += 1;
  const delayMs = MEDIAN_MS * Math.exp(WIDTH * normal());
  const isFault = random() < Number(faultShare);
  if (isFault) faults += 1;
  const fault = isFault ? FAULTS[faults % FAULTS.length] : undefined;
  setTimeout(() => {
    const body = bodies.get(request.url ?? '');
    if (body === undefined) response.writeHead(404).end();
    else if (fault === undefined) response.writeHead(200, { 'content-length': body.length }).end(body);
    else fault(response, body);
  }, delayMs);
});

process.on('message', () => process.send?.({ requests, faults }));
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: /** @type {AddressInfo} */ (server.address()).port });
});

function normal() {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
