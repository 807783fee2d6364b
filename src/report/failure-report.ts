/** What failed, as JSON Lines, written as it happens; the input of `cryptodl retry`. */
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as v from 'valibot';
import { periodText } from '../calendar.js';
import { errnoOf, usage } from '../errors.js';
import type { CryptodlError } from '../errors.js';
import type { PartitionPlan, Task } from '../task.js';

const SettingsSchema = v.strictObject({
  format: v.picklist(['parquet', 'csv', 'zip']),
  partition: v.picklist(['day', 'month']),
  cadence: v.picklist(['auto', 'daily', 'monthly']),
  numbers: v.picklist(['double', 'string']),
  timestamps: v.picklist(['us', 'ms', 'iso']),
  asPublished: v.boolean(),
});

const HeaderSchema = v.object({
  v: v.literal(1),
  kind: v.literal('header'),
  verb: v.string(),
  tool: v.string(),
  at: v.string(),
  options: v.record(v.string(), v.array(v.string())),
});

const EntrySchema = v.object({
  v: v.literal(1),
  kind: v.picklist(['failed', 'absent']),
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
export type ReportEntry = v.InferOutput<typeof EntrySchema>;

/** Holes found before the first failure wait in memory, up to this many. */
const PENDING_HOLES = 1000;

export interface FailureReport {
  add(plan: PartitionPlan, task: Task, error: CryptodlError, at: string): Promise<void>;
  addHole(plan: PartitionPlan, task: Task, at: string): void;
  /** Path of the report, when there is one. A run that did not reach its end leaves the report it would replace. */
  close(isComplete: boolean): Promise<string | undefined>;
}

export interface ReportOptions {
  readonly path: string;
  readonly header: Omit<ReportHeader, 'v' | 'kind'>;
  /**
   * `new`: beside earlier reports, under a name that none of them has. `overwrite`: the file that was asked for.
   * `replace`: takes the place of an earlier report when the run ends, even empty: what succeeded leaves it.
   */
  readonly mode: 'new' | 'overwrite' | 'replace';
}

/** The file is made with the first failure; holes are named in it, but do not make one. */
export function createFailureReport(options: ReportOptions): FailureReport {
  const replaces = options.mode === 'replace';
  let path = replaces ? `${options.path}.partial` : options.path;
  let file: Promise<FileHandle> | undefined;
  let tail = Promise.resolve();
  let holes: string[] = [];
  const start = async (): Promise<FileHandle> => {
    await mkdir(dirname(path), { recursive: true });
    const opened = options.mode === 'new' ? await openNew(path) : { path, handle: await open(path, 'w') };
    path = opened.path;
    const header = JSON.stringify({ v: 1, kind: 'header', ...options.header });
    await opened.handle.appendFile(`${header}\n${holes.join('')}`);
    holes = [];
    return opened.handle;
  };
  const append = async (line: string): Promise<void> => {
    const opened = await (file ??= start());
    const mine = tail.then(() => opened.appendFile(line));
    tail = mine;
    await mine;
  };
  return {
    add: (plan, task, error, at) =>
      append(
        lineOf(plan, task, {
          kind: 'failed',
          code: error.code,
          retryable: error.retryable,
          attempts: error.attempts,
          message: error.message,
          at,
        }),
      ),
    addHole: (plan, task, at) => {
      const line = lineOf(plan, task, {
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
      if (file === undefined) {
        if (holes.length < PENDING_HOLES) holes.push(line);
      } else {
        append(line).catch(() => undefined);
      }
    },
    close: async (isComplete) => {
      if (replaces) holes = [];
      if (file === undefined && replaces) file = start();
      // A run without failures leaves no failures of an earlier one under the name that it was given.
      if (file === undefined && options.mode === 'overwrite' && isComplete) await rm(path, { force: true });
      if (file === undefined) return undefined;
      const opened = await file;
      await tail;
      await opened.sync();
      await opened.close();
      if (replaces && isComplete) await rename(path, options.path);
      else if (replaces) await rm(path);
      return replaces ? options.path : path;
    },
  };
}

/** `vision-….jsonl`, or `vision-…-2.jsonl` where an earlier run of the same second has that name. */
async function openNew(path: string): Promise<{ path: string; handle: FileHandle }> {
  for (let copy = 1; ; copy += 1) {
    const candidate = copy === 1 ? path : path.replace(/(\.\w+)?$/, `-${copy}$1`);
    try {
      return { path: candidate, handle: await open(candidate, 'wx') };
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
    }
  }
}

function lineOf(
  plan: PartitionPlan,
  task: Task,
  what: Pick<ReportEntry, 'kind' | 'code' | 'retryable' | 'attempts' | 'message' | 'at'>,
): string {
  const { series, settings } = plan;
  const { period, key } = task.object;
  const entry: ReportEntry = {
    v: 1,
    ...series,
    cadence: period.cadence,
    period: periodText(period),
    key,
    settings,
    ...what,
  };
  return `${JSON.stringify(entry)}\n`;
}

/** Reads a report. Usage errors for files that are none, with the line. A torn last line is ignored. */
export async function readFailureReport(
  path: string,
): Promise<{ header: ReportHeader; entries: ReportEntry[] }> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`cannot read ${path} (${errnoOf(error)})`, 'cryptodl retry data/failures/vision-….jsonl');
  }
  const lines = text.split('\n').slice(0, -1);
  const parsed = lines.map((line, index) => {
    try {
      return JSON.parse(line) as unknown;
    } catch {
      throw usage(`${path} line ${index + 1} is not JSON`, 'give the failure report of a run');
    }
  });
  const header = v.safeParse(HeaderSchema, parsed[0]);
  if (!header.success)
    throw usage(
      `${path} is not a failure report: its first line is no header`,
      'give the failure report of a run',
    );
  const entries = parsed.slice(1).map((entry, index) => {
    const result = v.safeParse(EntrySchema, entry);
    if (!result.success)
      throw usage(
        `${path} line ${index + 2} is not a failure (${result.issues[0].message})`,
        'remove that line',
      );
    return result.output;
  });
  return { header: header.output, entries };
}
