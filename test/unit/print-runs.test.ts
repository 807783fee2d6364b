/** The lines of `cryptodl runs`. */
import { expect, it } from 'vitest';
import { runsTable } from '../../src/runs/print-runs.js';
import { runRecord } from '../helpers/report-lake.js';

it('the lines of runs count partial objects as new, and skipped ones as held', () => {
  const run = runRecord(Date.parse('2026-11-20T08:00:00Z'));
  const outcomes = { ok: 5, partial: 2, skipped: 30, absent: 400, failed: 1 };
  const [, row = ''] = runsTable([{ ...run, summary: { ...run.summary, outcomes } }]);
  expect(row.split(/ {2,}/).slice(3, 6)).toEqual(['7', '30', '1']);
});
