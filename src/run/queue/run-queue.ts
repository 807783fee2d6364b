/** The queue of a run: takes partition plans lazily, downloads their objects, hands complete partitions to the writers, and decides about further rounds. */
import { toCryptodlError, CryptodlError, FALLBACK_CODES } from '../../model/errors.js';
import { grouped } from '../../model/by-name.js';
import type { PartitionPlan, Task } from '../../model/task.js';
import type { Missing, PartitionWriter, WriteResult } from '../../lake/write/writer.js';
import type { Arrival } from '../objects/download-object.js';
import type { Downloads } from '../objects/downloads.js';
import type { LiveRun } from '../report/live-run.js';
import { Deferrals, FURTHER_ROUNDS, earlierError, withoutSubstitute } from './rounds.js';
import type { DeferredPlans, Rounds, FailedTask } from './rounds.js';
import type { Outcomes } from '../partitions/outcomes.js';
import type { Slots } from '../pacing/places.js';

interface QueueParts {
  readonly writer: PartitionWriter;
  readonly downloads: Pick<Downloads, 'download' | 'together' | 'bytesOf'>;
  readonly outcomes: Pick<Outcomes, 'written' | 'failed' | 'settled'>;
  readonly places: Slots;
  readonly rounds: Rounds;
  readonly live: Pick<LiveRun, 'begin' | 'during'>;
  /** Aborts with a CryptodlError. The queue aborts it when a fatal error ends the run. */
  readonly stop: AbortController;
  /** The error of tasks that may no longer begin; undefined while tasks may begin. Tasks in flight go on. */
  readonly refusal: () => CryptodlError | undefined;
  readonly createSpool: () => DeferredPlans;
}

export class RunQueue {
  readonly #partitions = new Set<Promise<void>>();
  #deferrals!: Deferrals;
  #unanswered!: Deferrals;

  constructor(private readonly parts: QueueParts) {}

  /** May be called again with further plans. Resolves when every task has an outcome. Rejects with the fatal error or the interruption that ended the run. */
  async run(plans: AsyncIterable<PartitionPlan>): Promise<void> {
    const { createSpool, outcomes, refusal, rounds, stop } = this.parts;
    this.#deferrals = new Deferrals(createSpool);
    this.#unanswered = new Deferrals(createSpool);
    try {
      await this.#round(plans, true);
      for (let round = 1; round <= FURTHER_ROUNDS && this.#deferrals.count > 0; round += 1) {
        if (refusal() !== undefined) break;
        await rounds.before(round);
        await this.#round(this.#whileAllowed(this.#deferrals.next()), round < FURTHER_ROUNDS);
      }
    } finally {
      // After the last round, waiting tasks have failed.
      for (const waiting of [this.#deferrals, this.#unanswered]) {
        for await (const plan of waiting.left())
          for (const task of plan.tasks) await outcomes.failed(plan, task, earlierError(task));
        await waiting.close();
      }
    }
    stop.signal.throwIfAborted();
  }

  /** One round, and then one for substitutes from another source. */
  async #round(plans: AsyncIterable<PartitionPlan>, hasRounds: boolean): Promise<void> {
    await this.#pass(plans, hasRounds);
    if (this.#unanswered.count > 0 && this.parts.refusal() === undefined)
      await this.#pass(this.#substitutes(hasRounds), hasRounds);
  }

  /** Tasks whose host answers again wait for the next round. */
  async *#substitutes(hasRounds: boolean): AsyncGenerator<PartitionPlan> {
    for await (const plan of this.#whileAllowed(this.#unanswered.next())) {
      const substituted = await this.parts.rounds.substituted(plan, hasRounds);
      const failures = plan.tasks.map((task) => ({ task, error: earlierError(task) }));
      if (substituted === undefined) await this.#deferrals.add(plan, failures);
      else yield substituted;
    }
  }

  async #pass(plans: AsyncIterable<PartitionPlan>, mayDefer: boolean): Promise<void> {
    const { signal } = this.parts.stop;
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
      if (this.parts.refusal() !== undefined) return;
      yield plan;
    }
  }

  async #feed(plan: PartitionPlan, mayDefer: boolean): Promise<void> {
    const { writer, outcomes, places, live } = this.parts;
    const refusal = this.parts.refusal();
    const needsFetch = plan.tasks.some(isFetch);
    const prepared = needsFetch && refusal === undefined ? await writer.prepare(plan) : plan;
    for (const task of prepared.tasks)
      if (!isFetch(task)) await outcomes.settled(prepared, task);
      else if (refusal !== undefined) await outcomes.failed(prepared, task, refusal);
    const fetched = refusal === undefined ? prepared.tasks.filter(isFetch) : [];
    if (fetched.length === 0) return;
    const begun = places.beginPartition();
    if (begun !== undefined) await begun;
    const end = live.begin('partition', { plan: prepared });
    const arrivals = await this.#arrivals(prepared, fetched);
    const partition = this.#settle(prepared, arrivals, mayDefer).catch(this.#stop);
    this.#partitions.add(partition);
    void partition.finally(() => {
      this.#partitions.delete(partition);
      end();
      places.endPartition();
      for (const task of fetched) places.giveBack(this.parts.downloads.bytesOf(task));
    });
  }

  /** Resolves when all downloads have begun or wait for a place. */
  async #arrivals(plan: PartitionPlan, fetched: readonly Task[]): Promise<Promise<Arrival[]>[]> {
    const { places, downloads } = this.parts;
    const arrivals: Promise<Arrival[]>[] = [];
    for (const group of grouped(fetched, (task) => downloads.together(task) ?? task).values()) {
      for (const task of group) {
        const wait = places.take(downloads.bytesOf(task), this.#partitions);
        if (wait !== undefined) await wait;
      }
      // After an abort the remaining tasks end without a request.
      arrivals.push(
        places.download(() =>
          Promise.all(group.map(async (task) => ({ task, end: await this.#download(plan, task) }))),
        ),
      );
    }
    return arrivals;
  }

  async #download(plan: PartitionPlan, task: Task): Promise<Arrival['end']> {
    const { stop, downloads } = this.parts;
    try {
      stop.signal.throwIfAborted();
      const refusal = this.parts.refusal();
      if (refusal !== undefined) return { error: task.failure === undefined ? refusal : earlierError(task) };
      return await downloads.download(plan, task);
    } catch (error) {
      const known = toCryptodlError(error);
      if (known.fatal) this.#stop(known);
      return { error: known };
    }
  }

  /** Writes the objects that arrived. Each task gets an outcome, or waits for a further round or its substitute. */
  async #settle(
    plan: PartitionPlan,
    downloads: readonly Promise<Arrival[]>[],
    mayDefer: boolean,
  ): Promise<void> {
    const { outcomes, places, stop } = this.parts;
    const arrivals = (await Promise.all(downloads)).flat().map(withoutSubstitute);
    // A run that is stopped or out of time does not replace a file by one with only a part of its objects.
    const isReplaced = plan.rebuild !== undefined || plan.isUnlisted === true;
    const isCutShort =
      isReplaced &&
      arrivals.some(({ end }) => 'error' in end && (stop.signal.aborted || end.error.code === 'time-over'));
    const isWrite = !isCutShort && arrivals.some(isForWriter);
    const written = isWrite ? await places.write(() => this.#write(plan, arrivals)) : arrivals;
    const ends = written.map(withoutSubstitute);
    const isWritten = isWrite && ends.some(({ end }) => 'received' in end);
    const failures = ends.flatMap(({ task, end }) => ('error' in end ? [{ task, error: end.error }] : []));
    const mayComplete = !isCutShort && failures.some(({ error }) => error.rounds);
    // A further round fetches all objects of a file that was not rebuilt, so none of them has an outcome before.
    if (mayDefer && plan.rebuild !== undefined && !isWritten && mayComplete) {
      const text = 'other objects of its file could not be fetched again';
      const error = new CryptodlError('partition-incomplete', text);
      const others = ends.flatMap(({ task, end }) => ('instead' in end ? [{ task, error }] : []));
      return this.#deferrals.add(plan, [...failures, ...others]);
    }
    for (const { task, end } of ends)
      if ('instead' in end) await outcomes.settled(plan, { ...task, action: end.instead });
    return this.#settleFailures(isWritten ? { ...plan, isWritten } : plan, failures, mayDefer);
  }

  /** Resolves with the ends of all tasks. Those that the writer did not refuse have their outcome. */
  async #write(plan: PartitionPlan, arrivals: readonly Arrival[]): Promise<readonly Arrival[]> {
    const { writer, outcomes, live } = this.parts;
    const received = arrivals.flatMap(({ end }) => ('received' in end ? [end.received] : []));
    return live.during('write', { plan }, async () => {
      const result = await writer.write(plan, received, missingOf(arrivals));
      await outcomes.written(plan, received, result);
      return afterWrite(arrivals, result);
    });
  }

  /** Decides which failed tasks get a further round. The substitutes of others are requested at the end of the round. */
  async #settleFailures(plan: PartitionPlan, tasks: readonly FailedTask[], mayDefer: boolean): Promise<void> {
    const again: FailedTask[] = [];
    const forSubstitute: FailedTask[] = [];
    const othersMayCome = tasks.some(({ error }) => error.rounds);
    for (const failed of tasks) {
      const { task, error } = failed;
      if (error.fatal) continue;
      // A task that failed because another object of its partition is missing may succeed once that object arrives.
      const mayCome = error.rounds || (othersMayCome && error.code === 'partition-incomplete');
      // A rebuilt file contains no substitutes.
      if (task.substitute !== undefined && FALLBACK_CODES.has(error.code) && plan.rebuild === undefined)
        forSubstitute.push(failed);
      else if (mayDefer && mayCome) again.push(failed);
      else await this.parts.outcomes.failed(plan, task, error);
    }
    await this.#deferrals.add(plan, again);
    await this.#unanswered.add(plan, forSubstitute);
  }

  readonly #stop = (error: unknown): void => this.parts.stop.abort(toCryptodlError(error));
}

const isFetch = ({ action }: Task): boolean => action.kind === 'fetch';

/** The writer also decides about held rows of absent objects. */
const isForWriter = ({ end }: Arrival): boolean =>
  'received' in end || ('instead' in end && end.instead.kind === 'absent');

/** Of the objects that were not received, those that the writer must know. */
function missingOf(arrivals: readonly Arrival[]): Missing {
  const missing = new Map<string, CryptodlError | 'absent'>();
  for (const { task, end } of arrivals)
    if ('error' in end) missing.set(task.object.key, end.error);
    else if ('instead' in end && end.instead.kind === 'absent') missing.set(task.object.key, 'absent');
  return missing;
}

/** The ends after a write: absent objects whose held rows stay are skipped, and refused ones, which come last, have the error of the writer. */
function afterWrite(arrivals: readonly Arrival[], { failed, stillHeld }: WriteResult): Arrival[] {
  const kept: Arrival[] = [];
  const refused: Arrival[] = [];
  for (const arrival of arrivals) {
    const { task } = arrival;
    const error = failed.get(task.object.key);
    if (error !== undefined) refused.push({ task, end: { error } });
    else if (stillHeld?.has(task.object.key) !== true) kept.push(arrival);
    else kept.push({ task, end: { instead: { kind: 'skip', isWithdrawn: true } } });
  }
  return [...kept, ...refused];
}
