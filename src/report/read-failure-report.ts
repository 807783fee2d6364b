/** Reads a failure report for `cryptodl retry`. */
import { lstat, readdir, readFile, realpath, stat } from 'node:fs/promises';
import * as v from 'valibot';
import { errnoOf, usage } from '../model/errors.js';
import { SettingsSchema } from '../model/settings-schema.js';
import { reasonOf } from '../text/path-faults.js';
import { parseJson } from '../text/json.js';

const OptionsSchema = v.record(v.string(), v.array(v.string()));

/** The first line of each report. */
const HeaderSchema = v.object({
  v: v.literal(1),
  kind: v.literal('header'),
  verb: v.picklist(['vision', 'metrics', 'repair', 'run']),
  tool: v.string(),
  at: v.string(),
  options: OptionsSchema,
});

/** A line of a report of several jobs: the options of one job. The failures name their job. */
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
  market: v.string(),
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
/** A failure or a hole, with the number of its line, from 1. */
export type ReportEntry = WrittenEntry & { readonly line: number };

export interface ReadReport {
  /** Path of the file, or of the target if the file is a symbolic link; undefined for a pipe. */
  readonly file: string | undefined;
  readonly header: ReportHeader;
  /** Empty for the report of a single run. */
  readonly jobs: readonly JobHeader[];
  readonly entries: readonly ReportEntry[];
  /** The number of the last line, if that line is cut: its failure is not known. */
  readonly cut: number | undefined;
}

/** The hint for a file that is no report. */
export const GIVE_REPORT =
  'a run with failures writes its report to _failures of the lake: cryptodl retry data/_failures/NAME.jsonl';

/** Reads a report. Throws a usage error if the file cannot be read, and for the first line that is not part of a report. */
export async function readFailureReport(path: string): Promise<ReadReport> {
  const { lines, cut } = await linesOf(path);
  const [first, ...others] = lines;
  const header = v.safeParse(HeaderSchema, first?.content);
  if (!header.success)
    throw usage(`${path} is not a failure report: its first line is not a header`, GIVE_REPORT);
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
  const target = (await lstat(path)).isSymbolicLink() ? await realpath(path) : path;
  const file = (await stat(path)).isFile() ? target : undefined;
  return { file, header: header.output, jobs, entries, cut };
}

/** The name of the newest report in a folder; undefined if the folder has none. */
export async function newestReport(folder: string): Promise<string | undefined> {
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => stampOf(name) !== '')
    .sort((a, b) => (stampOf(a) < stampOf(b) ? -1 : 1))
    .at(-1);
}

/** The time in the name of a report; empty for another file. */
function stampOf(name: string): string {
  if (!name.endsWith('.jsonl')) return '';
  return /-(\d{8}T\d{9}Z.*)/s.exec(name.slice(0, -'.jsonl'.length))?.[1] ?? '';
}

interface Lines {
  readonly lines: readonly { readonly line: number; readonly content: unknown }[];
  readonly cut: number | undefined;
}

async function linesOf(path: string): Promise<Lines> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`cannot read ${path} (${reasonOf(errnoOf(error))})`, GIVE_REPORT);
  }
  const all = text.split('\n').map((each, index) => ({ line: index + 1, text: each.trim() }));
  const lines = all
    .filter((each) => each.text !== '')
    .map((each) => ({ line: each.line, content: parseJson(each.text) }));
  const damaged = lines.find(({ content }) => content === undefined);
  if (damaged === undefined) return { lines, cut: undefined };
  // The last line of a run that was killed has no line end.
  if (damaged.line === all.length) return { lines: lines.slice(0, -1), cut: damaged.line };
  throw usage(`${path} line ${damaged.line} is not JSON`, GIVE_REPORT);
}

/** In a report of several jobs, each failure must name a job of the report, because the line of the job has the options. */
function refuseStrays(path: string, jobs: readonly JobHeader[], entries: readonly ReportEntry[]): void {
  const names = new Set<string | undefined>(jobs.length === 0 ? [undefined] : jobs.map(({ job }) => job));
  const stray = entries.find(({ job }) => !names.has(job));
  if (stray !== undefined)
    throw usage(`${path} line ${stray.line} names no job of the report`, 'remove that line');
}
