/** What the queue is told of its work. */
import { CryptodlError } from '../model/errors.js';
import type { AbsenceReason, PartitionPlan, Task } from '../model/task.js';

/** Work that the queue knows only by its effects. */
export interface QueueWork<Received> {
  /** Called before anything of the partition is fetched; may change what must be. */
  readonly prepare: (plan: PartitionPlan) => Promise<PartitionPlan>;
  readonly download: (plan: PartitionPlan, task: Task) => Promise<Download<Received>>;
  /** Tasks of a plan with the same word here go together and take one place; undefined: it takes its own. */
  readonly together: (task: Task) => string | undefined;
  /**
   * `missing`: keys that were not received, with why. Resolves with keys that are not written, with why; `held`: the archive
   * has it no more, and what is held of it stays.
   */
  readonly write: (
    plan: PartitionPlan,
    received: readonly Received[],
    missing: ReadonlyMap<string, CryptodlError | 'absent'>,
  ) => Promise<ReadonlyMap<string, CryptodlError | 'held'>>;
  readonly onFailed: (plan: PartitionPlan, task: Task, error: CryptodlError) => Promise<void>;
  /**
   * The same tasks with their substitutes, after a round in which their host did not answer. Undefined when it answers
   * again, and `hasRounds`.
   */
  readonly substituted: (plan: PartitionPlan, hasRounds: boolean) => Promise<PartitionPlan | undefined>;
  /** Memory that the object will take while its partition is under way. */
  readonly bytesOf: (task: Task) => number;
  /** Skipped and absent tasks. */
  readonly onSettled: (plan: PartitionPlan, task: Task) => Promise<void>;
}

export type Download<Received> =
  | { readonly received: Received }
  | { readonly absent: AbsenceReason }
  /** What is held is no worse than what could be had. */
  | { readonly isHeld: true };

export interface QueueOptions {
  readonly downloads: number;
  readonly writers: number;
  /** Aborts with a CryptodlError; also called by the queue itself when a fatal error ends the run. */
  readonly stop: AbortController;
  /** Why nothing new is begun any more; what is under way goes on, and what was not begun fails with this. */
  readonly refusal: () => CryptodlError | undefined;
  /** Where tasks wait for another round. */
  readonly createSpool: () => DeferredPlans;
  /** Waits before a further round. */
  readonly beforeRound: (round: number) => Promise<void>;
}

// Tasks that wait for another round, with why they failed in the last one: all of it on disk when it is much.

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
