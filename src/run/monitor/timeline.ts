/** The course of a run over time: throughput, latency and concurrency by interval, in bounded memory. */
import type { Clock, Timer } from '../../model/clock.js';
import type { Counts } from '../../model/counters.js';
import { LATENCY_BOUNDS_S, type RunCount } from '../report/figures.js';
import type { LiveRun, RunFollower } from '../report/live-run.js';
import type { RunRecord } from './run-record.js';

type TimelineFigures = RunRecord['timeline'];
type TimelinePoint = TimelineFigures['points'][number];

/** The first interval. It doubles each time that the points are too many. */
const INTERVAL_MS = 1000;
const MOST_POINTS = 240;

const COUNTED = ['objects', 'bytes', 'attempts', 'failed', 'retries'] as const;
type Counted = (typeof COUNTED)[number];

export class Timeline implements RunFollower {
  #points: TimelinePoint[] = [];
  #intervalMs = INTERVAL_MS;
  /** The counts at the end of the last interval. */
  #before: Counts<RunCount> = {};
  #beganAt = 0;
  #timer: Timer | undefined;

  constructor(private readonly clock: Pick<Clock, 'monotonic' | 'timer'>) {}

  entered(live: LiveRun): void {
    const { phase } = live.phase;
    if (phase === 'working') {
      this.#beganAt = this.clock.monotonic();
      // Attempts before this moment were for the listing.
      this.#before = live.counts.all;
      this.#schedule(live);
    } else if (this.#timer !== undefined) {
      this.#timer.cancel();
      this.#timer = undefined;
      this.#add(live);
    }
  }

  get figures(): TimelineFigures {
    return { boundsS: LATENCY_BOUNDS_S, points: [...this.#points] };
  }

  #schedule(live: LiveRun): void {
    this.#timer = this.clock.timer(this.#intervalMs, () => {
      this.#add(live);
      this.#schedule(live);
    });
  }

  #add({ counts, progress, network }: LiveRun): void {
    const before = this.#before;
    const since = (name: RunCount): number => counts.of(name) - (before[name] ?? 0);
    const { inFlight = 0, writing = 0, toWrite = 0 } = progress?.state() ?? {};
    this.#points.push({
      atMs: Math.round(this.clock.monotonic() - this.#beganAt),
      ...countedBy(since),
      latency: Array.from({ length: LATENCY_BOUNDS_S.length + 1 }, (_, at) => since(`latency.${at}`)),
      inFlight,
      concurrency: network?.().concurrency ?? 0,
      writing,
      toWrite,
    });
    this.#before = counts.all;
    if (this.#points.length < MOST_POINTS) return;
    this.#points = this.#points.flatMap((point, at, all) => (at % 2 === 1 ? [] : joined(point, all[at + 1])));
    this.#intervalMs *= 2;
  }
}

function countedBy(of: (name: Counted) => number): Record<Counted, number> {
  return Object.fromEntries(COUNTED.map((name) => [name, of(name)])) as Record<Counted, number>;
}

/** Two neighbouring intervals as one. */
function joined(first: TimelinePoint, second: TimelinePoint | undefined): TimelinePoint {
  if (second === undefined) return first;
  return {
    ...second,
    ...countedBy((name) => first[name] + second[name]),
    latency: second.latency.map((count, at) => count + (first.latency[at] ?? 0)),
  };
}
