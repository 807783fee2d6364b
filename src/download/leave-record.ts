/** Leaves the record of a run in its lake. */
import { runId, writeRun } from '../monitor/run-record.js';
import { toCryptodlError } from '../model/errors.js';
import type { Signalled } from '../model/io.js';
import { summaryOf } from '../report/run-summary.js';
import type { RunEnd } from '../report/run-summary.js';
import { runHeader } from './open-report.js';
import type { Reporting } from './open-report.js';
import type { Session } from './session.js';

interface RecordedRun extends Pick<Reporting, 'failures' | 'resolved' | 'verb'> {
  /** The name of the job, if the run is one of several. */
  readonly job?: string | undefined;
  readonly signalled?: (() => Signalled) | undefined;
}

/** A record that cannot be written is only a warning: the data of the run is safe. */
export async function leaveRecord(session: Session, run: RecordedRun, end: RunEnd): Promise<void> {
  const { clock, observer, paths, timeline } = session;
  const summary = summaryOf(end, run.signalled?.());
  const endedAtMs = clock.now();
  const startedAtMs = endedAtMs - summary.elapsedMs;
  try {
    await writeRun(paths, {
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
    });
  } catch (error) {
    observer.warn(`the record of this run cannot be written: ${toCryptodlError(error).message}`);
  }
}
