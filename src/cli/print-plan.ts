/** `--dry-run`: `fetch|skip|absent`, bytes and key per object on stdout. */
import type { Io } from '../io.js';
import type { PartitionPlan } from '../task.js';
import { writeData } from './write-data.js';

export async function printPlan(plans: AsyncIterable<PartitionPlan>, io: Io): Promise<void> {
  for await (const { tasks } of plans) {
    const lines = tasks.map(({ action, object }) => `${action.kind}\t${object.bytes ?? 0}\t${object.key}\n`);
    if (!(await writeData(io, lines.join('')))) return;
  }
}
