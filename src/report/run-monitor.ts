/** Followers of a run: its progress line, its timeline, and the figures for other programs. */
import type { AttemptEnd } from '../http/fetch.js';
import type { HostStates } from '../http/host-states.js';
import type { Observer } from '../model/observer.js';
import type { TaskOutcome } from '../model/outcome.js';
import type { PlanTotals } from '../model/task.js';
import type { OnWork } from '../model/work.js';
import type { NetworkFigures } from './network-figures.js';
import type { Tally } from './tally.js';
import type { ActiveWork } from './work-tracker.js';

/** The objects and files of a run that are in progress. */
export interface WorkState {
  /** Objects that are downloaded now. */
  readonly inFlight: number;
  /** Files that are written now, and complete ones that wait for a writer. */
  readonly writing: number;
  readonly toWrite: number;
  /** Pieces of work in progress by stage. An object in flight may be in `download`, and within it in `check`. */
  readonly stages: ActiveWork;
}

/**
 * What a run does: the wait of `--jitter`, choosing of series, the wait for a publication, the lock and earlier commits of the lake,
 * its plan, its downloads and writes, its report and record.
 */
export type RunPhase =
  | 'waiting-for-jitter'
  | 'selecting'
  | 'waiting-for-publication'
  | 'opening-lake'
  | 'planning'
  | 'working'
  | 'ending';

/** A run that downloads. Its figures may be read until `end`. */
export interface LiveRun {
  readonly totals: PlanTotals;
  readonly tally: Tally;
  readonly work: () => WorkState;
  readonly network: () => NetworkFigures;
  readonly hosts: () => HostStates;
}

/** The number of objects of the plan, and of those without an outcome. */
export function objectsOf({ totals, tally }: LiveRun): { readonly planned: number; readonly undone: number } {
  const ended = Object.values(tally.outcomes).reduce((sum, count) => sum + count, 0);
  const planned = totals.fetch + totals.skip + totals.absent;
  return { planned, undone: Math.max(0, planned - ended) };
}

export interface RunMonitor {
  /** Notifications of the run, besides those of its reporter. */
  readonly observer?: Partial<Observer>;
  phase?(phase: RunPhase): void;
  /** The run can send requests: first those of its plan. */
  opened?(network: () => NetworkFigures, hosts: () => HostStates): void;
  /** The downloads begin. Called again for each further plan of the run. */
  begin?(live: LiveRun): void;
  /** A piece of work begins. The returned function is called at its end, also after an error or the end of the run. */
  readonly work?: OnWork;
  /** An attempt of a request to the bucket of the lake has ended. The observer gets those to the exchange. */
  lakeAttempt?(attempt: AttemptEnd): void;
  /** An object of the plan has its outcome. */
  outcome?(outcome: TaskOutcome): void;
  /** The downloads have ended, also after an error. */
  end?(): void;
}
