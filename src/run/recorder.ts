/** Judges a run, and leaves its record in its lake. */
import { existsSync } from 'node:fs';
import { alertsOf } from './monitor/alerts.js';
import { runId, type RunStart, type WrittenRun } from './monitor/run-record.js';
import { removeStart, writeRun, writeStart } from './monitor/run-files.js';
import { toCryptodlError, type CryptodlError } from '../model/errors.js';
import { summaryOf, type RunEnd } from './report/run-summary.js';
import { lakeFlag } from '../text/printable.js';
import { runHeader, type ReportedRun } from './failures/run-header.js';
import type { RunSession } from './session/session.js';

/**
 * The record of a run from its start on: a run that is killed, or cannot begin, leaves one too. A failed write is only a warning: the data
 * of the run is safe. A queue may have a million jobs: they leave no record each.
 */
export class Recorder {
  #start: RunStart | undefined;

  constructor(
    private readonly session: RunSession,
    private readonly run: ReportedRun,
  ) {}

  /** Writes the start, unless there is no lake yet: a command with wrong options creates none. */
  async begin(): Promise<void> {
    const { clock, paths, pipeline } = this.session;
    if (this.#start !== undefined || pipeline !== undefined || !existsSync(paths.internal)) return;
    const { verb, tool, options } = runHeader(this.session, this.run);
    const startedAtMs = clock.now();
    const startedAt = new Date(startedAtMs).toISOString();
    const { job } = this.run;
    await this.#writeStart({ v: 1, id: runId(startedAtMs), verb, job, tool, startedAt, options });
  }

  async ordered(): Promise<void> {
    if (this.#start !== undefined) await this.#writeStart({ ...this.#start, isOrdered: true });
  }

  /** Writes why the run could not begin. Wrong options leave nothing. */
  async fail({ code, message }: CryptodlError): Promise<void> {
    const start = this.#start;
    if (start === undefined) return;
    const { clock, paths } = this.session;
    const ended = { at: new Date(clock.now()).toISOString(), code, message };
    if (code !== 'usage') await this.#writeStart({ ...start, ended });
    else await this.#guard('start', () => removeStart(paths, start.id));
  }

  /** Judges the run, and replaces its start by its record. The end of the run with its alerts. */
  async end(end: RunEnd): Promise<RunEnd> {
    const { clock, currentMs, paths, pipeline, timeline } = this.session;
    if (pipeline !== undefined) return end;
    const summary = summaryOf(end, this.run.signalled?.());
    const endedAtMs = clock.now();
    const startedAtMs = endedAtMs - summary.elapsedMs;
    const run: WrittenRun = {
      ...runHeader(this.session, this.run),
      v: 1,
      id: runId(startedAtMs),
      job: this.run.job,
      startedAt: new Date(startedAtMs).toISOString(),
      endedAt: new Date(endedAtMs).toISOString(),
      node: process.versions.node,
      platform: `${process.platform} ${process.arch}`,
      summary,
      timeline: timeline.figures,
    };
    const alerts = alertsOf(run, { nowMs: currentMs(), lakeFlag: lakeFlag(paths.root) });
    await this.#guard('record', async () => {
      await writeRun(paths, { ...run, summary: { ...summary, alerts } });
      const start = this.#start;
      this.#start = undefined;
      if (start !== undefined) await removeStart(paths, start.id);
    });
    return { ...end, alerts };
  }

  #writeStart(start: RunStart): Promise<void> {
    this.#start = start;
    return this.#guard('start', () => writeStart(this.session.paths, start));
  }

  async #guard(what: 'start' | 'record', act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      const { message } = toCryptodlError(error);
      this.session.observer.warn(`the ${what} of this run cannot be written: ${message}`);
    }
  }
}
