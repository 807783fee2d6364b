/** One run, followed for the metrics: its figures at a moment, and after its end. */
import type { AttemptEnd } from '../http/fetch.js';
import type { Clock } from '../model/clock.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Observer } from '../model/observer.js';
import type { DatasetFigures } from '../report/dataset-tally.js';
import type { NetworkFigures } from '../report/network-figures.js';
import type { LiveRun, RunMonitor, WorkState } from '../report/run-monitor.js';
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
  readonly onAttempt: (attempt: AttemptEnd) => void;
}

export class FollowedRun implements RunMonitor {
  readonly #followed: Followed;
  readonly observer: Pick<Observer, 'arrived' | 'attempt'>;
  #network: (() => NetworkFigures) | undefined;
  #live: LiveRun | undefined;
  #receivedBytes = 0;
  #ended: RunState | undefined;

  constructor(followed: Followed) {
    this.#followed = followed;
    this.observer = {
      arrived: (bytes) => {
        this.#receivedBytes += bytes;
      },
      attempt: followed.onAttempt,
    };
  }

  lakeAttempt(attempt: AttemptEnd): void {
    this.#followed.onAttempt(attempt);
  }

  opened(network: () => NetworkFigures): void {
    this.#network = network;
  }

  begin(live: LiveRun): void {
    this.#live = live;
  }

  /** Keeps the figures and releases the run. */
  ended(exitCode: ExitCode, verdict?: VerdictSummary): void {
    this.#ended ??= { ...this.#stateOf(exitCode, verdict), isLive: false, work: undefined };
    this.#network = undefined;
    this.#live = undefined;
  }

  get state(): RunState {
    return this.#ended ?? this.#stateOf(undefined);
  }

  #stateOf(exitCode: ExitCode | undefined, verdict?: VerdictSummary): RunState {
    const { tally, totals, work } = this.#live ?? {};
    const outcomes = Object.values(tally?.outcomes ?? {}).reduce((sum, count) => sum + count, 0);
    const planned = totals === undefined ? 0 : totals.fetch + totals.skip + totals.absent;
    return {
      isLive: this.#network !== undefined,
      network: this.#network?.(),
      work: work?.(),
      failedBy: { ...tally?.failedBy },
      datasets: tally?.datasets.figures ?? [],
      undone: Math.max(0, planned - outcomes),
      receivedBytes: this.#receivedBytes,
      history: this.#followed.history,
      ends: [...this.#verdict(verdict), ...this.#ends(exitCode)],
    };
  }

  #verdict(verdict: VerdictSummary | undefined): RunEndFigure[] {
    if (verdict === undefined) return [];
    const { job } = this.#followed;
    return [
      ['cryptodl_check_exit_code', job, verdict.exitCode],
      ['cryptodl_check_lacking_series', job, verdict.lacking],
    ];
  }

  #ends(exitCode: ExitCode | undefined): RunEndFigure[] {
    const { job, history, clock } = this.#followed;
    const nowS = clock.now() / 1000;
    const { lastSuccessMs, failedInARow } = history;
    const success = exitCode === 0 ? nowS : lastSuccessMs === undefined ? undefined : lastSuccessMs / 1000;
    const failed = this.#live?.tally.outcomes.failed;
    const isOver = exitCode !== undefined && failed !== undefined;
    const inARow = isOver ? (failed > 0 ? failedInARow + 1 : 0) : failedInARow;
    return [
      ['cryptodl_failed_runs_in_a_row', job, inARow],
      ...(success === undefined ? [] : [['cryptodl_last_success_timestamp_seconds', job, success] as const]),
      ...(exitCode === undefined
        ? []
        : [
            ['cryptodl_last_run_timestamp_seconds', job, nowS] as const,
            ['cryptodl_last_run_exit_code', job, exitCode] as const,
          ]),
    ];
  }
}
