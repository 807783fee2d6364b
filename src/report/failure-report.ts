/** What failed, as JSON Lines, written as it happens; the input of `cryptodl retry`. */
import { periodText } from '../model/calendar.js';
import type { CryptodlError } from '../model/errors.js';
import { jsonText } from '../text/printable.js';
import type { PartitionPlan, Task } from '../model/task.js';
import type { JobHeader, ReportHeader, WrittenEntry } from './read-failure-report.js';
import { createReportFile } from './report-file.js';
import type { ReportFileOptions } from './report-file.js';

/** Holes found before the first failure wait in memory, up to this many. */
const PENDING_HOLES = 1000;

export interface FailureReport {
  add(plan: PartitionPlan, task: Pick<Task, 'object'>, error: CryptodlError, at: string): Promise<void>;
  addHole(plan: PartitionPlan, task: Task, at: string): void;
  /** Path of the report, when there is one. A run that did not reach its end leaves the report it would replace. */
  close(isComplete: boolean): Promise<string | undefined>;
}

/** What a run says of itself. */
export type RunHeader = Omit<ReportHeader, 'v' | 'kind' | 'verb'> & {
  readonly verb: 'vision' | 'metrics' | 'retry' | 'repair';
};

/** The file is made with the first failure; holes are named in it, but do not make one. */
export function createFailureReport(options: ReportFileOptions): FailureReport {
  const file = createReportFile(options);
  return { ...failuresInto((lines) => file.append(lines)), close: (isComplete) => file.close(isComplete) };
}

/** From what a report of its own would begin with to a run's part of another one. */
export type ShareReport = (header: RunHeader) => FailureReport;

/** One report of several jobs: a line for each job that has failures, which name it. */
export interface JobsReport {
  ofJob(job: Pick<JobHeader, 'job' | 'verb'>): ShareReport;
  /** Path of the report, when there is one. */
  close(): Promise<string | undefined>;
}

/** `isWhole`: whether every job came to its end; asked when the report is closed. */
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
        // Told once, by whoever runs them all.
        close: () => Promise.resolve(undefined),
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
            ? 'the archive does not have it, but has its neighbours'
            : 'REST answers without a row of it',
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
  what: Pick<WrittenEntry, 'kind' | 'code' | 'retryable' | 'attempts' | 'message' | 'at'>,
): string {
  const { series, settings } = plan;
  const { period, key } = task.object;
  const entry: WrittenEntry = {
    v: 1,
    ...(job === undefined ? {} : { job }),
    ...series,
    cadence: period.cadence,
    period: periodText(period),
    key,
    settings,
    ...what,
  };
  return `${jsonText(entry)}\n`;
}
