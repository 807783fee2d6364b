/**
 * Random archives against the promise of the program: a lake that lacks a row is never called complete, one that lacks none is never
 * called incomplete, and a run takes what the archive has of an order.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { tryWorld } from '../helpers/proof-lake.js';
import { worldOf } from '../helpers/proof-world.js';
import { sized } from '../helpers/tier-size.js';
import { TimedArchive } from '../helpers/timed-archive.js';

/** `12` or `0-1999`. */
const [FIRST = 0, LAST = FIRST] = (process.env['CRYPTODL_PROOF_SEEDS'] ?? sized('0-59', '0-4', '0-1999'))
  .split('-')
  .map(Number);

/**
 * Seeds whose lakes are still called what they are not. 162, 464, 502: a monthly object lacks rows of some days, the daily objects lack one day
 * that it has, and the run keeps the month. 183: a symbol is listed again, and its series by month does not tell yet.
 */
const OPEN: ReadonlySet<number> = new Set([]);

const archive = new TimedArchive();
const scratch = scratchFolder();
beforeAll(() => archive.open());
afterAll(() => archive.close());

it(`the lakes of the seeds ${FIRST} … ${LAST} are called what they are`, async () => {
  const wrong: string[] = [];
  const nowRight: number[] = [];
  for (let seed = FIRST; seed <= LAST; seed += 1) {
    const world = worldOf(seed);
    const lake = join(scratch, `lake-${seed}`);
    const problems = await tryWorld(world, archive, lake);
    rmSync(lake, { recursive: true, force: true });
    if (OPEN.has(seed) && problems.length === 0) nowRight.push(seed);
    if (problems.length > 0 && !OPEN.has(seed))
      wrong.push([`seed ${seed}`, ...world.story, ...problems.map((text) => `=> ${text}`)].join('\n  '));
  }
  expect([wrong.join('\n'), nowRight]).toEqual(['', []]);
}, 1_800_000);
