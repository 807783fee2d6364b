/** The progress of a run: a live line on a terminal, a line now and then in logs, or events for programs. */
import cliProgress from 'cli-progress';
import type { Clock, Timer } from '../../model/clock.js';
import type { Io, OutputStream } from '../../model/io.js';
import type { Options } from '../../plan/options/flags.js';
import type { LiveRun, RunFollower } from './live-run.js';
import { Counters } from '../../model/counters.js';
import { bytesText, durationText, numberText, countText } from '../../model/units.js';
import { some } from './closing-block.js';

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

// The progress of a run at a moment: as one line for people, and as an event for programs.

export type ProgressState = ReturnType<typeof progressState>;

/** `retriedBefore`: retries of the listing. `bytesPerSecond`: of the last seconds. */
function progressState(
  { progress, counts, active, network, hosts }: LiveRun,
  times: { readonly elapsedMs: number; readonly bytesPerSecond: number; readonly retriedBefore: number },
) {
  const { concurrency = 0, settled } = network?.() ?? {};
  const { inFlight = 0, writing = 0, toWrite = 0 } = progress?.state() ?? {};
  const { elapsedMs, bytesPerSecond, retriedBefore } = times;
  return {
    /** `plan`: before the first object is requested. */
    phase: progress === undefined ? ('plan' as const) : ('work' as const),
    elapsedMs,
    /** Attempts of requests that have ended. */
    requests: counts.of('attempts'),
    /** Objects that have arrived, and those of the plan. */
    objects: counts.of('objects'),
    totalObjects: progress?.totals.fetch ?? 0,
    bytes: counts.of('bytes'),
    totalBytes: progress?.totals.fetchBytes ?? 0,
    bytesPerSecond,
    inFlight,
    /** The limit of objects in flight, and whether the search for it has ended below its maximum. */
    places: concurrency,
    isSettled: settled !== undefined,
    /** Files that are converted, complete ones that wait for a writer, and files that are committed. */
    converting: Math.max(0, writing - active.commit),
    toWrite,
    committing: active.commit,
    retried: counts.of('retries') - retriedBefore,
    failed: progress?.tally.of('outcome.failed') ?? 0,
    /** Retries by the error before them, and failed objects by their error. */
    errors: new Counters<string>(counts.by('reasons'), progress?.tally.failedBy ?? {}).all,
    hosts: hosts?.() ?? { buckets: [], breakers: [], retryBudgets: {} },
  };
}

/** The share of the objects that have an end, between 0 and 1. */
function shareOf({ objects, failed, totalObjects }: ProgressState): number {
  return totalObjects === 0 ? 1 : Math.min(1, (objects + failed) / totalObjects);
}

/** Undefined before the first object. */
function leftMsOf(state: ProgressState): number | undefined {
  const share = shareOf(state);
  return share > 0 ? (state.elapsedMs * (1 - share)) / share : undefined;
}

/** `120/3,100 objects, 1.2 MB of 31 MB, 410 kB/s, ETA 1m 12s, 30 in flight, 2 retried, 1 failed` */
export function progressText(state: ProgressState): string {
  const leftMs = leftMsOf(state);
  if (state.phase === 'plan')
    return `plan: ${countText(state.requests, 'request')} in ${wholeSeconds(state.elapsedMs)}`;
  return [
    `${numberText(state.objects)}/${numberText(state.totalObjects)} objects`,
    `${bytesText(state.bytes)} of ${bytesText(state.totalBytes)}`,
    `${bytesText(state.bytesPerSecond)}/s`,
    ...(leftMs === 0 ? [] : [`ETA ${leftMs === undefined ? '-' : wholeSeconds(leftMs)}`]),
    state.inFlight === 0 && state.objects > 0 ? 'converting' : `${state.inFlight} in flight`,
    ...some(state.retried, 'retried'),
    ...some(state.failed, 'failed'),
    ...holdTexts(state),
  ].join(', ');
}

/** The first host, and the first limit, that hold the run back. */
function holdTexts({ hosts: { breakers, buckets } }: ProgressState): string[] {
  const waiting = buckets.filter((bucket) => bucket.waiting > 0);
  return [
    ...breakers.slice(0, 1).map(({ host, state }) => `${host}: breaker ${state}`),
    ...waiting.slice(0, 1).map(({ name, nextMs }) => `${name}: next permit in ${wholeSeconds(nextMs)}`),
  ];
}

/** At least one second. */
const wholeSeconds = (ms: number): string => durationText(Math.max(1, Math.round(ms / 1000)) * 1000);

function progressFields(state: ProgressState): object {
  const { hosts, ...counts } = state;
  const leftMs = state.phase === 'plan' ? undefined : leftMsOf(state);
  return {
    ...counts,
    elapsedMs: Math.round(state.elapsedMs),
    leftMs: leftMs === undefined ? null : Math.round(leftMs),
    breakers: hosts.breakers,
    buckets: hosts.buckets.filter(({ waiting }) => waiting > 0),
  };
}

const CELLS = 20;

export function barText(state: ProgressState): string {
  if (state.phase === 'plan') return progressText(state);
  const share = shareOf(state);
  // cli-progress derives the two strings only for bars that it draws on the terminal itself.
  const strings = { barCompleteString: '█'.repeat(CELLS), barIncompleteString: '░'.repeat(CELLS) };
  const bar = cliProgress.Format.BarFormat(share, { barsize: CELLS, barGlue: '', ...strings });
  return `${bar} ${Math.floor(share * 100)}%  ${progressText(state)}`;
}
