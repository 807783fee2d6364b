/** The failure report: one JSON line per failure, written immediately. It is the input of `cryptodl retry`. A report that replaces an earlier one is written beside it, and renamed when it is complete. */
import { periodText } from '../model/calendar.js';
import { errnoOf, usage } from '../model/errors.js';
import type { CryptodlError } from '../model/errors.js';
import { jsonText } from '../text/printable.js';
import type { PartitionPlan, Task } from '../model/task.js';
import type { JobHeader, ReportHeader, WrittenEntry } from './read-failure-report.js';
import { constants } from 'node:fs';
import { access, open, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { makeFolder } from '../files/disk.js';
import { beginsWith, refuseForeignFile } from '../files/own-file.js';
import { removeLeftovers, stagedBeside } from '../files/temp-files.js';
import { reasonOf } from '../text/path-faults.js';

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
  return { ...failuresInto(file.append), close: file.close };
}

/** Returns the report of one job, which is a part of the common report. `header`: the header of that job. */
export type ShareReport = (header: RunHeader) => FailureReport;

/** One report of several jobs: a line for each job with failures. The failures name their job. */
export interface JobsReport {
  ofJob(job: Pick<JobHeader, 'job' | 'verb'>): ShareReport;
  /** Returns the path of the report, if there is one. `isComplete`: every job reached its end. */
  close: FailureReport['close'];
}

export function createJobsReport(options: ReportFileOptions): JobsReport {
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
        close: () => Promise.resolve(hasFailed ? options.path : undefined),
      };
    },
    close: (isComplete) => file.close(isComplete),
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

export interface ReportFileOptions {
  readonly path: string;
  readonly header: Omit<ReportHeader, 'v' | 'kind'>;
  /**
   * `new`: a new name beside earlier reports. `overwrite`: the file that the user named.
   * `replace`: replaces an earlier report at the end of the run. Both: a run without failures removes the earlier report.
   */
  readonly mode: 'new' | 'overwrite' | 'replace';
}

/** `append`: appends whole lines. The header precedes the first one. */
function createReportFile(
  options: ReportFileOptions,
): Pick<FailureReport, 'close'> & { append: (lines: string) => Promise<void> } {
  const replaces = options.mode === 'replace';
  const target = options.path;
  let path = target;
  let file: Promise<FileHandle> | undefined;
  let tail = Promise.resolve();
  const start = async (): Promise<FileHandle> => {
    await makeFolder(dirname(target));
    if (replaces) path = await stagedBeside(target);
    // Checked again, because hours may have passed since the run began.
    if (options.mode === 'overwrite') await refuseForeignReport(path);
    const opened = await open(path, options.mode === 'overwrite' ? 'w' : 'wx');
    await opened.appendFile(`${jsonText({ v: 1, kind: 'header', ...options.header })}\n`);
    return opened;
  };
  return {
    append: async (lines) => {
      const opened = await (file ??= start());
      const written = tail.then(() => opened.appendFile(lines));
      tail = written;
      await written;
    },
    close: async (isComplete) => {
      if (file === undefined) {
        if (!isComplete) return replaces ? target : undefined;
        // A run without failures removes the report of an earlier run, and what a killed retry has left beside it.
        if (options.mode !== 'new') await removeReport(target);
        if (replaces) await removeLeftovers(dirname(target));
        return undefined;
      }
      const opened = await file;
      await tail;
      await opened.sync();
      await opened.close();
      if (replaces && isComplete) await rename(path, target);
      else if (replaces) await rm(path);
      return target;
    },
  };
}

/** Keeps an empty file, as `mktemp` makes one. */
async function removeReport(path: string): Promise<void> {
  await refuseForeignReport(path);
  const facts = await stat(path).catch(() => undefined);
  if (facts !== undefined && facts.size > 0) await rm(path, { force: true });
}

function refuseForeignReport(path: string): Promise<void> {
  return refuseForeignFile({
    flag: 'failures',
    path: resolve(path),
    what: 'a failure report',
    isOwn: beginsWith('{"v":1,"kind":"header",'),
  });
}

/** Checks at the start of a run that the report can be written to a path that is not new. Rejects with a usage error. */
export async function refuseBadPath(path: string): Promise<void> {
  await refuseForeignReport(path);
  try {
    await makeFolder(dirname(path));
    const written = await stat(path).catch(() => undefined);
    await access(written === undefined ? dirname(path) : path, constants.W_OK);
  } catch (error) {
    throw usage(
      `--failures ${path} cannot be written (${reasonOf(errnoOf(error))})`,
      'choose another --failures, or leave it out',
    );
  }
}

/** Rejects with a usage error if the path of the folder for reports is not a folder. */
export async function refuseBadFolder(folder: string): Promise<void> {
  const facts = await stat(folder).catch(() => undefined);
  if (facts !== undefined && !facts.isDirectory())
    throw usage(`${folder} is not a folder, and failure reports are written into it`, 'move it');
}
