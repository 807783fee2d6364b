/** The lines of `cryptodl runs`. */
import { describe, expect, it } from 'vitest';
import type { RunRecord } from '../../src/monitor/run-record.js';
import { runsTable } from '../../src/runs/print-runs.js';
import { runRecord } from '../helpers/report-lake.js';

const START = Date.parse('2026-11-20T08:00:00Z');

function runOf(
  minute: number,
  job: string | undefined,
  changes: Partial<RunRecord['summary']> = {},
): RunRecord {
  const record = runRecord(START + minute * 60_000);
  return { ...record, job, summary: { ...record.summary, ...changes } };
}

describe('the lines of runs', () => {
  it('count partial objects as new, and skipped ones as held', () => {
    const outcomes = { ok: 5, partial: 2, skipped: 30, absent: 400, failed: 1 };
    const [, row = ''] = runsTable([runOf(0, undefined, { outcomes })]);
    expect(row.split(/ {2,}/).slice(3, 6)).toEqual(['7', '30', '1']);
  });
});
