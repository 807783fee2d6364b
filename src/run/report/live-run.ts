/** A run at this moment: its phase, its counts, its times and its work in progress. All views of a run read them here. */
import type { AttemptEnd, FetchRequest, WaitReason } from '../../model/fetch.js';
import type { RetryBudget } from '../../http/retry/budget.js';
import type { Throttle } from '../../http/throttle/throttle.js';
import type { RequestFollower } from '../../http/transport/measure.js';
import type { Clock } from '../../model/clock.js';
import { Counters } from '../../model/counters.js';
import type { ExitCode } from '../../model/exit-code.js';
import type { Observer } from '../../model/observer.js';
import type { PlanTotals } from '../../model/task.js';
import type { Work, WorkStage, WorkSubject } from '../../model/work.js';
import type { Figures, RunCount } from './figures.js';
import type { NetworkFigures } from './network-figures.js';
import type { Tally } from './tally.js';

/**
 * `wait`: a requested object is not in flight: permits, sockets, retries, an open breaker, a late sidecar ·
 * `transfer`: its attempts in flight · `check`: unpacking of zips, reading back of files · `convert`: rows become a file ·
 * `commit`: publishing of files and manifest lines.
 */
const STAGES = ['wait', 'transfer', 'check', 'convert', 'commit'] as const;
type Stage = (typeof STAGES)[number];

/** The verdict about the lake after the run, as the page of metrics shows it. */
type Verdict = { readonly exitCode: ExitCode; readonly lacking: number } | undefined;

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

/** The state of the hosts of a run at a moment. */
export interface HostStates {
  /** The buckets that the run has used. */
  readonly buckets: Throttle['states'];
  readonly breakers: Figures['openBreakers'];
  /** The proxies that do not work, of several. */
  readonly deadProxies?: readonly string[];
  /** By host. */
  readonly retryBudgets: Readonly<Record<string, RetryBudget['state']>>;
}

/** A follower of a run that does something of its own at the moments of the run. */
export interface RunFollower {
  /** The run has entered a phase. From `selecting` on it can send requests. */
  entered?(live: LiveRun): void;
  /** An attempt of a request has ended: to the exchange, or to the bucket of the lake. */
  attempt?(attempt: AttemptEnd): void;
}

/** It holds only what is in progress, so its memory is bounded by the concurrency of the run. */
export class LiveRun implements RequestFollower {
  /** The layers of requests count into it, too. */
  readonly counts = new Counters<RunCount>();
  /** Both are set when the run can send requests: first those of its plan. */
  network: (() => NetworkFigures) | undefined;
  hosts: (() => HostStates) | undefined;
  /** Set when the downloads begin. `state`: objects that are downloaded now, files that are written now, and complete ones that wait for a writer. */
  progress:
    | {
        readonly totals: PlanTotals;
        readonly tally: Tally;
        readonly state: () => Readonly<Record<'inFlight' | 'writing' | 'toWrite', number>>;
      }
    | undefined;
  /** `atMs`: epoch milliseconds. */
  end: { readonly exitCode: ExitCode; readonly verdict: Verdict; readonly atMs: number } | undefined;
  readonly #followers: RunFollower[] = [];
  readonly #pieces = new Set<{ readonly work: Work; readonly begunAtMs: number }>();
  readonly #stagesMs = new Counters<Stage | WorkStage>();
  readonly #pausedMs = { plan: 0, work: 0 };
  #phase: RunPhase = 'starting';
  #phaseAt: number;
  #workAt: number | undefined;
  #waitingFor: string | undefined;

  /** `startedAtMs`: the beginning of the command, on the monotonic clock. */
  constructor(
    private readonly clock: Pick<Clock, 'monotonic' | 'now'>,
    private readonly startedAtMs = clock.monotonic(),
  ) {
    this.#phaseAt = clock.monotonic();
  }

  follow(follower: RunFollower): void {
    this.#followers.push(follower);
  }

  enter(phase: RunPhase): void {
    this.#phase = phase;
    this.#phaseAt = this.clock.monotonic();
    this.#waitingFor = undefined;
    if (phase === 'working') this.#workAt = this.#phaseAt;
    for (const follower of this.#followers) follower.entered?.(this);
  }

  /** Keeps the last figures, and releases the parts of the run that give them. */
  ended(exitCode: ExitCode, verdict?: Verdict): void {
    this.end = { exitCode, verdict, atMs: this.clock.now() };
    const [network, hosts] = [this.network?.(), this.hosts?.()];
    this.network = network && (() => network);
    this.hosts = hosts && (() => hosts);
    this.progress &&= { ...this.progress, state: () => ({ inFlight: 0, writing: 0, toWrite: 0 }) };
    this.enter('ended');
  }

  get phase() {
    const inPhaseForMs = Math.round(this.clock.monotonic() - this.#phaseAt);
    return { phase: this.#phase, inPhaseForMs, waitingFor: this.#waitingFor };
  }

  /** The number of objects of the plan, and of those without an outcome. */
  get objects(): { readonly planned: number; readonly undone: number } {
    if (this.progress === undefined) return { planned: 0, undone: 0 };
    const { totals, tally } = this.progress;
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
    attempt: (attempt: AttemptEnd): void => {
      for (const follower of this.#followers) follower.attempt?.(attempt);
    },
  } satisfies Partial<Observer>;

  /** In the order of their beginning. `forMs`: milliseconds since then. */
  get pieces(): readonly (Work & { readonly forMs: number })[] {
    const now = this.clock.monotonic();
    return [...this.#pieces].map(({ work, begunAtMs }) => ({ ...work, forMs: Math.round(now - begunAtMs) }));
  }

  /** The number of pieces by stage, without requests and waits: the figures of the network count them. */
  get active(): Readonly<Record<Exclude<WorkStage, 'request' | 'wait'>, number>> {
    const counts = { partition: 0, download: 0, write: 0, check: 0, convert: 0, commit: 0 };
    for (const { stage } of this.pieces) if (stage !== 'request' && stage !== 'wait') counts[stage] += 1;
    return counts;
  }

  /** Returns the function to call at the end of the work. */
  begin(stage: WorkStage, { plan, object, label }: WorkSubject): () => void {
    return this.#add({ stage, name: object?.key ?? label ?? plan.label, series: plan.series }, stage);
  }

  /** Adds the duration to the stage, also after an error. */
  readonly during = async <T>(stage: WorkStage, subject: WorkSubject, act: () => Promise<T>): Promise<T> => {
    const end = this.begin(stage, subject);
    try {
      return await act();
    } finally {
      end();
    }
  };

  /** From the request of an object to its arrival. `onAttempt` subtracts the time in flight. */
  onRequest(request: FetchRequest): () => void {
    const stage = this.#isOfWork(request) ? 'wait' : undefined;
    return this.#add({ stage: 'request', name: request.url }, stage);
  }

  onWait(reason: WaitReason, { url }: FetchRequest): () => void {
    return this.#add({ stage: 'wait', name: `${reason}: ${url}` });
  }

  onAttempt(request: FetchRequest): (attempt: Pick<AttemptEnd, 'sentAtMs' | 'endedAtMs'>) => void {
    return ({ sentAtMs, endedAtMs }) => {
      if (!this.#isOfWork(request)) return;
      this.#stagesMs.add('transfer', endedAtMs - sentAtMs);
      this.#stagesMs.add('wait', sentAtMs - endedAtMs);
    };
  }

  #add(work: Work, stage?: Stage | WorkStage): () => void {
    const piece = { work, begunAtMs: this.clock.monotonic() };
    this.#pieces.add(piece);
    return () => {
      this.#pieces.delete(piece);
      if (stage !== undefined) this.#stagesMs.add(stage, this.clock.monotonic() - piece.begunAtMs);
    };
  }

  /** Measures a wait of the whole run. */
  async pause<T>(act: () => Promise<T>): Promise<T> {
    const phase = this.#workAt === undefined ? 'plan' : 'work';
    const begunAtMs = this.clock.monotonic();
    try {
      return await act();
    } finally {
      this.#pausedMs[phase] += this.clock.monotonic() - begunAtMs;
    }
  }

  /** Whole milliseconds. Apart from rounding, `planMs`, `pausedMs` and `workMs` add up to `elapsedMs`. */
  get times() {
    const now = this.clock.monotonic();
    const workAt = this.#workAt ?? now;
    const { plan, work } = this.#pausedMs;
    return {
      /** Since the command began. */
      elapsedMs: Math.round(now - this.startedAtMs),
      /** From the beginning to the first object, without pauses: start-up, listing, plan, opening of the lake. */
      planMs: Math.round(workAt - this.startedAtMs - plan),
      /** Waits of the whole run: `--jitter`, `--wait-for-publication`, `--wait-lock`, and between rounds. */
      pausedMs: Math.round(plan + work),
      workMs: Math.round(now - workAt - work),
      /** Sums over concurrent objects and files. They are no wall time; only their shares have a meaning. */
      stagesMs: Object.fromEntries(
        STAGES.map((stage) => [stage, Math.max(0, Math.round(this.#stagesMs.of(stage)))]),
      ) as Record<Stage, number>,
    };
  }

  /** Only objects count: sidecars are requested beside their objects, and the listing is no object. */
  #isOfWork({ bucket, expect }: FetchRequest): boolean {
    return this.#workAt !== undefined && expect !== undefined && bucket !== 'listing';
  }
}
