/** What a run tells of itself in its failure report and its record: its verb and its options, without private addresses. */
import { dirname, resolve } from 'node:path';
import { TOOL_VERSION } from '../../model/version.js';
import type { Signalled } from '../../model/io.js';
import type { RawValues, Resolved } from '../../plan/options/resolve.js';
import { SECRET_ADDRESSES } from '../../plan/options/print-options.js';
import type { RunFlag } from '../../plan/options/verb-request.js';
import type { RunSession } from '../session/session.js';
import type { RunHeader } from './read-failure-report.js';
import type { PastFailures } from './select-failures.js';

/** A run as its report and its record need it. */
export interface ReportedRun {
  readonly resolved: Resolved<RunFlag>;
  /** The verb of the options; for a failure report, the verb of its run. */
  readonly verb: RunHeader['verb'];
  readonly job?: string | undefined;
  /** The signal of the process that has ended the run. */
  readonly signalled?: (() => Signalled) | undefined;
  /** The failures to repeat. Default: the options select the objects. */
  readonly failures?: PastFailures | undefined;
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
  session: Pick<RunSession, 'clock' | 'options' | 'paths' | 'runFolder'>,
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
