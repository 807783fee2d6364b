/** The time of a run by phase, in wall time, and the time of its objects by stage. */
import type { Clock } from '../model/clock.js';
import type { AttemptEnd, FetchRequest } from '../http/fetch.js';
import type { RequestFollower } from '../http/transport/measure.js';
import { durationText } from '../model/units.js';

/**
 * `wait`: a requested object is not in flight: permits, sockets, retries, an open breaker, a late sidecar ·
 * `transfer`: its attempts in flight · `check`: unpacking of zips, reading back of files · `convert`: rows become a file ·
 * `commit`: publishing of files and manifest lines.
 */
const STAGES = ['wait', 'transfer', 'check', 'convert', 'commit'] as const;
export type Stage = (typeof STAGES)[number];

/** Whole milliseconds. Apart from rounding, `planMs`, `pausedMs` and `workMs` add up to `elapsedMs`. */
export interface TimeFigures {
  /** Since the command began. */
  readonly elapsedMs: number;
  /** From the beginning to the first object, without pauses: start-up, listing, plan, opening of the lake. */
  readonly planMs: number;
  /** Waits of the whole run: `--jitter`, `--wait-for-publication`, `--wait-lock`, and between rounds. */
  readonly pausedMs: number;
  readonly workMs: number;
  /** Sums over concurrent objects and files. They are no wall time; only their shares have a meaning. */
  readonly stagesMs: Readonly<Record<Stage, number>>;
}

export class StageTimes implements RequestFollower {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #workAt: number | undefined;
  readonly #pausedMs = { plan: 0, work: 0 };
  readonly #stagesMs = { wait: 0, transfer: 0, check: 0, convert: 0, commit: 0 };

  /** `startedAt`: the beginning of the command, on the monotonic clock. */
  constructor(clock: Clock, startedAt = clock.monotonic()) {
    this.#clock = clock;
    this.#startedAt = startedAt;
  }

  /** The plan is complete, and the first objects are requested. */
  beginWork(): void {
    this.#workAt = this.#clock.monotonic();
  }

  /** Measures a wait of the whole run. */
  async pause<T>(act: () => Promise<T>): Promise<T> {
    const phase = this.#workAt === undefined ? 'plan' : 'work';
    return this.#measured(act, (ms) => {
      this.#pausedMs[phase] += ms;
    });
  }

  readonly timed = <T>(stage: Stage, act: () => Promise<T>): Promise<T> =>
    this.#measured(act, (ms) => {
      this.#stagesMs[stage] += ms;
    });

  /** From the request of an object to its arrival. `onAttempt` subtracts the time in flight. */
  onRequest(request: FetchRequest): () => void {
    const begunAt = this.#isOfWork(request) ? this.#clock.monotonic() : undefined;
    return () => {
      if (begunAt !== undefined) this.#stagesMs.wait += this.#clock.monotonic() - begunAt;
    };
  }

  onAttempt(request: FetchRequest): (attempt: Pick<AttemptEnd, 'sentAt' | 'endedAt'>) => void {
    return ({ sentAt, endedAt }) => {
      if (!this.#isOfWork(request)) return;
      this.#stagesMs.transfer += endedAt - sentAt;
      this.#stagesMs.wait -= endedAt - sentAt;
    };
  }

  get figures(): TimeFigures {
    const now = this.#clock.monotonic();
    const workAt = this.#workAt ?? now;
    const { plan, work } = this.#pausedMs;
    return {
      elapsedMs: Math.round(now - this.#startedAt),
      planMs: Math.round(workAt - this.#startedAt - plan),
      pausedMs: Math.round(plan + work),
      workMs: Math.round(now - workAt - work),
      stagesMs: Object.fromEntries(
        STAGES.map((stage) => [stage, Math.max(0, Math.round(this.#stagesMs[stage]))]),
      ) as TimeFigures['stagesMs'],
    };
  }

  /** Only objects count: sidecars are requested beside their objects, and the listing is no object. */
  #isOfWork({ bucket, expect }: FetchRequest): boolean {
    return this.#workAt !== undefined && expect !== undefined && bucket !== 'listing';
  }

  async #measured<T>(act: () => Promise<T>, add: (ms: number) => void): Promise<T> {
    const begunAt = this.#clock.monotonic();
    try {
      return await act();
    } finally {
      add(this.#clock.monotonic() - begunAt);
    }
  }
}

/** Shorter runs get no line with their times. */
const SHOWN_AFTER_MS = 10_000;

/** For example `plan 18s, work 38.5s; of the objects' time 5 % wait, 95 % transfer`; undefined for a short run. */
export function timeText({ elapsedMs, planMs, pausedMs, workMs, stagesMs }: TimeFigures): string | undefined {
  if (elapsedMs <= SHOWN_AFTER_MS) return undefined;
  const phases = [
    `plan ${durationText(planMs)}`,
    ...(pausedMs < 1000 ? [] : [`pauses ${durationText(pausedMs)}`]),
    `work ${durationText(workMs)}`,
  ].join(', ');
  const sum = STAGES.reduce((total, stage) => total + stagesMs[stage], 0);
  if (sum === 0) return phases;
  const shares = STAGES.filter((stage) => stagesMs[stage] > 0).map(
    (stage) => `${Math.round((stagesMs[stage] / sum) * 100)} % ${stage}`,
  );
  return `${phases}; of the objects' time ${shares.join(', ')}`;
}
