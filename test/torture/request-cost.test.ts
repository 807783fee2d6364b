/**
 * A reduced W1 (bench/README.md): the CPU time of a run, as a multiple of what its requests alone cost in Node. How fast it is
 * beside other programs is measured by bench/run.js.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Contender } from '../../bench/contenders.js';
import { chooseMeter, measure } from '../../bench/measure.js';
import { serveArchive } from '../../bench/servers.js';
import { createWorkloads } from '../../bench/workloads.js';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { scratchFolder } from '../helpers/folders.js';

const ROUNDS = 3;

const scratch = scratchFolder();
const report = join(scratch, 'usage');
const meter = chooseMeter(report);
let server: Awaited<ReturnType<typeof serveArchive>>;
let contenders: readonly Contender[];
beforeAll(async () => {
  const archive = join(scratch, 'archive');
  // 30 symbols.
  const [w1] = createWorkloads(0.3);
  if (w1 === undefined) throw new RangeError('there is no W1');
  const { keys } = makeArchive(archive, w1.archive);
  server = await serveArchive(archive, scratch);
  const { url, listingUrl } = server;
  contenders = w1.contenders({ url, listingUrl, archive, keys, files: join(scratch, 'list') });
});
afterAll(() => {
  server.close();
});

/** Of a contender of W1. */
async function cpuSeconds(id: string): Promise<number> {
  const command = contenders.find((contender) => contender.id === id)?.command ?? [];
  const cwd = join(scratch, 'out');
  rmSync(cwd, { recursive: true, force: true });
  mkdirSync(cwd);
  const env = { PATH: process.env['PATH'], HOME: scratch };
  const { exitCode, stderr, cpuSeconds: used } = await measure(meter, report, command, { cwd, env });
  expect([exitCode, exitCode === 0 ? '' : stderr]).toEqual([0, '']);
  return used ?? Number.NaN;
}

// About twice what it is: other work on the machine costs both sides, but not the same.
it.each([
  { what: 'Parquet', id: 'a', most: 10 },
  { what: 'verified zips', id: 'd', most: 7 },
])('$what cost at most $most times the requests alone', async ({ id, most }) => {
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    ratios.push((await cpuSeconds(id)) / (await cpuSeconds('o')));
  expect(Math.min(...ratios)).toBeLessThan(most);
});
