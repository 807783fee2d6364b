/** A run at this moment: its phase, its counts and its work in progress. All views of a run in progress read them here. */
import type { AttemptEnd, FetchRequest, Wait } from '../http/fetch.js';
import type { HostStates } from '../http/host-states.js';
import type { Clock } from '../model/clock.js';
import { Counters } from '../model/counters.js';
import type { Observer } from '../model/observer.js';
import type { PlanTotals } from '../model/task.js';
import type { RunCount, NetworkFigures } from './figures.js';
import type { Tally } from './tally.js';
import type { RequestFollower } from '../http/transport/measure.js';
import type { Work, WorkStage, WorkSubject } from '../model/work.js';

/** It holds only what is in progress, so its memory is bounded by the concurrency of the run. */
export class WorkTracker implements RequestFollower {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #pieces = new Set<{ readonly work: Work; readonly begunAt: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** In the order of their beginning. `forMs`: milliseconds since then. */
  get pieces(): readonly (Work & { readonly forMs: number })[] {
    const now = this.#clock.monotonic();
    return [...this.#pieces].map(({ work, begunAt }) => ({ ...work, forMs: Math.round(now - begunAt) }));
  }

  /** The number of pieces by stage, without requests and waits: the figures of the network count them. */
  get active(): Readonly<Record<Exclude<WorkStage, 'request' | 'wait'>, number>> {
    const counts = { partition: 0, download: 0, write: 0, check: 0, convert: 0, commit: 0 };
    for (const {
      work: { stage },
    } of this.#pieces)
      if (stage !== 'request' && stage !== 'wait') counts[stage] += 1;
    return counts;
  }

  /** Returns the function to call at the end of the work. */
  begin(stage: WorkStage, { plan, object, label }: WorkSubject): () => void {
    return this.#add({ stage, name: object?.key ?? label ?? plan.label, series: plan.series });
  }

  async during<T>(stage: WorkStage, subject: WorkSubject, act: () => Promise<T>): Promise<T> {
    const end = this.begin(stage, subject);
    try {
      return await act();
    } finally {
      end();
    }
  }

  onRequest({ url }: FetchRequest): () => void {
    return this.#add({ stage: 'request', name: url });
  }

  onWait(reason: Wait, { url }: FetchRequest): () => void {
    return this.#add({ stage: 'wait', name: `${reason}: ${url}` });
  }

  #add(work: Work): () => void {
    const piece = { work, begunAt: this.#clock.monotonic() };
    this.#pieces.add(piece);
    return () => {
      this.#pieces.delete(piece);
    };
  }
}

/** The objects and files of a run that are in progress. */
export interface WorkState {
  /** Objects that are downloaded now. */
  readonly inFlight: number;
  /** Files that are written now, and complete ones that wait for a writer. */
  readonly writing: number;
  readonly toWrite: number;
}

/**
 * What a run does: the wait of `--jitter`, choosing of series, the wait for a publication, the lock and earlier commits of the lake,
 * its plan, its downloads and writes, its report and record.
 */
export type RunPhase =
  | 'starting'
  | 'waiting-for-jitter'
  | 'selecting'
  | 'waiting-for-publication'
  | 'opening-lake'
  | 'planning'
  | 'working'
  | 'ending'
  | 'ended';

export class LiveRun {
  /** The layers of requests count into it, too. */
  readonly counts = new Counters<RunCount>();
  readonly work: WorkTracker;
  /** Both are set when the run can send requests: first those of its plan. */
  network: (() => NetworkFigures) | undefined;
  hosts: (() => HostStates) | undefined;
  /** Set when the downloads begin. */
  plan: { readonly totals: PlanTotals; readonly tally: Tally; readonly state: () => WorkState } | undefined;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #phase: RunPhase = 'starting';
  #phaseAt: number;
  #waitingFor: string | undefined;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#phaseAt = clock.monotonic();
    this.work = new WorkTracker(clock);
  }

  enter(phase: RunPhase): void {
    this.#phase = phase;
    this.#phaseAt = this.#clock.monotonic();
    this.#waitingFor = undefined;
  }

  get phase(): {
    readonly phase: RunPhase;
    readonly inPhaseForMs: number;
    readonly waitingFor: string | undefined;
  } {
    const inPhaseForMs = Math.round(this.#clock.monotonic() - this.#phaseAt);
    return { phase: this.#phase, inPhaseForMs, waitingFor: this.#waitingFor };
  }

  /** The number of objects of the plan, and of those without an outcome. */
  get objects(): { readonly planned: number; readonly undone: number } {
    if (this.plan === undefined) return { planned: 0, undone: 0 };
    const { totals, tally } = this.plan;
    const ended = Object.values(tally.outcomes).reduce((sum, count) => sum + count, 0);
    const planned = totals.fetch + totals.skip + totals.absent;
    return { planned, undone: Math.max(0, planned - ended) };
  }

  readonly observer = {
    arrived: (bytes: number): void => {
      this.counts.add('objects');
      this.counts.add('bytes', bytes);
    },
    waiting: (message: string): void => {
      this.#waitingFor = message;
    },
  } satisfies Partial<Observer>;
}

/** A follower of a run that does something of its own at the moments of the run. */
export interface RunMonitor {
  /** The run can send requests. */
  opened?(live: LiveRun): void;
  /** The downloads begin. */
  begin?(live: LiveRun): void;
  /** An attempt of a request has ended: to the exchange, or to the bucket of the lake. */
  attempt?(attempt: AttemptEnd): void;
  /** The downloads have ended, also after an error. */
  end?(): void;
}
