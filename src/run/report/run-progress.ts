/** The progress of a run: a live view on a terminal, a line now and then in logs, or events for programs. */
import type { Clock, Timer } from '../../model/clock.js';
import type { Io, OutputStream } from '../../model/io.js';
import type { Options } from '../../plan/options/flags.js';
import { liveLines, progressFields, progressState, progressText } from './progress-state.js';
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
  { progress, json, logFile, logLevel }: Pick<Options, 'progress' | 'json' | 'logFile' | 'logLevel'>,
  { stderr, environment }: Pick<Io, 'stderr' | 'environment'>,
  isBeside: boolean,
): ProgressOptions['mode'] {
  const isForPeople = !json && (environment['CI'] ?? '') === '';
  const mode = progress === 'auto' ? (isForPeople ? 'bar' : 'plain') : progress;
  const isTerminal = stderr.isTTY === true && environment['TERM'] !== 'dumb';
  // A live view is redrawn in place, so nothing else may write to the terminal: no log, and no other run.
  const isAlone = !isBeside && (logFile !== undefined || logLevel === 'info');
  return mode === 'bar' && (!isTerminal || !isAlone) ? 'plain' : mode;
}

const EVERY_MS = { bar: 200, plain: 10_000, json: 1000 } as const;
/** A plan that is complete sooner is not shown. */
const PLAN_SHOWN_AFTER_MS = 1000;
/** The speed is that of so many milliseconds. */
const SPEED_MS = 10_000;
const SAMPLE_MS = 1000;

export class RunProgress implements RunFollower {
  readonly #screen: LiveScreen;
  /** Shows the progress now. Undefined while the run is not in progress. */
  #show: (() => void) | undefined;
  #timer: Timer | undefined;

  constructor(private readonly options: ProgressOptions) {
    this.#screen = new LiveScreen(options.stream);
  }

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

  /** Erases the live view for other lines. It is drawn again within 200 ms. */
  clear(): void {
    this.#screen.clear();
  }

  /** Ends the display. Returns whether a live view was there. */
  stop(): boolean {
    this.#timer?.cancel();
    const wasLive = this.#timer !== undefined && this.options.mode === 'bar';
    this.#timer = undefined;
    this.#screen.clear();
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
      else if (state.phase === 'work' || elapsedMs >= PLAN_SHOWN_AFTER_MS)
        this.#screen.draw(liveLines(state, this.#screen));
    };
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

const ERASE_BELOW = '\u001b[J';
const ERASE_RIGHT = '\u001b[K';
/** Without wrapping, a character that is wider than counted cannot move the lines below it. */
const WRAP_OFF = '\u001b[?7l';
const WRAP_ON = '\u001b[?7h';
/** For a terminal that does not tell its size. */
const USUAL_SIZE = { columns: 80, rows: 24 };

/**
 * Between two frames the cursor is in an empty line above the lines. A terminal that becomes narrower breaks the lines anew, but all
 * their parts are below the cursor, so that the next frame erases them. Only rows that no longer fit on the screen stay: no program
 * can erase rows above it. An empty line is never broken; of a line with text, terminals move the cursor in different ways. No mode
 * of the terminal lasts longer than a frame: a process that is killed leaves nothing to restore.
 */
export class LiveScreen {
  /** Undefined while nothing is shown. */
  #shown: string | undefined;

  constructor(private readonly stream: OutputStream) {}

  get columns(): number {
    return this.stream.columns || USUAL_SIZE.columns;
  }

  /** Lines that fit on the screen below the empty one. */
  get rows(): number {
    return Math.max(1, (this.stream.rows || USUAL_SIZE.rows) - 1);
  }

  /** Shows these lines in place of the shown ones. Writes nothing if they and the size of the terminal are the same. */
  draw(lines: readonly string[]): void {
    const cut = lines.slice(0, this.rows).map((line) => cutTo(line, this.columns - 1));
    const frame = ['', ...cut].map((line) => `${line}${ERASE_RIGHT}`).join('\r\n');
    const sent = `\r${WRAP_OFF}${frame}${ERASE_BELOW}\u001b[${cut.length}A\r${WRAP_ON}`;
    // A terminal with another size has moved the lines, so they are drawn again.
    const shown = `${this.columns} ${this.rows} ${sent}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.stream.write(sent);
  }

  /** Erases the lines. */
  clear(): void {
    if (this.#shown === undefined) return;
    this.#shown = undefined;
    this.stream.write(`\r${ERASE_BELOW}`);
  }
}

/** The beginning of a text that is too long, with an ellipsis. */
function cutTo(text: string, length: number): string {
  if (text.length <= length) return text;
  return length < 2 ? text.slice(0, Math.max(0, length)) : `${text.slice(0, length - 1)}…`;
}
