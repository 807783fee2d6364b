/** A failure report that comes back in. */
import { lstat, readFile, realpath, stat } from 'node:fs/promises';
import * as v from 'valibot';
import { errnoOf, usage } from '../errors.js';

const SettingsSchema = v.strictObject({
  format: v.picklist(['parquet', 'csv', 'zip']),
  partition: v.picklist(['day', 'month']),
  cadence: v.picklist(['auto', 'daily', 'monthly']),
  numbers: v.picklist(['double', 'string']),
  timestamps: v.picklist(['us', 'ms', 'iso']),
  asPublished: v.boolean(),
});

const OptionsSchema = v.record(v.string(), v.array(v.string()));

/** The first line of every report. */
const HeaderSchema = v.object({
  v: v.literal(1),
  kind: v.literal('header'),
  verb: v.string(),
  tool: v.string(),
  at: v.string(),
  options: OptionsSchema,
});

/** Of a run of several jobs: what its failures, which name it, have been run with. */
const JobSchema = v.object({
  v: v.literal(1),
  kind: v.literal('job'),
  job: v.string(),
  verb: v.picklist(['vision', 'metrics']),
  options: OptionsSchema,
});

const EntrySchema = v.object({
  v: v.literal(1),
  kind: v.picklist(['failed', 'absent']),
  job: v.optional(v.string()),
  market: v.picklist(['spot', 'um', 'cm', 'option']),
  dataset: v.string(),
  interval: v.optional(v.string()),
  symbol: v.string(),
  cadence: v.picklist(['daily', 'monthly']),
  period: v.string(),
  key: v.string(),
  code: v.string(),
  retryable: v.boolean(),
  attempts: v.number(),
  message: v.string(),
  at: v.string(),
  settings: SettingsSchema,
});

export type ReportHeader = v.InferOutput<typeof HeaderSchema>;
export type JobHeader = v.InferOutput<typeof JobSchema>;
export type WrittenEntry = v.InferOutput<typeof EntrySchema>;
/** With the number of its line, from 1. */
export type ReportEntry = WrittenEntry & { readonly line: number };

export interface ReadReport {
  /** What was read, behind a symbolic link; undefined for what came through a pipe. */
  readonly file: string | undefined;
  readonly header: ReportHeader;
  /** Empty for the report of a single run. */
  readonly jobs: readonly JobHeader[];
  readonly entries: readonly ReportEntry[];
}

/** Reads a report. Usage errors for files that are none, with the line. A torn last line is ignored. */
export async function readFailureReport(path: string): Promise<ReadReport> {
  const parsed = await linesOf(path);
  const header = v.safeParse(HeaderSchema, parsed[0]);
  if (!header.success)
    throw usage(
      `${path} is not a failure report: its first line is no header`,
      'give the failure report of a run',
    );
  const jobs: JobHeader[] = [];
  const entries: ReportEntry[] = [];
  for (const [index, content] of parsed.entries()) {
    if (index === 0) continue;
    const line = index + 1;
    const job = v.safeParse(JobSchema, content);
    if (job.success) {
      jobs.push(job.output);
      continue;
    }
    const entry = v.safeParse(EntrySchema, content);
    if (!entry.success)
      throw usage(`${path} line ${line} is not a failure (${entry.issues[0].message})`, 'remove that line');
    entries.push({ ...entry.output, line });
  }
  refuseStrays(path, jobs, entries);
  return { file: await fileOf(path), header: header.output, jobs, entries };
}

/** Whether a text is the first line of a report. */
export function isHeader(line: string): boolean {
  try {
    return v.is(HeaderSchema, JSON.parse(line));
  } catch {
    return false;
  }
}

async function fileOf(path: string): Promise<string | undefined> {
  if (!(await stat(path)).isFile()) return undefined;
  return (await lstat(path)).isSymbolicLink() ? realpath(path) : path;
}

async function linesOf(path: string): Promise<unknown[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`cannot read ${path} (${errnoOf(error)})`, 'cryptodl retry data/failures/vision-….jsonl');
  }
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line, index) => {
    try {
      return JSON.parse(line) as unknown;
    } catch {
      throw usage(`${path} line ${index + 1} is not JSON`, 'give the failure report of a run');
    }
  });
}

/** A failure whose job is not told has no options to be run with. */
function refuseStrays(path: string, jobs: readonly JobHeader[], entries: readonly ReportEntry[]): void {
  const names = new Set(jobs.map(({ job }) => job));
  const isStray = ({ job }: ReportEntry): boolean => (job === undefined ? names.size > 0 : !names.has(job));
  const stray = entries.find(isStray);
  if (stray === undefined) return;
  const whose =
    stray.job === undefined ? 'names no job' : `is of the job "${stray.job}", which no line tells`;
  throw usage(`${path} line ${stray.line} ${whose}`, 'remove that line');
}
