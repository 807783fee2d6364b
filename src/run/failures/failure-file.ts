/** The file of the failure report: one JSON line per failure, written immediately. A report that replaces an earlier one is written beside it, and renamed when it is complete. */
import { periodText } from '../../model/calendar.js';
import { usage, type CryptodlError } from '../../model/errors.js';
import { jsonText } from '../../text/printable.js';
import type { SourceObject, PartitionPlan } from '../../model/task.js';
import { constants } from 'node:fs';
import { access, open, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { removeFile } from '../../files/publish.js';
import { dirname, resolve, join } from 'node:path';
import { makeFolder } from '../../files/disk.js';
import { beginsWith, refuseForeignFile } from '../../files/own-file.js';
import { removeLeftovers, stagedBeside } from '../../files/temp-files.js';
import { reasonOf } from '../../text/path-faults.js';
import type { RunHeader, WrittenEntry } from './read-failure-report.js';
import { runId } from '../monitor/run-record.js';
import type { ReportedRun } from './run-header.js';
import type { RunSession } from '../session/session.js';

/** Takes the failures of a run. */
export interface FailureReport {
  add(plan: PartitionPlan, object: SourceObject, error: CryptodlError, at: string): Promise<void>;
  /** Returns the path of the report, if there is one. A run that ends early keeps the report that it would replace. */
  close(isComplete: boolean): Promise<string | undefined>;
}

interface ReportFileOptions {
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

  /** Appends a line. The header precedes the first one. */
  async add(
    { series, settings }: PartitionPlan,
    { period, key }: SourceObject,
    { code, retryable, attempts, message }: CryptodlError,
    at: string,
  ): Promise<void> {
    const own = { ...series, cadence: period.cadence, period: periodText(period), key, settings };
    const result = { code, retryable, attempts, message, at };
    const entry = { v: 1, kind: 'failed', ...own, ...result } satisfies WrittenEntry;
    this.#written = (this.#written ?? this.#start()).then(async (file) => {
      await file.appendFile(`${jsonText(entry)}\n`);
      return file;
    });
    await this.#written;
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
      `--failures ${path} cannot be written (${reasonOf(error)})`,
      'choose another --failures, or leave it out',
    );
  }
}

/** The path of the report, and what becomes of an earlier one. A retry replaces the report that it repeats, unless --failures names another. */
export function reportPlace(
  { options: { failures }, paths, clock }: Pick<RunSession, 'clock' | 'options' | 'paths'>,
  { verb, failures: past }: Pick<ReportedRun, 'verb' | 'failures'>,
): Pick<ReportFileOptions, 'path' | 'mode'> {
  const earlier = past?.file;
  if (earlier !== undefined && (failures === undefined || resolve(failures) === resolve(earlier)))
    return { path: earlier, mode: 'replace' };
  if (failures !== undefined) return { path: failures, mode: 'overwrite' };
  return { path: join(paths.failures, `${verb}-${runId(clock.now())}.jsonl`), mode: 'new' };
}
