/** The further rounds of a run: their waits, and the substitutes for objects whose host does not answer. */
import type { PartitionPlan } from '../../model/task.js';
import { substitutedPlan } from '../../plan/rest-periods.js';
import type { RunSession } from '../session/session.js';

/** Tasks that failed with the trait `rounds`, or for lack of such a task, are tried again in up to this many rounds at the end of the queue. */
export const FURTHER_ROUNDS = 3;

export type Rounds = Readonly<ReturnType<typeof roundsOf>>;

export function roundsOf({ options, observer, failover, live, deadline, archiveAnswers }: RunSession) {
  return {
    /** Waits before a further round, longer each time, so that a host can recover. */
    before: async (round: number): Promise<void> => {
      observer.event('round', { round, of: FURTHER_ROUNDS });
      // No other source has the data of the remaining tasks, so requests now wait for their host instead of failing at once.
      failover.isPossible = false;
      const delayMs = Math.min(options.retryDelayMs * 10 * 4 ** (round - 1), 30_000);
      await live.pause(() => deadline.sleep(delayMs));
    },
    /** The plan with REST in place of the archive. Undefined if the archive answers again and another round follows. */
    substituted: async (plan: PartitionPlan, hasRounds: boolean): Promise<PartitionPlan | undefined> => {
      failover.isPossible = true;
      const [task] = plan.tasks;
      const isBack = hasRounds && task !== undefined && (await archiveAnswers(task.object.key));
      return isBack ? undefined : substitutedPlan(plan);
    },
  };
}
