/** The plan of a run: checks `--max-bytes`, and prints it for `--dry-run`. */
import { writeData } from '../cli/write-data.js';
import { periodText } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { bytesToFetch } from '../model/task.js';
import type { PartitionPlan, Task } from '../model/task.js';
import { bytesText } from '../model/units.js';
import type { Plan } from '../plan/plan.js';
import { tabbed } from '../text/printable.js';
import type { RunSession } from './session.js';

/** Throws a usage error if the plan downloads more than --max-bytes. */
export function refuseLargePlan(session: Pick<RunSession, 'options'>, plan: Pick<Plan, 'totals'>): void {
  const limit = session.options.maxBytes;
  if (limit === undefined || plan.totals.fetchBytes <= limit) return;
  throw usage(
    `the plan is ${bytesText(plan.totals.fetchBytes)}, more than --max-bytes ${bytesText(limit)}`,
    'choose fewer symbols or days, or a larger --max-bytes',
  );
}

/** `--dry-run`: prints `fetch|skip|absent`, bytes, key and job (if any) of each object on stdout, or a `planned` event for each with `--json`. */
export async function printPlan(
  plans: AsyncIterable<PartitionPlan>,
  io: Io,
  { isJson, job }: { readonly isJson: boolean; readonly job: string | undefined },
): Promise<void> {
  const lineOf = isJson ? asEvent : asLine;
  for await (const { tasks } of plans) {
    if (
      !(await writeData(
        io,
        tasks.map((task) => lineOf(task, job)),
      ))
    )
      return;
  }
}

function asLine({ action, object }: Task, job: string | undefined): string {
  return tabbed([action.kind, bytesToFetch(object) ?? 0, object.key, ...(job === undefined ? [] : [job])]);
}

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
