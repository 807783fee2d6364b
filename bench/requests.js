/**
 * `requests.js URL KEYS`: every zip and its sidecar asked for with undici, 100 at once, each zip hashed and compared with what its
 * sidecar says; nothing is written. What fetching costs at least in Node, without limits, retries, deadlines and listings.
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
