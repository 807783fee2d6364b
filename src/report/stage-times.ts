/** Where the time of a run goes: the phases of the run on the wall clock, and the time of its objects by stage. */
import type { Clock } from '../model/clock.js';
import type { AttemptEnd, FetchRequest, Layer } from '../http/fetch.js';
import { durationText } from '../model/units.js';

/**
 * `wait`: a request for an object that is not on the wire: permits, sockets, retries, an open breaker, a late sidecar ·
 * `transfer`: its attempts on the wire · `check`: zips are unpacked, files are read back · `convert`: rows become a file ·
 * `commit`: files and manifest lines are published.
 */
const STAGES = ['wait', 'transfer', 'check', 'convert', 'commit'] as const;
export type Stage = (typeof STAGES)[number];

/** Whole milliseconds. The three phases add up to `elapsedMs`. */
export interface TimeFigures {
  /** Since the command began. */
  readonly elapsedMs: number;
  /** From the beginning to the first object: start-up, listing, plan, opening the lake. */
  readonly planMs: number;
  /** The run as a whole waited: for --jitter, --wait-for-publication, --wait-lock, and between rounds. */
  readonly pausedMs: number;
  readonly workMs: number;
  /** Sums over objects and files that are side by side: no wall time, only their shares mean something. */
  readonly stagesMs: Readonly<Record<Stage, number>>;
}

export class StageTimes {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #workAt: number | undefined;
  readonly #pausedMs = { plan: 0, work: 0 };
  readonly #stagesMs = { wait: 0, transfer: 0, check: 0, convert: 0, commit: 0 };

  /** `startedAt`: when the command began, on the monotonic clock. */
  constructor(clock: Clock, startedAt = clock.monotonic()) {
    this.#clock = clock;
    this.#startedAt = startedAt;
  }

  /** The plan is made: from here on objects are asked for. */
  beginWork(): void {
    this.#workAt = this.#clock.monotonic();
  }

  /** The whole run waits meanwhile. */
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

  /** Outermost: from asking for an object to having it. What is on the wire of that is told by `onAttempt`. */
  readonly layer: Layer = (next) => (request, context) =>
    this.#isOfWork(request) ? this.timed('wait', () => next(request, context)) : next(request, context);

  onAttempt({ request, sentAt, endedAt }: Pick<AttemptEnd, 'request' | 'sentAt' | 'endedAt'>): void {
    if (!this.#isOfWork(request)) return;
    this.#stagesMs.transfer += endedAt - sentAt;
    this.#stagesMs.wait -= endedAt - sentAt;
  }

  get figures(): TimeFigures {
    const now = this.#clock.monotonic();
    const workAt = this.#workAt ?? now;
    const { plan, work } = this.#pausedMs;
    const { wait, transfer, check, convert, commit } = this.#stagesMs;
    return {
      elapsedMs: Math.round(now - this.#startedAt),
      planMs: Math.round(workAt - this.#startedAt - plan),
      pausedMs: Math.round(plan + work),
      workMs: Math.round(now - workAt - work),
      stagesMs: {
        wait: Math.max(0, Math.round(wait)),
        transfer: Math.round(transfer),
        check: Math.round(check),
        convert: Math.round(convert),
        commit: Math.round(commit),
      },
    };
  }

  /** Sidecars are asked for beside their objects, and the listing is no object. */
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

/** Shorter runs are not asked where their time went. */
const TOLD_AFTER_MS = 10_000;

/** `plan 18s, work 38.5s; of the objects' time 5 % wait, 95 % transfer`; nothing for a short run. */
export function timeText({ elapsedMs, planMs, pausedMs, workMs, stagesMs }: TimeFigures): string | undefined {
  if (elapsedMs <= TOLD_AFTER_MS) return undefined;
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
