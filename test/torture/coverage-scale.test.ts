/** Coverage of a lake with a million objects: right totals in little memory. bench/coverage.js measures the time. */
import { createReadStream, openSync, closeSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { LARGE_LAKE_NOW, largeLakeTotals, makeLargeLake } from '../../scripts/synthetic-lake.js';
import { scratchFolder } from '../helpers/folders.js';

const BIN = fileURLToPath(new URL('../../bin/cryptodl.js', import.meta.url));
const SERIES = 1000;
const MOST_MB = 250;
/** Prints the peak memory of the process on stderr, in kB. */
const METER = `data:text/javascript,process.on('exit',()=>process.stderr.write('peak '+process.resourceUsage().maxRSS))`;

const scratch = scratchFolder();
const lake = join(scratch, 'lake');
beforeAll(() => {
  makeLargeLake(lake, SERIES);
});

/** Runs coverage with stdout to a file. Resolves with the peak memory in MB. */
async function run(file: string, ...flags: readonly string[]): Promise<number> {
  const stdout = openSync(file, 'w');
  const args = ['--import', METER, BIN, 'coverage', '--out', lake, '--now', LARGE_LAKE_NOW, ...flags];
  const child = spawn(process.execPath, args, { stdio: ['ignore', stdout, 'pipe'] });
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  closeSync(stdout);
  expect([code, stderr]).toEqual([0, expect.stringMatching(/peak \d+$/) as string]);
  return Number(/peak (\d+)$/.exec(stderr)?.[1]) / 1024;
}

async function linesOf(file: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of createInterface(createReadStream(file))) lines.push(line);
  return lines;
}

describe(`${SERIES} series of 1,000 lines`, () => {
  it('--json has the right totals', async () => {
    const file = join(scratch, 'json');
    const peakMb = await run(file, '--json');
    const records = (await linesOf(file)).map((line) => JSON.parse(line) as Record<string, unknown>);
    const summary = records.pop();
    const sum = (name: string): number => records.reduce((all, record) => all + Number(record[name]), 0);
    const totals = largeLakeTotals(SERIES);
    expect({ objects: sum('objects'), expected: sum('expected'), missing: sum('missing') }).toEqual(totals);
    expect(sum('revisions')).toBe(SERIES);
    expect(summary).toMatchObject({ series: SERIES, incomplete: SERIES });
    expect(peakMb).toBeLessThan(MOST_MB);
  });

  it('the text has a heat-map line for each series', async () => {
    const file = join(scratch, 'text');
    const peakMb = await run(file);
    const cells = (await linesOf(file)).filter((line) => /^S\d+USDT {2}[█▓]{33} {2}99\.89 %$/.test(line));
    expect(cells).toHaveLength(SERIES);
    expect(peakMb).toBeLessThan(MOST_MB);
  });
});
