/** Tasks that wait for another round, with why they failed in the last one: all of it on disk when it is much. */
import { CryptodlError } from '../errors.js';
import type { PartitionPlan, Task } from '../task.js';

export interface DeferredPlans {
  add(plan: PartitionPlan): Promise<void>;
  plans(): AsyncIterable<PartitionPlan>;
  close(): Promise<void>;
}

interface Round {
  readonly spool: DeferredPlans;
  /** Plans of it that were taken up. */
  taken: number;
}

export class Deferrals {
  readonly #createSpool: () => DeferredPlans;
  #spool: DeferredPlans;
  #count = 0;
  /** Rounds that were ended in the middle. */
  readonly #unfinished: Round[] = [];

  constructor(createSpool: () => DeferredPlans) {
    this.#createSpool = createSpool;
    this.#spool = createSpool();
  }

  get count(): number {
    return this.#count;
  }

  /** The plan with only these tasks; whether its file must be made anew is found out again. */
  async add(plan: PartitionPlan, failures: ReadonlyMap<Task, CryptodlError>): Promise<void> {
    const { rebuild: _, ...rest } = plan;
    const tasks = [...failures].map(([task, { code, message, attempts }]) => ({
      ...task,
      failure: { code, message, attempts },
    }));
    await this.#spool.add({ ...rest, tasks });
    this.#count += failures.size;
  }

  /** What has been deferred so far; later deferrals are for the round after. */
  async *next(): AsyncGenerator<PartitionPlan> {
    const round: Round = { spool: this.#spool, taken: 0 };
    this.#spool = this.#createSpool();
    this.#count = 0;
    let isFinished = false;
    try {
      for await (const plan of round.spool.plans()) {
        yield plan;
        round.taken += 1;
      }
      isFinished = true;
    } finally {
      if (isFinished) await round.spool.close();
      else this.#unfinished.push(round);
    }
  }

  /** Tasks whose round did not come, because the run was ended. */
  async *left(): AsyncGenerator<{ plan: PartitionPlan; task: Task; error: CryptodlError }> {
    for (const { spool, taken } of [...this.#unfinished, { spool: this.#spool, taken: 0 }]) {
      let passed = 0;
      for await (const plan of spool.plans()) {
        passed += 1;
        if (passed <= taken) continue;
        for (const task of plan.tasks) yield { plan, task, error: failureOf(task) };
      }
    }
  }

  async close(): Promise<void> {
    for (const { spool } of this.#unfinished) await spool.close();
    await this.#spool.close();
  }
}

/** Why a task that was deferred had failed. */
export function failureOf({ failure }: Task): CryptodlError {
  if (failure === undefined) return new CryptodlError('bug', 'a task was deferred without a reason');
  const error = new CryptodlError(failure.code, failure.message);
  error.attempts = failure.attempts;
  return error;
}
