/** The result of a run, in numbers and as an exit code. */
import type { CryptodlError } from '../../model/errors.js';
import { exitCode, type ExitCode, type RunStatus } from '../../model/exit-code.js';
import type { Tally } from './tally.js';
import type { NetworkFigures } from './network-figures.js';
import { SUMMED } from './count-outcome.js';
import type { LiveRun } from './live-run.js';

/** A figure of a run beyond its threshold. */
export interface Alert {
  readonly id: string;
  readonly text: string;
  /** The flag to change, or the next command. */
  readonly advice: string;
}

/** The verdict of `cryptodl check` about a lake, for outputs that show no orders. */
export interface VerdictSummary {
  readonly state: 'complete' | 'behind' | 'incomplete' | 'running';
  /** 0 if nothing is missing; 4 if no run can mend what is missing, and none is active; else 3. */
  readonly exitCode: ExitCode;
  /** One line. */
  readonly text: string;
  /** The command that may mend what is missing; null if there is none. */
  readonly next: string | null;
  readonly series: number;
  /** Series that lack data. */
  readonly lacking: number;
}

export interface RunEnd {
  readonly status: Omit<RunStatus, 'signal'>;
  readonly tally: Tally;
  readonly network: NetworkFigures;
  readonly times: LiveRun['times'];
  readonly ended: CryptodlError | undefined;
  /** Tasks without an outcome, because the run ended early. */
  readonly undone: number;
  /** `3/12` */
  readonly shard: string | undefined;
  readonly dataPath: string;
  readonly reportPath: string | undefined;
  readonly quarantinePath: string | undefined;
  /** A command that shows rows of this run; undefined if it wrote none. */
  readonly query: string | undefined;
  readonly alerts: readonly Alert[];
}

type Summed = Readonly<Record<(typeof SUMMED)[number], number>>;

export type RunSummary = Readonly<ReturnType<typeof summaryOf>>;

/** Peak resident memory of this process. Node gives it in KiB on every platform. */
export const peakMemoryBytes = (): number => process.resourceUsage().maxRSS * 1024;

/** `signal`: the one that ended the command; calls of the library have none. */
export function summaryOf(end: RunEnd, signal?: RunStatus['signal']) {
  const { tally, network } = end;
  const { elapsedMs, ...times } = end.times;
  return {
    outcomes: tally.outcomes,
    absent: tally.absentBy,
    failed: tally.failedBy,
    undone: end.undone,
    ...(Object.fromEntries(SUMMED.map((name) => [name, tally.of(name)])) as Summed),
    requests: network.requests,
    retries: network.retries.total,
    network,
    /** Objects for which the archive did not answer: `fromRest` in this run, `held` from REST since an earlier run. */
    archiveFailed: { fromRest: tally.of('archiveFailed.fromRest'), held: tally.of('archiveFailed.held') },
    /** From the start of the command, planning and pauses included. */
    elapsedMs,
    /** `elapsedMs` by phase, and the time of the objects by stage, in ms. */
    times,
    peakMemoryBytes: peakMemoryBytes(),
    /** `3/12`: the part of the selection that the run did. */
    shard: end.shard ?? null,
    failures: end.reportPath ?? null,
    datasets: tally.datasets,
    alerts: end.alerts,
    exitCode: exitCode({ ...end.status, signal }),
  };
}
