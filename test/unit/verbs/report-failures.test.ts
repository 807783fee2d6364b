/** The failures of a run in the page of `cryptodl report`. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lakePaths } from '../../../src/lake/layout.js';
import type { RunRecord } from '../../../src/run/monitor/run-record.js';
import { failureData } from '../../../src/verbs/report/report.js';
import { scratchFolder } from '../../helpers/folders.js';
import { runRecord, writeFailures } from '../../helpers/report-lake.js';

const scratch = scratchFolder();
const START = Date.parse('2026-11-20T08:00:00Z');
let lakes = 0;

function newLake(): string {
  const lake = join(scratch, `lake-${(lakes += 1)}`);
  mkdirSync(lake);
  return lake;
}

/** The messages of the page, and the warnings. */
async function shown(run: RunRecord | undefined, lake: string): Promise<readonly unknown[]> {
  const warnings: string[] = [];
  const { path, entries } = await failureData(run, lakePaths(lake), (message) => warnings.push(message));
  return [path, entries.map(({ message }) => message), warnings];
}

describe('the failures of a run', () => {
  it('are found in a lake that was moved', async () => {
    const lake = newLake();
    const run = runRecord(START, { failed: 1, failures: writeFailures(lake, ['one']) });
    renameSync(lake, `${lake}-moved`);
    const path = join(`${lake}-moved`, '_failures/vision-20261120T080000000Z.jsonl');
    expect(await shown(run, `${lake}-moved`)).toEqual([path, ['one'], []]);
    expect(await shown(run, newLake())).toEqual([null, [], []]);
  });

  it('are left out with a warning if the report cannot be read', async () => {
    const lake = newLake();
    const path = writeFailures(lake, ['one']);
    writeFileSync(path, 'notes\n');
    expect(await shown(runRecord(START, { failed: 1, failures: path }), lake)).toEqual([
      null,
      [],
      [expect.stringMatching(/; the page has no failures$/)],
    ]);
  });
});
