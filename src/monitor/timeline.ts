/** The course of a run over time: throughput, latency and concurrency by interval, in bounded memory. */
import type { AttemptEnd } from '../http/fetch.js';
import type { Clock, Timer } from '../model/clock.js';
import type { Observer, RetryEvent } from '../model/observer.js';
import type { LiveRun, RunMonitor } from '../report/run-monitor.js';

/** Upper bounds in seconds. The archive answers most requests in less than 0.1 s. */
export const LATENCY_BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10] as const;

/** The index of the first bound that is not below the latency; the number of bounds if all are. */
export function bucketOf(seconds: number): number {
  const at = LATENCY_BOUNDS_S.findIndex((bound) => seconds <= bound);
  return at < 0 ? LATENCY_BOUNDS_S.length : at;
}

/** One interval. Counts are of the interval, levels are those at its end. */
export interface TimelinePoint {
  /** The end of the interval, in milliseconds since the downloads began. */
  readonly atMs: number;
  /** Objects that arrived, and their bytes. */
  readonly objects: number;
  readonly bytes: number;
  /** Attempts that ended, those of them that failed, and retries. */
  readonly attempts: number;
  readonly failed: number;
  readonly retries: number;
  /** Answered attempts by latency: one count for each bound of `boundsS`, and one for longer attempts. */
  readonly latency: readonly number[];
  readonly inFlight: number;
  readonly concurrency: number;
  /** Files that are written, and partitions that wait for a writer. */
  readonly writing: number;
  readonly toWrite: number;
}

export interface TimelineFigures {
  readonly boundsS: readonly number[];
  readonly points: readonly TimelinePoint[];
}

/** The first interval. It doubles each time that the points are too many. */
const INTERVAL_MS = 1000;
const MOST_POINTS = 240;

type Counts = Pick<TimelinePoint, 'objects' | 'bytes' | 'attempts' | 'failed' | 'retries'>;

export class Timeline implements RunMonitor {
  readonly #clock: Pick<Clock, 'monotonic' | 'timer'>;
  #points: TimelinePoint[] = [];
  #intervalMs = INTERVAL_MS;
  #counts = noCounts();
  #latency = noLatency();
  #live: LiveRun | undefined;
  #beganAt = 0;
  #timer: Timer | undefined;

  constructor(clock: Pick<Clock, 'monotonic' | 'timer'>) {
    this.#clock = clock;
  }

  readonly observer: Pick<Observer, 'arrived' | 'attempt' | 'retry'> = {
    arrived: (bytes) => {
      this.#counts.objects += 1;
      this.#counts.bytes += bytes;
    },
    attempt: ({ sentAt, endedAt, error }: Pick<AttemptEnd, 'sentAt' | 'endedAt' | 'error'>) => {
      this.#counts.attempts += 1;
      if (error !== undefined) this.#counts.failed += 1;
      else addTo(this.#latency, bucketOf((endedAt - sentAt) / 1000));
    },
    retry: ({ usesAttempt }: Pick<RetryEvent, 'usesAttempt'>) => {
      if (usesAttempt) this.#counts.retries += 1;
    },
  };

  begin(live: LiveRun): void {
    this.#live = live;
    this.#beganAt = this.#clock.monotonic();
    // Attempts before this moment were for the listing.
    this.#counts = noCounts();
    this.#latency = noLatency();
    this.#schedule();
  }

  end(): void {
    this.#timer?.cancel();
    if (this.#live === undefined) return;
    this.#add(this.#live);
    this.#live = undefined;
  }

  get figures(): TimelineFigures {
    return { boundsS: LATENCY_BOUNDS_S, points: [...this.#points] };
  }

  #schedule(): void {
    this.#timer = this.#clock.timer(this.#intervalMs, () => {
      if (this.#live !== undefined) this.#add(this.#live);
      this.#schedule();
    });
  }

  #add({ work, network }: LiveRun): void {
    const { inFlight, writing, toWrite } = work();
    this.#points.push({
      atMs: Math.round(this.#clock.monotonic() - this.#beganAt),
      ...this.#counts,
      latency: this.#latency,
      inFlight,
      concurrency: network().concurrency,
      writing,
      toWrite,
    });
    this.#counts = noCounts();
    this.#latency = noLatency();
    if (this.#points.length < MOST_POINTS) return;
    this.#points = pairs(this.#points);
    this.#intervalMs *= 2;
  }
}

function noCounts(): { -readonly [name in keyof Counts]: number } {
  return { objects: 0, bytes: 0, attempts: 0, failed: 0, retries: 0 };
}

function noLatency(): number[] {
  return Array.from({ length: LATENCY_BOUNDS_S.length + 1 }, () => 0);
}

function addTo(counts: number[], at: number): void {
  counts[at] = (counts[at] ?? 0) + 1;
}

/** Joins each two neighbouring intervals to one. */
function pairs(points: readonly TimelinePoint[]): TimelinePoint[] {
  const joined: TimelinePoint[] = [];
  for (let at = 0; at < points.length; at += 2) {
    const [first, second] = points.slice(at, at + 2);
    if (first === undefined) break;
    joined.push(second === undefined ? first : join(first, second));
  }
  return joined;
}

function join(first: TimelinePoint, second: TimelinePoint): TimelinePoint {
  return {
    ...second,
    objects: first.objects + second.objects,
    bytes: first.bytes + second.bytes,
    attempts: first.attempts + second.attempts,
    failed: first.failed + second.failed,
    retries: first.retries + second.retries,
    latency: second.latency.map((count, at) => count + (first.latency[at] ?? 0)),
  };
}
