/** One run, followed for the metrics: its figures at a moment, and after its end. */
import type { AttemptEnd } from '../http/fetch.js';
import type { Clock } from '../model/clock.js';
import type { ExitCode } from '../model/exit-code.js';
import type { DatasetFigures } from '../report/dataset-tally.js';
import type { NetworkFigures } from '../report/network-figures.js';
import type { LiveRun, RunMonitor, WorkState } from '../report/live-run.js';
import type { VerdictSummary } from '../report/run-summary.js';
import type { MetricName } from './prometheus-metrics.js';
import type { RunHistory } from './run-history.js';

/** The figures of a run at a moment. */
export interface RunState {
  /** False before its first request and after its end. */
  readonly isLive: boolean;
  readonly network: NetworkFigures | undefined;
  readonly work: WorkState | undefined;
  readonly failedBy: Readonly<Record<string, number>>;
  readonly datasets: readonly DatasetFigures[];
  /** Objects of the plan without an outcome. */
  readonly undone: number;
  readonly receivedBytes: number;
  readonly history: RunHistory;
  /** The end of this or the last run. */
  readonly ends: readonly RunEndFigure[];
}

/** A metric with the label `run_job`. */
export type RunEndFigure = readonly [
  name: Extract<
    MetricName,
    `cryptodl_last_${string}` | `cryptodl_check_${string}` | 'cryptodl_failed_runs_in_a_row'
  >,
  job: string,
  value: number,
];

interface Followed {
  readonly job: string;
  readonly history: RunHistory;
  readonly clock: Pick<Clock, 'now'>;
  readonly attempt: (attempt: AttemptEnd) => void;
}

export class FollowedRun implements RunMonitor {
  readonly #followed: Followed;
  readonly attempt: Followed['attempt'];
  #live: LiveRun | undefined;
  #ended: RunState | undefined;

  constructor(followed: Followed, live: LiveRun) {
    this.#followed = followed;
    this.#live = live;
    this.attempt = followed.attempt;
  }

  /** Keeps the figures and releases the run. */
  ended(exitCode: ExitCode, verdict?: VerdictSummary): void {
    this.#ended ??= { ...this.#stateOf(exitCode, verdict), isLive: false, work: undefined };
    this.#live = undefined;
  }

  get state(): RunState {
    return this.#ended ?? this.#stateOf(undefined);
  }

  #stateOf(exitCode: ExitCode | undefined, verdict?: VerdictSummary): RunState {
    const { network, plan, objects, counts } = this.#live ?? {};
    return {
      isLive: network !== undefined,
      network: network?.(),
      work: plan?.state(),
      failedBy: plan?.tally.failedBy ?? {},
      datasets: plan?.tally.datasets ?? [],
      undone: objects?.undone ?? 0,
      receivedBytes: counts?.of('bytes') ?? 0,
      history: this.#followed.history,
      ends: this.#ends(exitCode, verdict),
    };
  }

  #ends(exitCode: ExitCode | undefined, verdict: VerdictSummary | undefined): RunEndFigure[] {
    const { job, history, clock } = this.#followed;
    const nowS = clock.now() / 1000;
    const lastSuccessS = history.lastSuccessMs === undefined ? undefined : history.lastSuccessMs / 1000;
    const failed = exitCode === undefined ? undefined : this.#live?.plan?.tally.of('outcome.failed');
    const inARow = failed === 0 ? 0 : history.failedInARow + (failed === undefined ? 0 : 1);
    const figures: readonly (readonly [RunEndFigure[0], number | undefined])[] = [
      ['cryptodl_check_exit_code', verdict?.exitCode],
      ['cryptodl_check_lacking_series', verdict?.lacking],
      ['cryptodl_failed_runs_in_a_row', inARow],
      ['cryptodl_last_success_timestamp_seconds', exitCode === 0 ? nowS : lastSuccessS],
      ['cryptodl_last_run_timestamp_seconds', exitCode === undefined ? undefined : nowS],
      ['cryptodl_last_run_exit_code', exitCode],
    ];
    return figures.flatMap(([name, value]) => (value === undefined ? [] : [[name, job, value] as const]));
  }
}
