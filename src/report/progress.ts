/** The progress of a run (cli-progress): one redrawn line on a terminal, an occasional plain line elsewhere. */
import { SingleBar } from 'cli-progress';
import type { Clock, Timer } from '../model/clock.js';
import { bytesText, durationText } from '../model/units.js';

export interface ProgressState {
  readonly objects: number;
  readonly totalObjects: number;
  readonly bytes: number;
  readonly totalBytes: number;
  readonly inFlight: number;
  readonly retried: number;
  readonly failed: number;
}

export interface Progress {
  /** Erases the line for a message. The next update draws it again. */
  clear(): void;
  stop(): void;
}

export interface ProgressOptions {
  readonly mode: 'bar' | 'plain' | 'none';
  readonly stream: NodeJS.WritableStream;
  /** Prefix of each plain line; empty for a single run. */
  readonly label: string;
  readonly clock: Clock;
  readonly state: () => ProgressState;
}

const SAVE_CURSOR = '\u001b7';
const REDRAW_MS = 200;
const PLAIN_EVERY_MS = 15_000;

export function startProgress(options: ProgressOptions): Progress {
  if (options.mode === 'none') return { clear: () => undefined, stop: () => undefined };
  const startedMs = options.clock.monotonic();
  const text = (): string => progressText(options.state(), options.clock.monotonic() - startedMs);
  return options.mode === 'bar' ? startBar(options, text) : startPlain(options, text);
}

function startBar(options: ProgressOptions, text: () => string): Progress {
  const bar = new SingleBar({
    stream: options.stream,
    format: '{bar} {percentage}%  {text}',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 20,
    hideCursor: true,
    clearOnComplete: true,
    linewrap: false,
  });
  bar.start(Math.max(1, options.state().totalObjects), 0, { text: text() });
  const timer = every(options.clock, REDRAW_MS, () => {
    bar.update(options.state().objects, { text: text() });
  });
  return {
    clear: () => {
      options.stream.write('\r\u001b[2K');
    },
    stop: () => {
      timer.cancel();
      // cli-progress restores the saved cursor. If it is saved here, lines that were printed below the bar stay.
      options.stream.write(SAVE_CURSOR);
      bar.stop();
    },
  };
}

function startPlain(options: ProgressOptions, text: () => string): Progress {
  const timer = every(options.clock, PLAIN_EVERY_MS, () => {
    options.stream.write(`${options.label}${text()}\n`);
  });
  return {
    clear: () => undefined,
    stop: () => {
      timer.cancel();
    },
  };
}

function every(clock: Clock, delayMs: number, act: () => void): Pick<Timer, 'cancel'> {
  const timer = clock.timer(delayMs, () => {
    act();
    timer.restart();
  });
  return timer;
}

/** `120/3100 objects, 1.2 MB of 31 MB, 410 kB/s, ETA 1m 12s, 30 in flight, 2 retried, 1 failed` */
export function progressText(state: ProgressState, elapsedMs: number): string {
  const perMs = elapsedMs > 0 ? state.bytes / elapsedMs : 0;
  const share = state.totalObjects === 0 ? 1 : state.objects / state.totalObjects;
  const leftMs = share > 0 ? (elapsedMs * (1 - share)) / share : undefined;
  return [
    `${state.objects}/${state.totalObjects} objects`,
    `${bytesText(state.bytes)} of ${bytesText(state.totalBytes)}`,
    `${bytesText(Math.round(perMs * 1000))}/s`,
    `ETA ${leftMs === undefined ? '-' : durationText(leftMs)}`,
    state.inFlight === 0 && state.objects > 0 ? 'converting' : `${state.inFlight} in flight`,
    ...(state.retried > 0 ? [`${state.retried} retried`] : []),
    ...(state.failed > 0 ? [`${state.failed} failed`] : []),
  ].join(', ');
}
