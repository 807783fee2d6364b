/** The failure report: one JSON line per failure, written immediately. It is the input of `cryptodl retry`. A report that replaces an earlier one is written beside it, and renamed when it is complete. */
import { periodText } from '../../model/calendar.js';
import { errnoOf, usage } from '../../model/errors.js';
import type { CryptodlError } from '../../model/errors.js';
import { jsonText } from '../../text/printable.js';
import type { ArchiveObject, PartitionPlan } from '../../model/task.js';
import { constants } from 'node:fs';
import { access, open, rename, rm, stat, lstat, readdir, readFile, realpath } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { removeFile } from '../../files/publish.js';
import { dirname, resolve } from 'node:path';
import { makeFolder } from '../../files/disk.js';
import { beginsWith, refuseForeignFile } from '../../files/own-file.js';
import { removeLeftovers, stagedBeside } from '../../files/temp-files.js';
import { reasonOf } from '../../text/path-faults.js';
import * as v from 'valibot';
import { SettingsSchema } from '../../model/settings-schema.js';
import { parseJson } from '../../text/json.js';

const OptionsSchema = v.record(v.string(), v.array(v.string()));

const HeaderSchema = v.object({
  v: v.literal(1),
  kind: v.literal('header'),
  verb: v.picklist(['vision', 'metrics', 'repair']),
  tool: v.string(),
  at: v.string(),
  options: OptionsSchema,
});

const EntrySchema = v.object({
  v: v.literal(1),
  kind: v.literal('failed'),
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

export type RunHeader = Omit<v.InferOutput<typeof HeaderSchema>, 'v' | 'kind'>;
type WrittenEntry = v.InferOutput<typeof EntrySchema>;
/** A failure with the number of its line, from 1. */
type ReportEntry = WrittenEntry & { readonly line: number };

export type ReadReport = Readonly<Awaited<ReturnType<typeof readFailureReport>>>;

export const GIVE_REPORT =
  'a run with failures writes its report to _failures of the lake: cryptodl retry data/_failures/NAME.jsonl';

/** Reads a report. Throws a usage error if the file cannot be read, and for the first line that is not part of a report. */
export async function readFailureReport(path: string) {
  const { lines, cut } = await linesOf(path);
  const [first, ...others] = lines;
  const header = v.safeParse(HeaderSchema, first?.content);
  if (!header.success)
    throw usage(`${path} is not a failure report: its first line is not a header`, GIVE_REPORT);
  const entries: ReportEntry[] = [];
  for (const { line, content } of others) {
    const entry = v.safeParse(EntrySchema, content);
    if (!entry.success)
      throw usage(`${path} line ${line} is not a failure (${entry.issues[0].message})`, 'remove that line');
    entries.push({ ...entry.output, line });
  }
  const target = (await lstat(path)).isSymbolicLink() ? await realpath(path) : path;
  return {
    /** As given. */
    path,
    /** Path of the file, or of the target if the file is a symbolic link; undefined for a pipe. */
    file: (await stat(path)).isFile() ? target : undefined,
    header: header.output,
    entries,
    /** The number of the last line, if that line is cut: its failure is not known. */
    cut,
  };
}

/** The name of the newest report in a folder; undefined if the folder has none. */
export async function newestReport(folder: string): Promise<string | undefined> {
  const names: readonly string[] = await readdir(folder).catch(() => []);
  // The name of another file has no time.
  const reports = names.flatMap((name) => {
    const time = /-(\d{8}T\d{9}Z.*)\.jsonl$/s.exec(name)?.[1];
    return time === undefined ? [] : [{ name, time }];
  });
  return reports.sort((a, b) => (a.time < b.time ? -1 : 1)).at(-1)?.name;
}

/** `cut`: the number of the last line, if that line is cut. */
async function linesOf(path: string) {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw usage(`cannot read ${path} (${reasonOf(errnoOf(error))})`, GIVE_REPORT);
  });
  const all = text.split('\n');
  const lines = all.flatMap((each, index) =>
    each.trim() === '' ? [] : [{ line: index + 1, content: parseJson(each.trim()) }],
  );
  const damaged = lines.find(({ content }) => content === undefined);
  if (damaged === undefined) return { lines, cut: undefined };
  // The last line of a run that was killed has no line end.
  if (damaged.line === all.length) return { lines: lines.slice(0, -1), cut: damaged.line };
  throw usage(`${path} line ${damaged.line} is not JSON`, GIVE_REPORT);
}

export interface FailureReport {
  add(plan: PartitionPlan, object: ArchiveObject, error: CryptodlError, at: string): Promise<void>;
  /** Returns the path of the report, if there is one. A run that ends early keeps the report that it would replace. */
  close(isComplete: boolean): Promise<string | undefined>;
}

export interface ReportFileOptions {
  readonly path: string;
  readonly header: RunHeader;
  /**
   * `new`: a new name beside earlier reports. `overwrite`: the file that the user named.
   * `replace`: replaces an earlier report at the end of the run. Both: a run without failures removes the earlier report.
   */
  readonly mode: 'new' | 'overwrite' | 'replace';
}

/** The first failure creates the file. */
export class FailureFile implements FailureReport {
  readonly #replaces: boolean;
  /** The written file: beside the earlier one while it replaces one. */
  #path: string;
  /** Resolves when all lines so far are written. */
  #written: Promise<FileHandle> | undefined;

  constructor(private readonly options: ReportFileOptions) {
    this.#replaces = options.mode === 'replace';
    this.#path = options.path;
  }

  add(
    { series, settings }: PartitionPlan,
    { period, key }: ArchiveObject,
    { code, retryable, attempts, message }: CryptodlError,
    at: string,
  ): Promise<void> {
    const own = { ...series, cadence: period.cadence, period: periodText(period), key, settings };
    const result = { code, retryable, attempts, message, at };
    const entry = { v: 1, kind: 'failed', ...own, ...result } satisfies WrittenEntry;
    return this.#append(`${jsonText(entry)}\n`);
  }

  async close(isComplete: boolean): Promise<string | undefined> {
    const { path: target, mode } = this.options;
    if (this.#written === undefined) {
      if (!isComplete) return this.#replaces ? target : undefined;
      // A run without failures removes the report of an earlier run, and what a killed retry has left beside it.
      if (mode !== 'new') await removeReport(target);
      if (this.#replaces) await removeLeftovers(dirname(target));
      return undefined;
    }
    const file = await this.#written;
    await file.sync();
    await file.close();
    if (this.#replaces && isComplete) await rename(this.#path, target);
    else if (this.#replaces) await rm(this.#path);
    return target;
  }

  /** Appends whole lines. The header precedes the first one. */
  async #append(lines: string): Promise<void> {
    this.#written = (this.#written ?? this.#start()).then(async (file) => {
      await file.appendFile(lines);
      return file;
    });
    await this.#written;
  }

  async #start(): Promise<FileHandle> {
    const { path, mode, header } = this.options;
    await makeFolder(dirname(path));
    if (this.#replaces) this.#path = await stagedBeside(path);
    // Checked again, because hours may have passed since the run began.
    if (mode === 'overwrite') await refuseForeignReport(path);
    const opened = await open(this.#path, mode === 'overwrite' ? 'w' : 'wx');
    await opened.appendFile(`${jsonText({ v: 1, kind: 'header', ...header })}\n`);
    return opened;
  }
}

/** Keeps an empty file, as `mktemp` makes one. */
async function removeReport(path: string): Promise<void> {
  await refuseForeignReport(path);
  const facts = await stat(path).catch(() => undefined);
  if (facts !== undefined && facts.size > 0) await removeFile(path);
}

function refuseForeignReport(path: string): Promise<void> {
  return refuseForeignFile({
    flag: 'failures',
    path: resolve(path),
    what: 'a failure report',
    isOwn: beginsWith('{"v":1,"kind":"header",'),
  });
}

/** Checks at the start of a run that its report can be written. Rejects with a usage error. */
export async function refuseBadReport({ path, mode }: Omit<ReportFileOptions, 'header'>): Promise<void> {
  const folder = dirname(path);
  if (mode === 'new') {
    const facts = await stat(folder).catch(() => undefined);
    if (facts?.isDirectory() === false)
      throw usage(`${folder} is not a folder, and failure reports are written into it`, 'move it');
    return;
  }
  await refuseForeignReport(path);
  try {
    await makeFolder(folder);
    const written = await stat(path).catch(() => undefined);
    await access(written === undefined ? folder : path, constants.W_OK);
  } catch (error) {
    throw usage(
      `--failures ${path} cannot be written (${reasonOf(errnoOf(error))})`,
      'choose another --failures, or leave it out',
    );
  }
}
