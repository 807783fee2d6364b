/** The queue of a run: takes partition plans lazily, downloads their objects, and hands complete partitions to the writers. */
import { CryptodlError, toCryptodlError, FALLBACK_CODES } from '../../model/errors.js';
import { grouped } from '../../model/by-name.js';
import type { PartitionPlan, Task } from '../../model/task.js';
import type { Places } from './places.js';

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
  readonly places: Places;
  /** Aborts with a CryptodlError. The queue aborts it when a fatal error ends the run. */
  readonly stop: AbortController;
  /** The error of tasks that may no longer begin; undefined while tasks may begin. Tasks in flight go on. */
  readonly refusal: () => CryptodlError | undefined;
  readonly createSpool: () => DeferredPlans;
  readonly beforeRound: (round: number) => Promise<void>;
}

/** `instead`: the object is absent, or the held one stays, because REST does not have more rows, or refused the request. */
export type Download<Received> = { readonly received: Received } | { readonly instead: Settled };

type Settled = Exclude<Task['action'], { kind: 'fetch' }>;

export interface DeferredPlans {
  add(plan: PartitionPlan): Promise<void>;
  plans(): AsyncIterable<PartitionPlan>;
  close(): Promise<void>;
}

class Deferrals {
  #spool: DeferredPlans;
  count = 0;

  constructor(private readonly createSpool: () => DeferredPlans) {
    this.#spool = createSpool();
  }

  /** Stores the plan with only these tasks. `prepare` checks its file again. */
  async add(plan: PartitionPlan, failures: ReadonlyMap<Task, CryptodlError>): Promise<void> {
    const { rebuild: _rebuild, isUnlisted: _isUnlisted, ...rest } = plan;
    const tasks = [...failures].map(([task, { facts }]) => ({ ...task, failure: facts }));
    await this.#spool.add({ ...rest, tasks });
    this.count += failures.size;
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

  /** Tasks that get no further round, with the errors that deferred them. */
  async *left(): AsyncGenerator<{ plan: PartitionPlan; task: Task; error: CryptodlError }> {
    for await (const plan of this.#spool.plans())
      for (const task of plan.tasks) yield { plan, task, error: failureOf(task) };
  }

  async close(): Promise<void> {
    await this.#spool.close();
  }
}

function failureOf({ failure }: Task): CryptodlError {
  if (failure === undefined) return new CryptodlError('bug', 'a task was deferred without a reason');
  return CryptodlError.of(failure);
}

/** A failed substitute: the outcome names the original object, with its first error and the error of the substitute. */
function withoutSubstitute(task: Task, why: CryptodlError | undefined): { task: Task; error: CryptodlError } {
  const { series, action, object, standsFor = object } = task;
  const first = failureOf(task);
  const message = `${first.message}; REST does not have it either${why === undefined ? '' : `: ${why.message}`}`;
  return { task: { series, object: standsFor, action }, error: first.with({ message }) };
}

/** Tasks that failed with the trait `rounds`, or for lack of such a task, are tried again in up to this many rounds at the end of the queue. */
export const FURTHER_ROUNDS = 3;

export class RunQueue<Received> {
  readonly #partitions = new Set<Promise<void>>();
  #deferrals!: Deferrals;
  /** Tasks whose host did not answer. Their substitutes are requested at the end of the round. */
  #unanswered!: Deferrals;

  constructor(private readonly work: QueueWork<Received>) {}

  /** May be called again with further plans. Resolves when every task has an outcome. Rejects with the fatal error or the interruption that ended the run. */
  async run(plans: AsyncIterable<PartitionPlan>): Promise<void> {
    this.#deferrals = new Deferrals(this.work.createSpool);
    this.#unanswered = new Deferrals(this.work.createSpool);
    try {
      await this.#round(plans, true);
      await this.#substitute(true);
      for (let round = 1; round <= FURTHER_ROUNDS && this.#deferrals.count > 0; round += 1) {
        if (this.work.refusal() !== undefined) break;
        await this.work.beforeRound(round);
        await this.#round(this.#whileAllowed(this.#deferrals.next()), round < FURTHER_ROUNDS);
        await this.#substitute(round < FURTHER_ROUNDS);
      }
    } finally {
      // After the last round, waiting tasks have failed.
      for (const waiting of [this.#deferrals, this.#unanswered]) {
        for await (const { plan, task, error } of waiting.left()) await this.work.onFailed(plan, task, error);
        await waiting.close();
      }
    }
    this.work.stop.signal.throwIfAborted();
  }

  /** One round for substitutes from another source. Tasks whose host answers again wait for the next round. */
  async #substitute(hasRounds: boolean): Promise<void> {
    if (this.#unanswered.count === 0 || this.work.refusal() !== undefined) return;
    await this.#round(this.#substitutes(hasRounds), hasRounds);
  }

  async *#substitutes(hasRounds: boolean): AsyncGenerator<PartitionPlan> {
    for await (const plan of this.#whileAllowed(this.#unanswered.next())) {
      const substituted = await this.work.substituted(plan, hasRounds);
      if (substituted === undefined)
        await this.#deferrals.add(plan, new Map(plan.tasks.map((task) => [task, failureOf(task)])));
      else yield substituted;
    }
  }

  async #round(plans: AsyncIterable<PartitionPlan>, mayDefer: boolean): Promise<void> {
    const { signal } = this.work.stop;
    try {
      for await (const plan of plans) {
        if (signal.aborted) break;
        await this.#feed(plan, mayDefer);
      }
    } catch (error) {
      this.#stop(error);
    }
    await Promise.all(this.#partitions);
    signal.throwIfAborted();
  }

  /** Ends when the run may not begin anything new. The rest of the round failed before and keeps its first error. */
  async *#whileAllowed(plans: AsyncIterable<PartitionPlan>): AsyncGenerator<PartitionPlan> {
    for await (const plan of plans) {
      if (this.work.refusal() !== undefined) return;
      yield plan;
    }
  }

  async #feed(plan: PartitionPlan, mayDefer: boolean): Promise<void> {
    const refusal = this.work.refusal();
    const needsFetch = plan.tasks.some((task) => task.action.kind === 'fetch');
    const prepared = needsFetch && refusal === undefined ? await this.work.prepare(plan) : plan;
    const downloads: Promise<Arrival<Received>[]>[] = [];
    for (const task of prepared.tasks)
      if (task.action.kind !== 'fetch') await this.work.onSettled(prepared, task);
      else if (refusal !== undefined) await this.work.onFailed(prepared, task, refusal);
    const groups = refusal === undefined ? this.#groups(prepared) : [];
    if (groups.length === 0) return;
    const begun = this.work.places.beginPartition();
    if (begun !== undefined) await begun;
    const end = this.work.begin?.(prepared);
    for (const group of groups) {
      for (const task of group) {
        const wait = this.work.places.take(this.work.bytesOf(task), this.#partitions);
        if (wait !== undefined) await wait;
      }
      // After an abort the remaining tasks end without a request.
      downloads.push(
        this.work.places.download(() => Promise.all(group.map((task) => this.#arrive(prepared, task)))),
      );
    }
    const partition = this.#finish(prepared, downloads, mayDefer).catch(this.#stop);
    this.#partitions.add(partition);
    void partition.finally(() => {
      this.#partitions.delete(partition);
      end?.();
      this.work.places.endPartition();
      for (const task of prepared.tasks)
        if (task.action.kind === 'fetch') this.work.places.giveBack(this.work.bytesOf(task));
    });
  }

  #groups({ tasks }: PartitionPlan): Task[][] {
    const fetched = tasks.filter(({ action }) => action.kind === 'fetch');
    return [...grouped(fetched, (task) => this.work.together(task) ?? task).values()];
  }

  async #arrive(plan: PartitionPlan, task: Task): Promise<Arrival<Received>> {
    const end = await this.#download(plan, task);
    if (task.standsFor === undefined || 'received' in end) return { task, end };
    const failed = withoutSubstitute(task, 'error' in end ? end.error : undefined);
    return { task: failed.task, end: failed };
  }

  async #download(plan: PartitionPlan, task: Task): Promise<Arrival<Received>['end']> {
    try {
      this.work.stop.signal.throwIfAborted();
      const refusal = this.work.refusal();
      if (refusal !== undefined) return { error: task.failure === undefined ? refusal : failureOf(task) };
      return await this.work.download(plan, task);
    } catch (error) {
      const known = toCryptodlError(error);
      if (known.fatal) this.#stop(known);
      return { error: known };
    }
  }

  async #finish(
    plan: PartitionPlan,
    downloads: readonly Promise<Arrival<Received>[]>[],
    mayDefer: boolean,
  ): Promise<void> {
    const arrivals = (await Promise.all(downloads)).flat();
    const failures = new Map<Task, CryptodlError>();
    const received: Received[] = [];
    const settled = new Map<Task, Settled>();
    const missing = new Map<string, CryptodlError | 'absent'>();
    let isWritten = false;
    for (const { task, end } of arrivals) {
      if ('received' in end) received.push(end.received);
      else if ('instead' in end) settled.set(task, end.instead);
      else failures.set(task, end.error);
      if ('error' in end) missing.set(task.object.key, end.error);
      else if ('instead' in end && end.instead.kind === 'absent') missing.set(task.object.key, 'absent');
    }
    // A run that is stopped or out of time does not replace a file by one with only a part of its objects.
    const isReplaced = plan.rebuild !== undefined || plan.isUnlisted === true;
    const isOutOfTime = [...failures.values()].some(({ code }) => code === 'time-over');
    const isCutShort = isReplaced && (isOutOfTime || (this.work.stop.signal.aborted && failures.size > 0));
    if ((received.length > 0 || [...missing.values()].includes('absent')) && !isCutShort) {
      const refused = await this.work.places.write(() => this.work.write(plan, received, missing));
      for (const { task, end } of arrivals) {
        const why = refused.get(task.object.key);
        if (why === undefined) isWritten ||= 'received' in end;
        else if (why === 'held') settled.set(task, { kind: 'skip', isWithdrawn: true });
        else {
          settled.delete(task);
          const failed = task.standsFor === undefined ? { task, error: why } : withoutSubstitute(task, why);
          failures.set(failed.task, failed.error);
        }
      }
    }
    const mayComplete = mayDefer && !isCutShort && [...failures.values()].some(({ rounds }) => rounds);
    // A further round fetches all objects of a file that was not rebuilt, so none of them has an outcome before.
    if (plan.rebuild !== undefined && !isWritten && mayComplete) {
      const text = 'other objects of its file could not be fetched again';
      const error = new CryptodlError('partition-incomplete', text);
      const others = [...settled.keys()].map((task) => [task, error] as const);
      return this.#deferrals.add(plan, new Map([...failures, ...others]));
    }
    for (const [task, action] of settled) await this.work.onSettled(plan, { ...task, action });
    await this.#settleFailures(isWritten ? { ...plan, isWritten } : plan, failures, mayDefer);
  }

  async #settleFailures(
    plan: PartitionPlan,
    failures: ReadonlyMap<Task, CryptodlError>,
    mayDefer: boolean,
  ): Promise<void> {
    const again = new Map<Task, CryptodlError>();
    const unanswered = new Map<Task, CryptodlError>();
    const othersMayCome = [...failures.values()].some((error) => error.rounds);
    for (const [task, error] of failures) {
      if (error.fatal) continue;
      // A rebuilt file contains no substitutes.
      if (task.substitute !== undefined && FALLBACK_CODES.has(error.code) && plan.rebuild === undefined) {
        unanswered.set(task, error);
        continue;
      }
      // A task that failed because another object of its partition is missing may succeed once that object arrives.
      if (mayDefer && (error.rounds || (othersMayCome && error.code === 'partition-incomplete')))
        again.set(task, error);
      else await this.work.onFailed(plan, task, error);
    }
    if (again.size > 0) await this.#deferrals.add(plan, again);
    if (unanswered.size > 0) await this.#unanswered.add(plan, unanswered);
  }

  readonly #stop = (error: unknown): void => this.work.stop.abort(toCryptodlError(error));
}

interface Arrival<Received> {
  readonly task: Task;
  readonly end: Download<Received> | { readonly error: CryptodlError };
}
