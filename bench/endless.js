/** Starts the archive of endless-archive.js. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** @import { EndlessOptions } from './endless-archive.js' */

/**
 * @typedef {object} EndlessCounts
 * @property {number} zips
 * @property {number} sidecars
 * @property {number} listings
 * @property {number} refused
 * @property {number} first when the first zip was requested, in milliseconds
 * @property {number} last when the last request was answered
 */

/** @typedef {{ url: string, counts: () => Promise<EndlessCounts>, close: () => void }} Endless */

/**
 * @param {EndlessOptions} options
 * @returns {Promise<Endless>}
 */
export async function serveEndless(options) {
  const program = fileURLToPath(new URL('endless-archive.js', import.meta.url));
  const child = fork(program, [JSON.stringify(options)]);
  /** @returns {Promise<any>} */
  const message = () =>
    new Promise((resolve, reject) => {
      const onExit = (/** @type {number | null} */ code) =>
        reject(new Error(`the archive ended with exit code ${code}`));
      child.once('exit', onExit);
      child.once('message', (told) => {
        child.off('exit', onExit);
        resolve(told);
      });
    });
  const { port } = await message();
  return {
    url: `http://127.0.0.1:${port}`,
    counts: () => {
      const told = message();
      child.send('counts');
      return told;
    },
    close: () => child.kill(),
  };
}

const DAY_MS = 86_400_000;

/**
 * @param {string} first
 * @param {number} count
 * @returns {string[]}
 */
export function daysFrom(first, count) {
  return Array.from({ length: count }, (_, index) =>
    new Date(Date.parse(first) + index * DAY_MS).toISOString().slice(0, 10),
  );
}

/**
 * @param {number} year of the first month
 * @param {number} count
 * @returns {string[]}
 */
export function monthsFrom(year, count) {
  return Array.from({ length: count }, (_, index) =>
    new Date(Date.UTC(year, index)).toISOString().slice(0, 7),
  );
}
