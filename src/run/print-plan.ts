/** `--dry-run`: the plan of a run, object by object. */
import { writeData } from '../terminal/write-data.js';
import { periodText } from '../model/calendar.js';
import type { Io } from '../model/io.js';
import { bytesToFetch, type Task } from '../model/task.js';
import { LiveRun } from './report/live-run.js';
import { tabbed } from '../text/printable.js';
import { planOnly, type RunRequest } from './run.js';

/** `--dry-run`: prints `fetch|skip|absent`, bytes, key and job (if any) of each object on stdout, or a `planned` event for each with `--json`. */
export async function printPlan(
  request: RunRequest & { readonly live: LiveRun },
  io: Io,
  job: string | undefined,
): Promise<void> {
  const lineOf = request.resolved.options.json ? asEvent : asLine;
  for await (const { tasks } of planOnly(request)) {
    const lines = tasks.map((task) => lineOf(task, job));
    if (!(await writeData(io, lines))) break;
  }
  request.live.ended(0);
}

const asLine = ({ action, object }: Task, job: string | undefined): string =>
  tabbed([action.kind, bytesToFetch(object) ?? 0, object.key, ...(job === undefined ? [] : [job])]);

function asEvent({ series, action, object }: Task, job: string | undefined): object {
  const { kind, ...why } = action;
  const { key, period } = object;
  return {
    event: 'planned',
    job,
    action: kind,
    ...why,
    ...series,
    cadence: period.cadence,
    period: periodText(period),
    bytes: bytesToFetch(object),
    key,
  };
}
