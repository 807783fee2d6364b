/** What the queue is told of its work. */
import type { CryptodlError } from '../errors.js';
import type { AbsenceReason, PartitionPlan, Task } from '../task.js';
import type { DeferredPlans } from './deferrals.js';

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
