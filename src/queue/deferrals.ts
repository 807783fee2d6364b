/** Tasks that wait for another round, and why they failed in the last one. */
import type { CryptodlError } from '../errors.js';
import type { PartitionPlan, Task } from '../task.js';

export interface DeferredPlans {
  add(plan: PartitionPlan): Promise<void>;
  plans(): AsyncIterable<PartitionPlan>;
  close(): Promise<void>;
}

/** Errors kept in memory. What is beyond is not in the report when the run is ended before its round comes. */
const ERRORS_KEPT = 10_000;

export class Deferrals {
  readonly #createSpool: () => DeferredPlans;
  #spool: DeferredPlans;
  #errors = new Map<string, CryptodlError>();
  #count = 0;
  /** Rounds that were ended in the middle. */
  readonly #unfinished: { spool: DeferredPlans; errors: ReadonlyMap<string, CryptodlError> }[] = [];

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
    await this.#spool.add({ ...rest, tasks: [...failures.keys()] });
    this.#count += failures.size;
    for (const [task, error] of failures) {
      if (this.#errors.size < ERRORS_KEPT) this.#errors.set(task.object.key, error);
    }
  }

  /** What has been deferred so far; later deferrals are for the round after. */
  async *next(): AsyncGenerator<PartitionPlan> {
    const spool = this.#spool;
    const errors = this.#errors;
    this.#spool = this.#createSpool();
    this.#errors = new Map();
    this.#count = 0;
    let isFinished = false;
    try {
      for await (const plan of spool.plans()) {
        yield plan;
        for (const task of plan.tasks) errors.delete(task.object.key);
      }
      isFinished = true;
    } finally {
      if (isFinished) await spool.close();
      else this.#unfinished.push({ spool, errors });
    }
  }

  /** Tasks whose round did not come, because the run was ended. */
  async *left(): AsyncGenerator<{ plan: PartitionPlan; task: Task; error: CryptodlError }> {
    for (const { spool, errors } of [...this.#unfinished, { spool: this.#spool, errors: this.#errors }]) {
      for await (const plan of spool.plans()) {
        for (const task of plan.tasks) {
          const error = errors.get(task.object.key);
          if (error !== undefined) yield { plan, task, error };
        }
      }
    }
  }

  async close(): Promise<void> {
    for (const { spool } of this.#unfinished) await spool.close();
    await this.#spool.close();
  }
}
