/** Opens the failure report of a run. */
import { dirname, join, resolve } from 'node:path';
import { lakePaths } from '../lake/layout.js';
import { TOOL_VERSION } from '../model/version.js';
import { runId } from './monitor/run-record.js';
import type { Signalled } from '../model/io.js';
import type { Options } from '../plan/options/flags.js';
import type { RawValues, Resolved } from '../plan/options/resolve.js';
import { SECRET_ADDRESSES } from '../plan/options/option-layers.js';
import { createFailureReport, refuseBadFolder, refuseBadPath } from './report/failure-report.js';
import type { FailureReport, RunHeader, ReportFileOptions } from './report/failure-report.js';
import type { PastFailures } from './select-failures.js';
import { absolutePath } from '../text/printable.js';
import type { Session } from './session.js';

/** Opens a new report, or this run's part of a shared one. A retry replaces the report that it repeats, unless --failures names another. */
export function openReport(
  session: Pick<Session, 'clock' | 'options' | 'paths' | 'runFolder'>,
  run: ReportedRun,
): FailureReport {
  const { verb, failures: past, shareReport } = run;
  const header = runHeader(session, run);
  if (shareReport !== undefined) return shareReport(header);
  const { failures } = session.options;
  const own = join(session.paths.failures, `${verb}-${runId(session.clock.now())}.jsonl`);
  return createFailureReport({ header, ...destination(failures, past?.file, own) });
}

/** `earlier`: the report that a retry repeats. `own`: the default path, in the folder of the reports of all runs. */
function destination(
  failures: string | undefined,
  earlier: string | undefined,
  own: string,
): Pick<ReportFileOptions, 'path' | 'mode'> {
  if (earlier !== undefined && (failures === undefined || resolve(failures) === resolve(earlier)))
    return { path: earlier, mode: 'replace' };
  return failures === undefined ? { path: own, mode: 'new' } : { path: failures, mode: 'overwrite' };
}

/** Rejects with a usage error if the report cannot be written to its path. `folder` holds the reports of runs without --failures. */
export async function refuseBadReport(
  failures: string | undefined,
  earlier: string | undefined,
  folder: string,
): Promise<void> {
  const chosen = destination(failures, earlier, '');
  await (chosen.mode === 'new' ? refuseBadFolder(folder) : refuseBadPath(chosen.path));
}

/** A run, as its report and its record show it. */
export interface ReportedRun {
  readonly resolved: Resolved;
  /** The verb of the options; for a failure report, the verb of its run. */
  readonly verb: RunHeader['verb'];
  /** The name of the job, if the run is one of several. */
  readonly job?: string | undefined;
  /** The signal of the process that has ended the run. */
  readonly signalled?: (() => Signalled) | undefined;
  /** The failures to repeat. Default: the options select the objects. */
  readonly failures?: PastFailures | undefined;
  /** Opens this run's part of a shared failure report. Default: the run has its own report. */
  readonly shareReport?: (header: RunHeader) => FailureReport;
}

/** The options of the report that all jobs of one command share. `earlier`: the report that a retry repeats. */
export function sharedReport(
  options: Pick<Options, 'out' | 'failures'>,
  home: string | undefined,
  earlier: string | undefined,
  nowMs: number,
): ReportFileOptions {
  const { root, failures } = lakePaths(absolutePath(options.out, home));
  const at = new Date(nowMs).toISOString();
  const own = join(failures, `run-${runId(nowMs)}.jsonl`);
  return {
    header: { verb: 'run', tool: TOOL_VERSION, at, options: { out: [root] } },
    ...destination(options.failures, earlier, own),
  };
}

/** Users pass reports on. These addresses are private, and that of a proxy may contain a password. */
const PRIVATE: ReadonlySet<string> = new Set(['proxy', ...SECRET_ADDRESSES]);

/** The options of a run as given, without private addresses. A retry has those of the run that it repeats, too. */
export function recordedOptions({
  resolved,
  failures,
}: Pick<ReportedRun, 'resolved' | 'failures'>): Record<string, string[]> {
  const texts: PastFailures['options'] | RawValues = { ...failures?.options, ...resolved.texts };
  const listed = Object.entries(texts).filter(([name]) => !PRIVATE.has(name));
  return Object.fromEntries(listed.map(([name, given]) => [name, [...given]]));
}

/** The verb, the options and the time of a run, without private addresses. */
export function runHeader(
  session: Pick<Session, 'clock' | 'options' | 'paths' | 'runFolder'>,
  run: ReportedRun,
): RunHeader {
  const options = recordedOptions(run);
  // Absolute paths, because the next command may run in another working directory.
  options['out'] = [session.paths.root];
  if (options['ca-file'] !== undefined) options['ca-file'] = options['ca-file'].map((file) => resolve(file));
  if (options['temp-dir'] !== undefined && session.options.tempDir !== undefined)
    options['temp-dir'] = [dirname(session.runFolder)];
  return { verb: run.verb, tool: TOOL_VERSION, at: new Date(session.clock.now()).toISOString(), options };
}
