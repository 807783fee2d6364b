/**
 * `requests.js URL KEYS`: every zip and its sidecar asked for with undici, 100 at once, each zip hashed and compared with what its
 * sidecar says; nothing is written. What fetching costs at least in Node, without limits, retries, deadlines and listings.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';

const CONNECTIONS = 100;

const [url = '', file = ''] = process.argv.slice(2);
const keys = readFileSync(file, 'utf8').trim().split('\n').values();
const pool = new Pool(url, { connections: CONNECTIONS });
let wrong = 0;
await Promise.all(Array.from({ length: CONNECTIONS / 2 }, work));
await pool.close();
process.exitCode = wrong === 0 ? 0 : 1;

async function work() {
  for (const key of keys) {
    const [zip, sidecar] = await Promise.all([get(key), get(`${key}.CHECKSUM`)]);
    const digest = createHash('sha256').update(zip).digest('hex');
    if (!sidecar.toString('latin1').startsWith(digest)) wrong += 1;
  }
}

/**
 * @param {string} key
 * @returns {Promise<Buffer>} the body
 */
function get(key) {
  return new Promise((resolve, reject) => {
    /** @type {Buffer[]} */
    const chunks = [];
    pool.dispatch(
      { method: 'GET', path: `/${key}` },
      {
        onRequestStart: () => undefined,
        onResponseStart: () => undefined,
        onResponseData: (_, chunk) => {
          chunks.push(chunk);
        },
        onResponseEnd: () => resolve(Buffer.concat(chunks)),
        onResponseError: (_, error) => reject(error),
      },
    );
  });
}
