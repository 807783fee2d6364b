/**
 * The recipe of the README in the care of cron, `vision … --days 7` each day, with accidents: outages of the archive, days without a run,
 * killed processes, late and revised objects, stalled datasets, symbols that are added to the list. `check` is right after each day, and
 * the lake ends with every row that was published.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { lackingAtEnd, tryWorld } from '../helpers/proof-lake.js';
import { cronRuns, worldOf } from '../helpers/proof-world.js';
import { sized } from '../helpers/tier-size.js';
import { TimedArchive } from '../helpers/timed-archive.js';

/** `12` or `0-1999`. */
const [FIRST = 0, LAST = FIRST] = (process.env['CRYPTODL_PROOF_SEEDS'] ?? sized('0-7', '0-1', '0-99'))
  .split('-')
  .map(Number);
const DAYS = sized(35, 8);

const archive = new TimedArchive();
const scratch = scratchFolder();
beforeAll(() => archive.open());
afterAll(() => archive.close());

it(`the lakes of cron of the seeds ${FIRST} … ${LAST} are called what they are for ${DAYS} days`, async () => {
  const wrong: string[] = [];
  for (let seed = FIRST; seed <= LAST; seed += 1) {
    const world = worldOf(seed, cronRuns(DAYS), 14);
    const lake = join(scratch, `lake-${seed}`);
    const problems = [...(await tryWorld(world, archive, lake)), ...(await lackingAtEnd(world, lake))];
    for (const path of [lake, `${lake}-state`]) rmSync(path, { recursive: true, force: true });
    if (problems.length > 0)
      wrong.push([`seed ${seed}`, ...world.story, ...problems.map((text) => `=> ${text}`)].join('\n  '));
  }
  expect(wrong.join('\n')).toEqual('');
}, 1_800_000);
