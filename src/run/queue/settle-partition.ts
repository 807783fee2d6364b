/** Writes the objects of a partition that arrived, and decides which failed tasks get a further round. */
import { CryptodlError, FALLBACK_CODES } from '../../model/errors.js';
import type { PartitionPlan } from '../../model/task.js';
import { withoutSubstitute, type Arrival } from '../objects/arrival.js';
import type { Outcomes } from '../partitions/outcomes.js';
import type { Deferrals, FailedTask } from './rounds.js';
import type { Places } from './places.js';

export interface Settling {
  readonly outcomes: Pick<Outcomes, 'write' | 'failed' | 'settled'>;
  readonly places: Places;
  /** Aborts with a CryptodlError. The queue aborts it when a fatal error ends the run. */
  readonly stop: AbortController;
  /** Tasks for a further round; undefined in the last round. */
  readonly deferrals: Deferrals | undefined;
  /** Tasks whose host did not answer. Their substitutes are requested at the end of the round. */
  readonly unanswered: Deferrals;
}

/** `arrivals`: those of all fetched tasks of the plan. Each of them gets an outcome, or waits for a further round or its substitute. */
export async function settlePartition(
  settling: Settling,
  plan: PartitionPlan,
  arrivals: readonly Arrival[],
): Promise<void> {
  const { outcomes, places, stop, deferrals } = settling;
  // A run that is stopped or out of time does not replace a file by one with only a part of its objects.
  const isReplaced = plan.rebuild !== undefined || plan.isUnlisted === true;
  const isCutShort =
    isReplaced &&
    arrivals.some(({ end }) => 'error' in end && (stop.signal.aborted || end.error.code === 'time-over'));
  const isWrite = !isCutShort && arrivals.some(isForWriter);
  const written = isWrite ? await places.write(() => outcomes.write(plan, arrivals)) : arrivals;
  const ends = written.map(withoutSubstitute);
  const isWritten = isWrite && ends.some(({ end }) => 'received' in end);
  const failures = ends.flatMap(({ task, end }) => ('error' in end ? [{ task, error: end.error }] : []));
  const mayComplete = !isCutShort && failures.some(({ error }) => error.rounds);
  // A further round fetches all objects of a file that was not rebuilt, so none of them has an outcome before.
  if (deferrals !== undefined && plan.rebuild !== undefined && !isWritten && mayComplete) {
    const text = 'other objects of its file could not be fetched again';
    const error = new CryptodlError('partition-incomplete', text);
    const others = ends.flatMap(({ task, end }) => ('instead' in end ? [{ task, error }] : []));
    return deferrals.add(plan, [...failures, ...others]);
  }
  for (const { task, end } of ends)
    if ('instead' in end) await outcomes.settled(plan, { ...task, action: end.instead });
  await settleFailures(settling, isWritten ? { ...plan, isWritten } : plan, failures);
}

/** The writer also decides about held rows of absent objects. */
function isForWriter({ end }: Arrival): boolean {
  return 'received' in end || ('instead' in end && end.instead.kind === 'absent');
}

async function settleFailures(
  { outcomes, deferrals, unanswered }: Settling,
  plan: PartitionPlan,
  failures: readonly FailedTask[],
): Promise<void> {
  const again: FailedTask[] = [];
  const forSubstitute: FailedTask[] = [];
  const othersMayCome = failures.some(({ error }) => error.rounds);
  for (const failed of failures) {
    const { task, error } = failed;
    if (error.fatal) continue;
    // A task that failed because another object of its partition is missing may succeed once that object arrives.
    const mayCome = error.rounds || (othersMayCome && error.code === 'partition-incomplete');
    // A rebuilt file contains no substitutes.
    if (task.substitute !== undefined && FALLBACK_CODES.has(error.code) && plan.rebuild === undefined)
      forSubstitute.push(failed);
    else if (deferrals !== undefined && mayCome) again.push(failed);
    else await outcomes.failed(plan, task, error);
  }
  await deferrals?.add(plan, again);
  await unanswered.add(plan, forSubstitute);
}
