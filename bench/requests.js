/**
 * `requests.js URL KEYS`: requests each zip and its sidecar with undici, 100 at once, and compares the hash of each zip with its
 * sidecar. It writes nothing. The lower limit for fetching in Node, without limits, retries, deadlines and listings.
 */
import { readFileSync } from 'node:fs';
import { AT_ONCE, bothOf } from './both.js';

const [url = '', file = ''] = process.argv.slice(2);
const both = bothOf(url);
const keys = readFileSync(file, 'utf8').trim().split('\n').values();
await Promise.all(Array.from({ length: AT_ONCE }, work));
await both.close();

async function work() {
  for (const key of keys) await both.get(key);
}
