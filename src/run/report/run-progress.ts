/** The progress of a run: a live line on a terminal, a line now and then in logs, or events for programs. */
import type { Clock, Timer } from '../../model/clock.js';
import type { Io, OutputStream } from '../../model/io.js';
import type { Options } from '../../plan/options/flags.js';
import { barText, progressFields, progressState, progressText } from './progress-state.js';
import type { LiveRun, RunFollower } from './live-run.js';

export interface ProgressOptions {
  readonly mode: 'bar' | 'plain' | 'json' | 'none';
  readonly stream: OutputStream;
  /** Prefix of each plain line; empty for a single run. */
  readonly label: string;
  readonly clock: Pick<Clock, 'monotonic' | 'timer'>;
  /** Takes the fields of an event of `json`. */
  readonly emit: (fields: object) => void;
}

/** `isBeside`: other jobs print at the same time. */
export function progressMode(
  { progress, json, logFile, logLevel }: Options<'progress' | 'json' | 'log-file' | 'log-level'>,
  { stderr, environment }: Pick<Io, 'stderr' | 'environment'>,
  isBeside: boolean,
): ProgressOptions['mode'] {
  const isForPeople = !json && (environment['CI'] ?? '') === '';
  const mode = progress === 'auto' ? (isForPeople ? 'bar' : 'plain') : progress;
  const isTerminal = stderr.isTTY === true && environment['TERM'] !== 'dumb';
  // A live line is redrawn in place, so nothing else may write to the terminal: no log, and no other run.
  const isAlone = !isBeside && (logFile !== undefined || logLevel === 'info');
  return mode === 'bar' && (!isTerminal || !isAlone) ? 'plain' : mode;
}

const EVERY_MS = { bar: 200, plain: 10_000, json: 1000 } as const;
/** A plan that is complete sooner is not shown. */
const PLAN_SHOWN_AFTER_MS = 1000;
/** The speed is that of so many milliseconds. */
const SPEED_MS = 10_000;
const SAMPLE_MS = 1000;
/** To the start of the row, and erases what follows. */
const ERASE = '\r\u001b[J';
/** For a terminal that does not tell its size. */
const USUAL_COLUMNS = 80;

export class RunProgress implements RunFollower {
  /** The line on the terminal; undefined while there is none. */
  #shown: string | undefined;
  /** Shows the progress now. Undefined while the run is not in progress. */
  #show: (() => void) | undefined;
  #timer: Timer | undefined;

  constructor(private readonly options: ProgressOptions) {}

  entered(live: LiveRun): void {
    const { phase } = live.phase;
    if (phase === 'working' || (phase === 'selecting' && this.#show === undefined)) {
      this.#show = this.#progressOf(live);
      // Lines of a log begin with the downloads: a plan has no total.
      if (phase === 'working' || this.options.mode !== 'plain') this.#start(this.#show);
    } else if (phase === 'ending') {
      // The last event has the counts of the whole run.
      if (this.options.mode === 'json' && this.#timer !== undefined) this.#show?.();
      this.stop();
      this.#show = undefined;
    }
  }

  /** Erases the live line for other lines. It is drawn again within 200 ms. */
  clear(): void {
    if (this.#shown === undefined) return;
    this.#shown = undefined;
    this.options.stream.write(ERASE);
  }

  /** Ends the display. Returns whether a live line was there. */
  stop(): boolean {
    this.#timer?.cancel();
    const wasLive = this.#timer !== undefined && this.options.mode === 'bar';
    this.#timer = undefined;
    this.clear();
    return wasLive;
  }

  #start(show: () => void): void {
    this.stop();
    const { mode, clock } = this.options;
    if (mode === 'none') return;
    const timer = clock.timer(EVERY_MS[mode], () => {
      show();
      timer.restart();
    });
    this.#timer = timer;
  }

  /** Returns the function that shows the progress of the run since now. */
  #progressOf(live: LiveRun): () => void {
    const { mode, stream, label, emit, clock } = this.options;
    const beganAt = clock.monotonic();
    // Those of the listing.
    const retriedBefore = live.counts.of('retries');
    const speedAt = speedSince(beganAt);
    return () => {
      const now = clock.monotonic();
      const elapsedMs = now - beganAt;
      const bytesPerSecond = speedAt(now, live.counts.of('bytes'));
      const state = progressState(live, { elapsedMs, bytesPerSecond, retriedBefore });
      if (mode === 'json') emit(progressFields(state));
      else if (mode === 'plain') stream.write(`${label}${progressText(state)}\n`);
      else if (state.phase === 'work' || elapsedMs >= PLAN_SHOWN_AFTER_MS) this.#draw(barText(state));
    };
  }

  #draw(text: string): void {
    const { stream } = this.options;
    const most = (stream.columns || USUAL_COLUMNS) - 1;
    const line = text.length <= most ? text : `${text.slice(0, Math.max(0, most - 1))}…`;
    if (line === this.#shown) return;
    this.#shown = line;
    stream.write(ERASE + line);
  }
}

/** Bytes per second within the last `SPEED_MS`. It changes once per second, with each sample. */
function speedSince(beganAt: number): (now: number, bytes: number) => number {
  const samples = [{ at: beganAt, bytes: 0 }];
  let perSecond = 0;
  return (now, bytes) => {
    const isDue = now - (samples.at(-1)?.at ?? now) >= SAMPLE_MS;
    if (isDue) samples.push({ at: now, bytes });
    // Before the first sample there is no earlier speed to show.
    else if (samples.length > 1) return perSecond;
    while (samples[1] !== undefined && now - samples[1].at >= SPEED_MS) samples.shift();
    const [first = { at: now, bytes }] = samples;
    perSecond = now > first.at ? Math.round(((bytes - first.bytes) / (now - first.at)) * 1000) : 0;
    return perSecond;
  };
}
