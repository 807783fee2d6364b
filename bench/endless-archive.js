/**
 * `fork(endless-archive.js, [OPTIONS])`: an archive of um klines for a process of its own, larger than any disk. Objects, sidecars and pages
 * of the listing are made when they are requested. All symbols have the same bars; only the name in the zip differs.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { makeZip } from '../scripts/make-zip.js';
import { makeCsv } from '../scripts/synthetic-archive.js';
import { randomFrom } from '../scripts/synthetic-random.js';

/** @import { AddressInfo } from 'node:net' */
/** @import { ServerResponse } from 'node:http' */

/**
 * @typedef {object} EndlessOptions
 * @property {number} symbols
 * @property {readonly string[]} periods of each symbol, in order
 * @property {string} [interval] default `5m`
 * @property {number} [medianMs] of the time before an answer, lognormal; default 0, at once
 * @property {number} [limit] answers in a second, of a bucket of so many permits; further requests get 429
 */

/** 99 % of the answers come within this multiple of the median. */
const P99 = 3;
/** 99 of 100 values of a normal distribution lie below 2.326 of its widths. */
const WIDTH = Math.log(P99) / 2.326;
const PAGE = 1000;

/** @type {typeof import('../src/verbs/serve/serve.js')} */
const { readTarget } = await built('verbs/serve/serve.js');
/** @type {typeof import('../src/verbs/serve/bucket-listing.js')} */
const { readListingQuery } = await built('verbs/serve/bucket-listing.js');
/** @type {typeof import('../src/verbs/serve/s3-xml.js')} */
const { listingXml } = await built('verbs/serve/s3-xml.js');
/** @type {EndlessOptions} */
const {
  symbols,
  periods,
  interval = '5m',
  medianMs = 0,
  limit = Number.POSITIVE_INFINITY,
} = JSON.parse(process.argv[2] ?? '{}');
const cadence = periods[0]?.length === 7 ? 'monthly' : 'daily';
const names = Array.from({ length: symbols }, (_, index) => `S${String(index).padStart(5, '0')}USDT`);
const known = new Set(names);
const published = new Set(periods);
const lastModified = new Date(`${periods.at(-1)?.padEnd(10, '-28')}T12:00:00Z`);
const random = randomFrom('endless');
const counts = { zips: 0, sidecars: 0, listings: 0, refused: 0 };
/** When the first zip was requested, and the latest one answered: milliseconds of the clock of the machine. */
const times = { first: 0, last: 0 };
let permits = limit;
let refilledAt = Date.now();

/** @param {string} path */
function built(path) {
  return import(new URL(`../dist/${path}`, import.meta.url).href);
}

/** @type {Map<string, { zip: Buffer, at: readonly number[] }>} zips of the first symbol, and where its name stands */
const templates = new Map();

/** @param {string} period */
function templateOf(period) {
  const held = templates.get(period);
  if (held !== undefined) return held;
  const [symbol = ''] = names;
  const { csv } = makeCsv({ market: 'um', dataset: 'klines', interval, symbol, period });
  const name = `${symbol}-${interval}-${period}.csv`;
  const zip = makeZip([{ name, data: csv }]);
  const made = { zip, at: [zip.indexOf(name), zip.lastIndexOf(name)] };
  templates.set(period, made);
  return made;
}

/**
 * @param {string} symbol
 * @param {string} period
 * @returns {Buffer}
 */
function zipOf(symbol, period) {
  const { zip, at } = templateOf(period);
  const own = Buffer.from(zip);
  for (const start of at) own.write(symbol, start, 'latin1');
  return own;
}

/**
 * @param {string} key
 * @returns {Buffer | undefined}
 */
function bodyOf(key) {
  const [, of, symbol = '', inner, named, named2, period = '', suffix] =
    /^data\/futures\/um\/(\w+)\/klines\/(\w+)\/(\w+)\/(\w+)-(\w+)-([\d-]+)\.zip(\.CHECKSUM)?$/.exec(key) ??
    [];
  if (of !== cadence || !known.has(symbol) || inner !== interval) return undefined;
  if (named !== symbol || named2 !== interval || !published.has(period)) return undefined;
  const zip = zipOf(symbol, period);
  if (suffix === undefined) return zip;
  return Buffer.from(`${digest('sha256', zip)}  ${symbol}-${interval}-${period}.zip\n`);
}

/**
 * @param {'md5' | 'sha256'} kind
 * @param {Buffer} bytes
 */
function digest(kind, bytes) {
  return createHash(kind).update(bytes).digest('hex');
}

/**
 * @param {string} prefix
 * @returns {readonly string[]} keys and common prefixes in order
 */
function entriesBelow(prefix) {
  const [, of, symbol] = /^data\/futures\/um\/(\w+)\/\w+\/(?:(\w+)\/(?:\w+\/)?)?$/.exec(prefix) ?? [];
  if (of !== cadence) return [];
  if (symbol === undefined) return names.map((name) => `${prefix}${name}/`);
  if (!prefix.endsWith(`/${interval}/`) || !known.has(symbol)) return [];
  return periods.flatMap((period) => {
    const key = `${prefix}${symbol}-${interval}-${period}.zip`;
    return [key, `${key}.CHECKSUM`];
  });
}

/** @param {URLSearchParams} asked */
function listing(asked) {
  const query = readListingQuery(asked);
  if (query === undefined) return undefined;
  const all = entriesBelow(query.prefix).filter((key) => key > query.after && key.startsWith(query.prefix));
  const page = all.slice(0, Math.min(query.maxKeys, PAGE));
  return listingXml(query, {
    commonPrefixes: page.filter((key) => key.endsWith('/')),
    objects: page
      .filter((key) => !key.endsWith('/'))
      .map((key) => {
        const body = bodyOf(key) ?? Buffer.alloc(0);
        return { key, lastModified, etag: `"${digest('md5', body)}"`, sizeBytes: body.length };
      }),
    resumeAfter: page.length < all.length ? page.at(-1) : undefined,
  });
}

const server = createServer((request, response) => {
  const target = readTarget(request.url ?? '/');
  if (target === undefined) {
    response.writeHead(400).end();
    return;
  }
  const now = Date.now();
  if (limit !== Number.POSITIVE_INFINITY)
    permits = Math.min(limit, permits + ((now - refilledAt) / 1000) * limit);
  refilledAt = now;
  if (permits < 1) {
    counts.refused += 1;
    response.writeHead(429, { 'retry-after': '1' }).end();
    return;
  }
  permits -= 1;
  if (typeof target !== 'string') counts.listings += 1;
  else if (target.endsWith('.zip')) counts.zips += 1;
  else counts.sidecars += 1;
  if (counts.zips === 1) times.first ||= now;
  const answer = () => {
    if (typeof target !== 'string') send(response, listing(target), 'application/xml');
    else send(response, bodyOf(target), 'application/zip');
    times.last = Date.now();
  };
  if (medianMs === 0) answer();
  else setTimeout(answer, medianMs * Math.exp(WIDTH * normal()));
});

/**
 * @param {ServerResponse} response
 * @param {string | Buffer | undefined} content
 * @param {string} type
 */
function send(response, content, type) {
  if (content === undefined) {
    response.writeHead(404).end();
    return;
  }
  const body = Buffer.from(content);
  response
    .writeHead(200, {
      'content-type': type,
      'content-length': body.length,
      etag: `"${digest('md5', body)}"`,
      'last-modified': lastModified.toUTCString(),
    })
    .end(body);
}

function normal() {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

process.on('message', () => process.send?.({ ...counts, ...times }));
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: /** @type {AddressInfo} */ (server.address()).port });
});
