/** Judges a run, and leaves its record in its lake. */
import { alertsOf, needsEarlier } from '../monitor/alerts.js';
import { isSame, readRunsUntil } from '../monitor/run-history.js';
import { runId, writeRun } from '../monitor/run-record.js';
import type { RunRecord, WrittenRun } from '../monitor/run-record.js';
import { toCryptodlError } from '../model/errors.js';
import type { Signalled } from '../model/io.js';
import { summaryOf } from '../report/run-summary.js';
import type { RunEnd } from '../report/run-summary.js';
import { lakeFlag } from '../text/printable.js';
import { runHeader } from './open-report.js';
import type { Reporting } from './open-report.js';
import type { Session } from './session.js';

interface RecordedRun extends Pick<Reporting, 'failures' | 'resolved' | 'verb'> {
  /** The name of the job, if the run is one of several. */
  readonly job?: string | undefined;
  readonly signalled?: (() => Signalled) | undefined;
}

/** The end of the run with its alerts. A record that cannot be written is only a warning: the data of the run is safe. */
export async function leaveRecord(session: Session, run: RecordedRun, end: RunEnd): Promise<RunEnd> {
  const { clock, observer, paths, timeline } = session;
  const summary = summaryOf(end, run.signalled?.());
  const endedAtMs = clock.now();
  const startedAtMs = endedAtMs - summary.elapsedMs;
  const written: WrittenRun = {
    ...runHeader(session, run),
    v: 1,
    id: runId(startedAtMs),
    job: run.job,
    startedAt: new Date(startedAtMs).toISOString(),
    endedAt: new Date(endedAtMs).toISOString(),
    node: process.versions.node,
    platform: `${process.platform} ${process.arch}`,
    summary,
    timeline: timeline.figures,
  };
  const alerts = alertsOf(written, {
    earlier: needsEarlier(written) ? await earlierRuns(paths, written) : [],
    nowMs: session.currentMs(),
    lakeFlag: lakeFlag(paths.root),
  });
  try {
    await writeRun(paths, { ...written, summary: { ...summary, alerts } });
  } catch (error) {
    observer.warn(`the record of this run cannot be written: ${toCryptodlError(error).message}`);
  }
  return { ...end, alerts };
}

/** None if they cannot be read: the warning about the own record names the reason. */
function earlierRuns(paths: Session['paths'], run: WrittenRun): Promise<readonly RunRecord[]> {
  return readRunsUntil(paths, (each) => isSame(each, run)).catch(() => []);
}
