/** One run, followed for debug dumps: its state at a moment, and after its end. */
import type { ExitCode } from '../model/exit-code.js';
import type { LiveRun } from '../report/live-run.js';

export interface DebuggedRunOptions {
  readonly verb: string;
  /** The name of the job, if the run is one of several. */
  readonly job: string | undefined;
  /** The given options, without private addresses. */
  readonly options: Readonly<Record<string, readonly string[]>>;
}

/** For a run with ten thousand pieces of work, a list of all would be no help. */
const MOST_PIECES = 500;

export class DebuggedRun {
  readonly #options: DebuggedRunOptions;
  #live: LiveRun | undefined;
  #ended: object | undefined;

  constructor(options: DebuggedRunOptions, live: LiveRun) {
    this.#options = options;
    this.#live = live;
  }

  /** Keeps the last state and releases the run. */
  ended(exitCode: ExitCode): void {
    this.#live?.enter('ended');
    this.#ended ??= { ...this.state, exitCode };
    this.#live = undefined;
  }

  /** Plain data for JSON. */
  get state(): object {
    const live = this.#live;
    if (live === undefined) return { ...this.#ended };
    const { verb, job, options } = this.#options;
    const { pieces } = live.work;
    return {
      verb,
      job,
      ...live.phase,
      options,
      queue: queueOf(live),
      workInProgress: pieces.slice(0, MOST_PIECES),
      moreWorkInProgress: Math.max(0, pieces.length - MOST_PIECES),
      ...live.hosts?.(),
      network: live.network?.(),
    };
  }
}

function queueOf({ plan, objects, network, work, phase }: LiveRun): object | undefined {
  if (plan === undefined) return undefined;
  const { tally, state } = plan;
  return {
    plannedObjects: objects.planned,
    outcomes: tally.outcomes,
    failedBy: tally.failedBy,
    objectsWithoutOutcome: objects.undone,
    concurrencyLimit: network?.().concurrency,
    ...(phase.phase === 'working' ? { ...state(), stages: work.active } : {}),
  };
}
