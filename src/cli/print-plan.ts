/** `--dry-run`: `fetch|skip|absent`, bytes and key per object on stdout, or an event for each. */
import type { Io } from '../io.js';
import { periodText } from '../calendar.js';
import type { PartitionPlan, Task } from '../task.js';
import { writeData } from './write-data.js';

export async function printPlan(
  plans: AsyncIterable<PartitionPlan>,
  io: Io,
  { isJson, job }: { readonly isJson: boolean; readonly job: string | undefined },
): Promise<void> {
  const textOf = isJson ? asEvent : asLine;
  for await (const { tasks } of plans) {
    if (!(await writeData(io, tasks.map((task) => textOf(task, job)).join('')))) return;
  }
}

function asLine({ action, object }: Task, job: string | undefined): string {
  const cells = [action.kind, String(object.bytes ?? 0), object.key, ...(job === undefined ? [] : [job])];
  return `${cells.join('\t')}\n`;
}

function asEvent({ series, action, object }: Task, job: string | undefined): string {
  const { kind, ...why } = action;
  const { key, bytes, period } = object;
  const facts = {
    ...(job === undefined ? {} : { job }),
    action: kind,
    ...why,
    ...series,
    cadence: period.cadence,
    period: periodText(period),
    bytes,
    key,
  };
  return `${JSON.stringify({ event: 'planned', ...facts })}\n`;
}
