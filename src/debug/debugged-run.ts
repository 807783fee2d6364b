/** One run, followed for debug dumps: its state at a moment, and after its end. */
import type { HostStates } from '../http/host-states.js';
import type { Clock } from '../model/clock.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Observer } from '../model/observer.js';
import type { OnWork, Work } from '../model/work.js';
import type { NetworkFigures } from '../report/network-figures.js';
import { objectsOf } from '../report/run-monitor.js';
import type { LiveRun, RunMonitor, RunPhase } from '../report/run-monitor.js';

export interface DebuggedRunOptions {
  readonly verb: string;
  /** The name of the job, if the run is one of several. */
  readonly job: string | undefined;
  /** The given options, without private addresses. */
  readonly options: Readonly<Record<string, readonly string[]>>;
  readonly clock: Clock;
}

/** For a run with ten thousand pieces of work, a list of all would be no help. */
const MOST_PIECES = 500;

export class DebuggedRun implements RunMonitor {
  readonly observer: Pick<Observer, 'waiting'>;
  readonly #options: DebuggedRunOptions;
  readonly #inProgress: WorkInProgress;
  readonly work: WorkInProgress['work'];
  #network: (() => NetworkFigures) | undefined;
  #hosts: (() => HostStates) | undefined;
  #live: LiveRun | undefined;
  #phase: RunPhase | 'starting' | 'ended' = 'starting';
  #phaseAt: number;
  #waitingFor: string | undefined;
  #exitCode: ExitCode | undefined;
  #ended: object | undefined;

  constructor(options: DebuggedRunOptions) {
    this.#options = options;
    const { clock } = options;
    this.#phaseAt = clock.monotonic();
    this.#inProgress = new WorkInProgress(clock);
    this.work = this.#inProgress.work;
    this.observer = {
      waiting: (message) => {
        this.#waitingFor = message;
      },
    };
  }

  phase(phase: RunPhase): void {
    this.#enter(phase);
  }

  opened(network: () => NetworkFigures, hosts: () => HostStates): void {
    this.#network = network;
    this.#hosts = hosts;
  }

  begin(live: LiveRun): void {
    this.#live = live;
  }

  /** Keeps the last state and releases the run. */
  ended(exitCode: ExitCode): void {
    if (this.#ended !== undefined) return;
    this.#enter('ended');
    this.#exitCode = exitCode;
    this.#ended = this.state;
    this.#network = undefined;
    this.#hosts = undefined;
    this.#live = undefined;
  }

  /** Plain data for JSON. */
  get state(): object {
    if (this.#ended !== undefined) return this.#ended;
    const { verb, job, options, clock } = this.#options;
    const { pieces } = this.#inProgress;
    return {
      verb,
      job,
      phase: this.#phase,
      inPhaseForMs: Math.round(clock.monotonic() - this.#phaseAt),
      waitingFor: this.#waitingFor,
      exitCode: this.#exitCode,
      options,
      queue: this.#queue,
      workInProgress: pieces.slice(0, MOST_PIECES),
      moreWorkInProgress: Math.max(0, pieces.length - MOST_PIECES),
      ...this.#hosts?.(),
      network: this.#network?.(),
    };
  }

  get #queue(): object | undefined {
    if (this.#live === undefined) return undefined;
    const { tally, work, network } = this.#live;
    const { planned, undone } = objectsOf(this.#live);
    return {
      plannedObjects: planned,
      outcomes: tally.outcomes,
      failedBy: tally.failedBy,
      objectsWithoutOutcome: undone,
      concurrencyLimit: network().concurrency,
      ...(this.#phase === 'working' ? work() : {}),
    };
  }

  #enter(phase: RunPhase | 'ended'): void {
    this.#phase = phase;
    this.#phaseAt = this.#options.clock.monotonic();
    this.#waitingFor = undefined;
  }
}

/** The pieces of work that have begun and not ended. It holds only what is in progress, so its memory is bounded by the concurrency of the run. */
export class WorkInProgress {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #pieces = new Set<{ readonly work: Work; readonly begunAt: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  readonly work: OnWork = (work) => {
    const piece = { work, begunAt: this.#clock.monotonic() };
    this.#pieces.add(piece);
    return () => {
      this.#pieces.delete(piece);
    };
  };

  /** In the order of their beginning. `forMs`: milliseconds since then. */
  get pieces(): readonly (Work & { readonly forMs: number })[] {
    const now = this.#clock.monotonic();
    return [...this.#pieces].map(({ work, begunAt }) => ({ ...work, forMs: Math.round(now - begunAt) }));
  }
}
