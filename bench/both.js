/** A zip and its sidecar over undici: without limits, retries and deadlines. */
import { createHash } from 'node:crypto';
import { Pool } from 'undici';

/** Zips requested at once. */
export const AT_ONCE = 50;

/**
 * @param {string} url
 * @returns {{ get: (key: string) => Promise<Buffer>, close: () => Promise<void> }} `get` rejects when the digest is not the sidecar's
 */
export function bothOf(url) {
  const pool = new Pool(url, { connections: 2 * AT_ONCE });
  return {
    get: async (key) => {
      const [zip, sidecar] = await Promise.all([bodyOf(pool, key), bodyOf(pool, `${key}.CHECKSUM`)]);
      const digest = createHash('sha256').update(zip).digest('hex');
      if (!sidecar.toString('latin1').startsWith(digest)) throw new Error(`${key} is wrong`);
      return zip;
    },
    close: () => pool.close(),
  };
}

/**
 * @param {Pool} pool
 * @param {string} key
 * @returns {Promise<Buffer>} the body
 */
function bodyOf(pool, key) {
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
