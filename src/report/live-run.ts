/** A run at this moment: its phase, its counts and its work in progress. All views of a run in progress read them here. */
import type { AttemptEnd } from '../http/fetch.js';
import type { HostStates } from '../http/host-states.js';
import type { Clock } from '../model/clock.js';
import { Counters } from '../model/counters.js';
import type { Observer } from '../model/observer.js';
import type { PlanTotals } from '../model/task.js';
import type { RunCount } from './figures.js';
import type { NetworkFigures } from './network-figures.js';
import type { Tally } from './tally.js';
import { WorkTracker } from './work-tracker.js';

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
