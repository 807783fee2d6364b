/** The tasks that wait for a further round, with the errors that deferred them. */
import type { PartitionPlan } from '../../model/task.js';
import type { CryptodlError } from '../../model/errors.js';
import type { Task } from '../../model/task.js';

export interface FailedTask {
  readonly task: Task;
  readonly error: CryptodlError;
}

export interface DeferredPlans {
  add(plan: PartitionPlan): Promise<void>;
  plans(): AsyncIterable<PartitionPlan>;
  close(): Promise<void>;
}

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
    const plans = spool.plans()[Symbol.asyncIterator]();
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
  left(): AsyncIterable<PartitionPlan> {
    return this.#spool.plans();
  }

  close(): Promise<void> {
    return this.#spool.close();
  }
}
