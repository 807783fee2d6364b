/** The further rounds of a run: their waits, the tasks that wait for them, and the substitutes for objects whose host does not answer. */
import type { PartitionPlan, Task } from '../../model/task.js';
import type { PlanSpool } from '../../plan/plan-spool.js';
import { substitutedPlan } from '../../plan/rest-periods.js';
import type { RunSession } from '../session/session.js';
import { CryptodlError } from '../../model/errors.js';
import type { Arrival } from '../objects/download-object.js';

/** Tasks that failed with the trait `rounds`, or for lack of such a task, are tried again in up to this many rounds at the end of the queue. */
export const FURTHER_ROUNDS = 3;

export type Rounds = Readonly<ReturnType<typeof roundsOf>>;

export function roundsOf({ options, observer, failover, live, deadline, archiveAnswers }: RunSession) {
  return {
    /** Waits before a further round, longer each time up to a maximum, so that a host can recover. */
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

/** The error of the round before. */
export function earlierError({ failure }: Task): CryptodlError {
  if (failure === undefined) return new CryptodlError('bug', 'a task was deferred without a reason');
  return CryptodlError.of(failure);
}

/** A failed substitute ends as the original object, with its first error and the error of the substitute. */
export function withoutSubstitute(arrival: Arrival): Arrival {
  const { task, end } = arrival;
  const { series, action, standsFor } = task;
  if (standsFor === undefined || 'received' in end) return arrival;
  const first = earlierError(task);
  const why = 'error' in end ? `: ${end.error.message}` : '';
  const error = first.with({ message: `${first.message}; REST does not have it either${why}` });
  return { task: { series, object: standsFor, action }, end: { error } };
}

export interface FailedTask {
  readonly task: Task;
  readonly error: CryptodlError;
}

export type DeferredPlans = Pick<PlanSpool, 'add' | 'plans' | 'close'>;

export class Deferrals {
  #spool: DeferredPlans;
  count = 0;

  constructor(private readonly createSpool: () => DeferredPlans) {
    this.#spool = createSpool();
  }

  /** Stores the plan with only these tasks. `prepare` checks its file again. */
  async add(plan: PartitionPlan, failures: readonly FailedTask[]): Promise<void> {
    if (failures.length === 0) return;
    const { rebuild: _rebuild, isUnlisted: _isUnlisted, ...rest } = plan;
    const tasks = failures.map(({ task, error: { facts } }) => ({ ...task, failure: facts }));
    await this.#spool.add({ ...rest, tasks });
    this.count += failures.length;
  }

  /** Plans that were deferred so far. Plans that are added from now on belong to the following round. */
  async *next(): AsyncGenerator<PartitionPlan> {
    const spool = this.#spool;
    this.#spool = this.createSpool();
    this.count = 0;
    const plans = spool.plans();
    let next: IteratorResult<PartitionPlan, undefined> = await plans.next();
    try {
      while (next.done !== true) {
        yield next.value;
        next = { done: true, value: undefined };
        next = await plans.next();
      }
    } finally {
      // Of a round that ends early, the plan that is not done and all later ones are left.
      for (; next.done !== true; next = await plans.next()) await this.#spool.add(next.value);
      await spool.close();
    }
  }

  /** The plans of tasks that get no further round. */
  left(): AsyncGenerator<PartitionPlan> {
    return this.#spool.plans();
  }

  close(): Promise<void> {
    return this.#spool.close();
  }
}
