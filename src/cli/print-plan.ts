/** `--dry-run`: `fetch|skip|absent`, bytes and key per object on stdout, or an event for each. */
import type { Io } from '../io.js';
import { periodText } from '../calendar.js';
import type { PartitionPlan, Task } from '../task.js';
import { writeData } from './write-data.js';

export async function printPlan(plans: AsyncIterable<PartitionPlan>, io: Io, isJson: boolean): Promise<void> {
  for await (const { tasks } of plans) {
    const lines = tasks.map(isJson ? asEvent : asLine);
    if (!(await writeData(io, lines.join('')))) return;
  }
}

function asLine({ action, object }: Task): string {
  return `${action.kind}\t${object.bytes ?? 0}\t${object.key}\n`;
}

function asEvent({ series, action, object }: Task): string {
  const { kind, ...why } = action;
  const { key, bytes, period } = object;
  const facts = {
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
