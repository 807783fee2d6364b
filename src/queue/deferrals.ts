/** Tasks that wait for a further round, spooled to disk when there are many, and the types of the queue's work. */
import { CryptodlError } from '../model/errors.js';
import type { AbsenceReason } from '../model/absence-reasons.js';
import type { PartitionPlan, Task } from '../model/task.js';
import type { Places } from './places.js';

/** The work of a run, as callbacks of the queue. */
export interface QueueWork<Received> {
  /** Called before the first request of a partition. May change its tasks. */
  readonly prepare: (plan: PartitionPlan) => Promise<PartitionPlan>;
  /** Called before the first download of a prepared partition. The returned function is called when all of its tasks are settled. */
  readonly begin?: (plan: PartitionPlan) => () => void;
  readonly download: (plan: PartitionPlan, task: Task) => Promise<Download<Received>>;
  /** Tasks of a plan with the same name share one place in the queue. Undefined: the task has a place of its own. */
  readonly together: (task: Task) => string | undefined;
  /**
   * `missing`: keys that were not received, with the reason. Resolves with the keys that were not written, with the reason. `held`:
   * the archive no longer has the object, and the rows in the lake stay.
   */
  readonly write: (
    plan: PartitionPlan,
    received: readonly Received[],
    missing: ReadonlyMap<string, CryptodlError | 'absent'>,
  ) => Promise<ReadonlyMap<string, CryptodlError | 'held'>>;
  readonly onFailed: (plan: PartitionPlan, task: Task, error: CryptodlError) => Promise<void>;
  /**
   * The plan with the substitutes of its tasks, after a round in which their host did not answer. Undefined if the host answers
   * again and another round follows (`hasRounds`).
   */
  readonly substituted: (plan: PartitionPlan, hasRounds: boolean) => Promise<PartitionPlan | undefined>;
  /** Bytes of memory that the object takes until its partition is written. */
  readonly bytesOf: (task: Task) => number;
  /** Called for skipped and absent tasks. */
  readonly onSettled: (plan: PartitionPlan, task: Task) => Promise<void>;
}

export type Download<Received> =
  | { readonly received: Received }
  /** `isRestEmpty`: REST answered, and has no further rows. */
  | { readonly absent: AbsenceReason; readonly isRestEmpty?: true }
  /** The held object stays, because REST does not have more rows, or refused the request. */
  | { readonly isHeld: true; readonly isRestEmpty?: true };

export interface QueueOptions {
  readonly places: Places;
  /** Aborts with a CryptodlError. The queue aborts it when a fatal error ends the run. */
  readonly stop: AbortController;
  /** The error of tasks that may no longer begin; undefined while tasks may begin. Tasks in flight go on. */
  readonly refusal: () => CryptodlError | undefined;
  /** Makes a store for the tasks of one further round. */
  readonly createSpool: () => DeferredPlans;
  /** Resolves when the further round may begin. */
  readonly beforeRound: (round: number) => Promise<void>;
}

export interface DeferredPlans {
  add(plan: PartitionPlan): Promise<void>;
  plans(): AsyncIterable<PartitionPlan>;
  close(): Promise<void>;
}

interface Round {
  readonly spool: DeferredPlans;
  /** Plans that are done: after each of them, another plan was requested. */
  taken: number;
}

export class Deferrals {
  readonly #createSpool: () => DeferredPlans;
  #spool: DeferredPlans;
  #count = 0;
  /** Rounds that ended before their last plan. */
  readonly #unfinished: Round[] = [];

  constructor(createSpool: () => DeferredPlans) {
    this.#createSpool = createSpool;
    this.#spool = createSpool();
  }

  get count(): number {
    return this.#count;
  }

  /** Stores the plan with only these tasks. `prepare` checks its file again. */
  async add(plan: PartitionPlan, failures: ReadonlyMap<Task, CryptodlError>): Promise<void> {
    const { rebuild: _rebuild, isUnlisted: _isUnlisted, ...rest } = plan;
    const tasks = [...failures].map(([task, { code, message, attempts }]) => ({
      ...task,
      failure: { code, message, attempts },
    }));
    await this.#spool.add({ ...rest, tasks });
    this.#count += failures.size;
  }

  /** Plans that were deferred so far. Plans that are added from now on belong to the following round. */
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

  /** Tasks that get no further round, with the errors that deferred them. */
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

/** The error of a deferred task. */
export function failureOf({ failure }: Task): CryptodlError {
  if (failure === undefined) return new CryptodlError('bug', 'a task was deferred without a reason');
  const error = new CryptodlError(failure.code, failure.message);
  error.attempts = failure.attempts;
  return error;
}

/** A failed substitute: the outcome names the original object, with its first error and the error of the substitute. */
export function withoutSubstitute(
  task: Task,
  why: CryptodlError | undefined,
): { task: Task; error: CryptodlError } {
  const { series, action, object, standsFor = object } = task;
  const error = failureOf(task);
  error.message += `; REST does not have it either${why === undefined ? '' : `: ${why.message}`}`;
  return { task: { series, object: standsFor, action }, error };
}
