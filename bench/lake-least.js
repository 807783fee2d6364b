/**
 * `lake-least.js URL LAKE INTERVAL MARKER`: reads each manifest below LAKE once, compares the size of each data file with its last line, and requests
 * one page of the listing of each series with undici. It writes nothing. The lower limit for a run that continues a lake in Node, without
 * a check of the lines, decisions, a lock, copies of listings and a start of the program.
 */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Pool } from 'undici';

const [url = '', lake = '', interval = '', marker = ''] = process.argv.slice(2);
const pool = new Pool(url, { connections: 16 });
const manifests = join(lake, '_manifests');
const names = readdirSync(manifests, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.jsonl'),
);
let held = 0;
let listed = 0;
for (let at = 0; at < names.length; at += 16) await Promise.all(names.slice(at, at + 16).map(series));
await pool.close();
console.log(`${held} objects, ${listed} listed keys`);

/** @param {string} name */
async function series(name) {
  const folder = join(lake, name.slice(0, -'.jsonl'.length));
  /** @type {Map<string, number>} */
  const sizes = new Map();
  for (const text of readFileSync(join(manifests, name), 'utf8').split('\n')) {
    if (text === '') continue;
    const line = JSON.parse(text);
    sizes.set(line.file, line.fileBytes);
  }
  for (const [file, bytes] of sizes) if (lstatSync(`${folder}/${file}`).size === bytes) held += 1;
  const symbol = name.slice(name.lastIndexOf('symbol=') + 'symbol='.length, -'.jsonl'.length);
  const prefix = `data/futures/um/daily/klines/${symbol}/${interval}/`;
  const path = `/?delimiter=/&prefix=${prefix}&marker=${prefix}${symbol}-${interval}-${marker}.zip`;
  const { body } = await pool.request({ path, method: 'GET' });
  const page = await body.text();
  listed += [...page.matchAll(/<Key>([^<]*)/g)].length;
}
