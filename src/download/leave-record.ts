/** Judges a run, and leaves its record in its lake. */
import { existsSync } from 'node:fs';
import { alertsOf, needsEarlier } from '../monitor/alerts.js';
import { isSame, readRunsUntil } from '../monitor/run-history.js';
import { removeStart, runId, writeRun, writeStart } from '../monitor/run-record.js';
import type { RunRecord, RunStart, WrittenRun } from '../monitor/run-record.js';
import { toCryptodlError } from '../model/errors.js';
import type { CryptodlError } from '../model/errors.js';
import { summaryOf } from '../report/run-summary.js';
import type { RunEnd } from '../report/run-summary.js';
import { lakeFlag } from '../text/printable.js';
import { runHeader } from './open-report.js';
import type { ReportedRun } from './open-report.js';
import type { Session } from './session.js';

/** The record of a run from its start on: a run that is killed, or cannot begin, leaves one too. */
export class StartRecord {
  readonly #session: Session;
  readonly #run: ReportedRun;
  #start: RunStart | undefined;

  constructor(session: Session, run: ReportedRun) {
    this.#session = session;
    this.#run = run;
  }

  /** Writes the start, unless there is no lake yet: a command with wrong options creates none. A failed write is only a warning. */
  async begin(): Promise<void> {
    const { clock, paths, pipeline } = this.#session;
    if (this.#start !== undefined || pipeline !== undefined || !existsSync(paths.internal)) return;
    const { verb, tool, options } = runHeader(this.#session, this.#run);
    const startedAtMs = clock.now();
    const startedAt = new Date(startedAtMs).toISOString();
    const { job } = this.#run;
    const start: RunStart = { v: 1, id: runId(startedAtMs), verb, job, tool, startedAt, options };
    this.#start = start;
    await this.#guard(() => writeStart(paths, start));
  }

  /** Notes that the orders of the run are in the lake. */
  async ordered(): Promise<void> {
    if (this.#start === undefined) return;
    const start: RunStart = { ...this.#start, isOrdered: true };
    this.#start = start;
    await this.#guard(() => writeStart(this.#session.paths, start));
  }

  /** Writes why the run could not begin. Wrong options leave nothing. */
  async fail(error: CryptodlError): Promise<void> {
    const start = this.#start;
    if (start === undefined) return;
    const { code, message } = error;
    if (code === 'usage') return this.replaced();
    const { clock, paths } = this.#session;
    const ended = { at: new Date(clock.now()).toISOString(), code, message };
    await this.#guard(() => writeStart(paths, { ...start, ended }));
  }

  /** Removes the start: the record of the whole run is there, or the run is none. */
  async replaced(): Promise<void> {
    const start = this.#start;
    this.#start = undefined;
    if (start !== undefined) await this.#guard(() => removeStart(this.#session.paths, start.id));
  }

  async #guard(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.#session.observer.warn(
        `the start of this run cannot be recorded: ${toCryptodlError(error).message}`,
      );
    }
  }
}

/** The end of the run with its alerts. A record that cannot be written is only a warning: the data of the run is safe. */
export async function leaveRecord(
  session: Session,
  run: ReportedRun & { readonly start: Pick<StartRecord, 'replaced'> },
  end: RunEnd,
): Promise<RunEnd> {
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
    await run.start.replaced();
  } catch (error) {
    observer.warn(`the record of this run cannot be written: ${toCryptodlError(error).message}`);
  }
  return { ...end, alerts };
}

/** None if they cannot be read: the warning about the own record names the reason. */
function earlierRuns(paths: Session['paths'], run: WrittenRun): Promise<readonly RunRecord[]> {
  return readRunsUntil(paths, (each) => isSame(each, run)).catch(() => []);
}
