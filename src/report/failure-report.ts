/** The failure report: one JSON line per failure, written immediately. It is the input of `cryptodl retry`. */
import { periodText } from '../model/calendar.js';
import type { CryptodlError } from '../model/errors.js';
import { jsonText } from '../text/printable.js';
import type { PartitionPlan, Task } from '../model/task.js';
import type { JobHeader, ReportHeader, WrittenEntry } from './read-failure-report.js';
import { createReportFile } from './report-file.js';
import type { ReportFileOptions } from './report-file.js';

/** Holes that wait in memory for the first failure, at most. */
const PENDING_HOLES = 1000;

export interface FailureReport {
  add(plan: PartitionPlan, task: Pick<Task, 'object'>, error: CryptodlError, at: string): Promise<void>;
  addHole(plan: PartitionPlan, task: Task, at: string): void;
  /** Returns the path of the report, if there is one. A run that ends early keeps the report that it would replace. */
  close(isComplete: boolean): Promise<string | undefined>;
}

/** The header of a report, without its fixed fields. */
export type RunHeader = Omit<ReportHeader, 'v' | 'kind' | 'verb'> & {
  readonly verb: Exclude<ReportHeader['verb'], 'run'>;
};

/** The first failure creates the file. Holes are written to it, but do not create it. */
export function createFailureReport(options: ReportFileOptions): FailureReport {
  const file = createReportFile(options);
  return { ...failuresInto((lines) => file.append(lines)), close: (isComplete) => file.close(isComplete) };
}

/** Returns the report of one job, which is a part of the common report. `header`: the header of that job. */
export type ShareReport = (header: RunHeader) => FailureReport;

/** One report of several jobs: a line for each job with failures. The failures name their job. */
export interface JobsReport {
  ofJob(job: Pick<JobHeader, 'job' | 'verb'>): ShareReport;
  /** Path of the report, if there is one. */
  close(): Promise<string | undefined>;
}

/** `isWhole`: whether every job reached its end; called when the report is closed. */
export function createJobsReport(options: ReportFileOptions, isWhole: () => boolean): JobsReport {
  const file = createReportFile(options);
  return {
    ofJob: (job) => (header) => {
      let hasFailed = false;
      const line = `${jsonText({ v: 1, kind: 'job', ...job, options: header.options })}\n`;
      const append = (lines: string): Promise<void> => {
        const first = hasFailed ? '' : line;
        hasFailed = true;
        return file.append(`${first}${lines}`);
      };
      return {
        ...failuresInto(append, job.job),
        close: () => Promise.resolve(hasFailed ? file.place() : undefined),
      };
    },
    close: () => file.close(isWhole()),
  };
}

function failuresInto(
  append: (lines: string) => Promise<void>,
  job?: string,
): Pick<FailureReport, 'add' | 'addHole'> {
  let holes: string[] = [];
  let hasFailed = false;
  return {
    add: (plan, task, error, at) => {
      const line = lineOf(plan, task, job, {
        kind: 'failed',
        code: error.code,
        retryable: error.retryable,
        attempts: error.attempts,
        message: error.message,
        at,
      });
      const lines = [...holes, line].join('');
      holes = [];
      hasFailed = true;
      return append(lines);
    },
    addHole: (plan, task, at) => {
      const line = lineOf(plan, task, job, {
        kind: 'absent',
        code: 'hole',
        retryable: true,
        attempts: 1,
        message:
          task.object.rest === undefined
            ? 'the archive does not have it, but has periods before and after it'
            : 'REST has no row of this period',
        at,
      });
      if (hasFailed) append(line).catch(() => undefined);
      else if (holes.length < PENDING_HOLES) holes.push(line);
    },
  };
}

function lineOf(
  plan: PartitionPlan,
  task: Pick<Task, 'object'>,
  job: string | undefined,
  result: Pick<WrittenEntry, 'kind' | 'code' | 'retryable' | 'attempts' | 'message' | 'at'>,
): string {
  const { series, settings } = plan;
  const { period, key } = task.object;
  const entry: WrittenEntry = {
    v: 1,
    job,
    ...series,
    cadence: period.cadence,
    period: periodText(period),
    key,
    settings,
    ...result,
  };
  return `${jsonText(entry)}\n`;
}
