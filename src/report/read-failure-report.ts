/** A failure report that comes back in. */
import { lstat, readFile, realpath, stat } from 'node:fs/promises';
import * as v from 'valibot';
import { errnoOf, usage } from '../model/errors.js';

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
  /** The last line, when it was not written to its end: what failed there is not known. */
  readonly cut: CutLine | undefined;
}

export interface CutLine {
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

/** Reads a report. Usage errors for files that are none, with the line. */
export async function readFailureReport(path: string): Promise<ReadReport> {
  const { lines, cut } = await linesOf(path);
  const [first, ...others] = lines;
  const header = v.safeParse(HeaderSchema, first?.content);
  if (!header.success)
    throw usage(
      `${path} is not a failure report: its first line is no header`,
      'give the failure report of a run',
    );
  const jobs: JobHeader[] = [];
  const entries: ReportEntry[] = [];
  for (const { line, content } of others) {
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
  return { file: await fileOf(path), header: header.output, jobs, entries, cut };
}

/** Whether a text is the first line of a report. */
export function isHeader(line: string): boolean {
  return v.is(HeaderSchema, contentOf(line));
}

/** Whether a text is a line below the first, or blank. */
export function isLineBelow(line: string): boolean {
  const content = contentOf(line);
  return v.is(EntrySchema, content) || v.is(JobSchema, content) || line.trim() === '';
}

/** How all lines of a report begin. */
const LINE_START = '{"v":1,';

/** Whether a text may be a line that was not written to its end. */
export function isCutLine(line: string): boolean {
  return line.startsWith(LINE_START) || LINE_START.startsWith(line);
}

async function fileOf(path: string): Promise<string | undefined> {
  if (!(await stat(path)).isFile()) return undefined;
  return (await lstat(path)).isSymbolicLink() ? realpath(path) : path;
}

interface Lines {
  readonly lines: readonly { readonly line: number; readonly content: unknown }[];
  readonly cut: CutLine | undefined;
}

async function linesOf(path: string): Promise<Lines> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`cannot read ${path} (${errnoOf(error)})`, 'cryptodl retry data/failures/vision-….jsonl');
  }
  const texts = text.split('\n').map((each, index) => ({ line: index + 1, text: each }));
  const last = texts.at(-1);
  const cut = last !== undefined && contentOf(last.text) === undefined ? texts.pop() : undefined;
  const lines = texts
    .filter((each) => each.text.trim() !== '')
    .map((each) => {
      const content = contentOf(each.text);
      if (content === undefined)
        throw usage(`${path} line ${each.line} is not JSON`, 'give the failure report of a run');
      return { line: each.line, content };
    });
  return { lines, cut: cut?.text.trim() === '' ? undefined : cut };
}

/** Undefined for what is not JSON. */
function contentOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
