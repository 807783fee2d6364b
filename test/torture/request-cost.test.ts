/**
 * A reduced W1 (bench/README.md): the CPU time of a run, as a multiple of what its requests alone cost in Node. How fast it is
 * beside other programs is measured by bench/run.js.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { cryptodl, requestsAlone } from '../../bench/contenders.js';
import type { Contender } from '../../bench/contenders.js';
import { chooseMeter, measure } from '../../bench/measure.js';
import { serveArchive } from '../../bench/servers.js';
import { createWorkloads } from '../../bench/workloads.js';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { scratchFolder } from '../helpers/folders.js';

const ROUNDS = 3;
const RANGE = '--from 2024-01-01 --to 2024-01-31';
const LINE = `vision --dataset metrics --symbols all ${RANGE} --concurrency 50`;

const scratch = scratchFolder();
const report = join(scratch, 'usage');
const meter = chooseMeter(report);
let server: Awaited<ReturnType<typeof serveArchive>>;
let place: Parameters<typeof requestsAlone>[0];
beforeAll(async () => {
  const archive = join(scratch, 'archive');
  // 30 symbols.
  const [w1] = createWorkloads(0.3);
  if (w1 === undefined) throw new RangeError('there is no W1');
  const { keys } = makeArchive(archive, w1.archive);
  server = await serveArchive(archive, scratch);
  place = { url: server.url, listingUrl: server.listingUrl, archive, keys, files: join(scratch, 'list') };
});
afterAll(() => {
  server.close();
});

async function cpuSeconds({ command }: Contender): Promise<number> {
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
  { what: 'Parquet', format: 'parquet', most: 10 },
  { what: 'verified zips', format: 'zip', most: 7 },
])('$what cost at most $most times the requests alone', async ({ format, most }) => {
  const what = { id: 'a', name: format, makes: 'nothing' } as const;
  const ours = cryptodl(place, what, `${LINE} --format ${format}`);
  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    ratios.push((await cpuSeconds(ours)) / (await cpuSeconds(requestsAlone(place, 'o'))));
  expect(Math.min(...ratios)).toBeLessThan(most);
});
