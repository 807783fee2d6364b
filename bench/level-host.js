/**
 * `fork(level-host.js, [FOLDER, KIND])`: an archive with the delays and refusals of `KIND` for objects and sidecars. Listings
 * answer at once. A fixed seed decides delays and faults, in the order of the requests.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { randomFrom } from '../scripts/synthetic-random.js';

/** @import { AddressInfo } from 'node:net' */

/** @typedef {{ readonly delayMs: number, readonly fault?: 503 | 'reset' }} Answer */

/** 99 of 100 values of a normal distribution lie below 2.326 of its widths. */
const WIDTHS_TO_P99 = 2.326;

/** Of requests and of the number that are answered at the moment. @type {Readonly<Record<string, (serving: number) => Answer>>} */
const KINDS = {
  constant: () => ({ delayMs: 700 }),
  lognormal: () => ({ delayMs: lognormal(600, 2000) }),
  faults: () => {
    const delayMs = lognormal(60, 400);
    const dice = random();
    return dice < 0.01 ? { delayMs, fault: 503 } : dice < 0.04 ? { delayMs, fault: 'reset' } : { delayMs };
  },
  doubles: (serving) => ({ delayMs: (serving > 40 ? 2 : 1) * around(300) }),
  refuses: (serving) => (serving > 40 ? { delayMs: 20, fault: 503 } : { delayMs: around(300) }),
  'refuses-early': (serving) => (serving > 20 ? { delayMs: 20, fault: 503 } : { delayMs: around(300) }),
  resets: () => (random() < 0.05 ? { delayMs: around(650), fault: 'reset' } : { delayMs: around(650) }),
  'refuses-and-resets': () => {
    const dice = random();
    const delayMs = around(650);
    return dice < 0.025 ? { delayMs, fault: 503 } : dice < 0.05 ? { delayMs, fault: 'reset' } : { delayMs };
  },
};

/** The built program. */
const { archiveHandler } = await import(new URL('../dist/verbs/serve/serve.js', import.meta.url).href);
const [folder = '', kind = ''] = process.argv.slice(2);
const answerOf = KINDS[kind];
if (answerOf === undefined) throw new RangeError(`no host is called ${kind}`);
const bodies = new Map(
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(folder.length), readFileSync(path)];
    }),
);
const random = randomFrom('level');
const list = archiveHandler(folder);
let requests = 0;
let serving = 0;

const server = createServer((request, response) => {
  const body = bodies.get(request.url ?? '');
  if (body === undefined) {
    list(request, response);
    return;
  }
  requests += 1;
  serving += 1;
  const { delayMs, fault } = answerOf(serving);
  setTimeout(() => {
    serving -= 1;
    if (fault === 'reset') response.socket?.resetAndDestroy();
    else if (fault === 503) response.writeHead(503).end();
    else response.writeHead(200, { 'content-length': body.length }).end(body);
  }, delayMs);
});

process.on('message', () => process.send?.({ requests }));
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: /** @type {AddressInfo} */ (server.address()).port });
});

/** @param {number} medianMs */
function around(medianMs) {
  return medianMs * (0.7 + 0.6 * random());
}

/** @param {number} medianMs @param {number} p99Ms */
function lognormal(medianMs, p99Ms) {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return medianMs * Math.exp((Math.log(p99Ms / medianMs) / WIDTHS_TO_P99) * normal);
}
