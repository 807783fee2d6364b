/** `--dry-run`: `fetch|skip|absent`, bytes and key per object on stdout, or an event for each. */
import type { Io } from '../model/io.js';
import { periodText } from '../model/calendar.js';
import { tabbed } from '../text/printable.js';
import type { PartitionPlan, Task } from '../model/task.js';
import { writeData } from '../cli/write-data.js';

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
  return tabbed([action.kind, object.bytes ?? 0, object.key, ...(job === undefined ? [] : [job])]);
}

function asEvent({ series, action, object }: Task, job: string | undefined): object {
  const { kind, ...why } = action;
  const { key, bytes, period } = object;
  return {
    event: 'planned',
    ...(job === undefined ? {} : { job }),
    action: kind,
    ...why,
    ...series,
    cadence: period.cadence,
    period: periodText(period),
    bytes,
    key,
  };
}
