/** The progress of a run at a moment: as one line for logs, and as an event for programs. */
import type { HostStates } from '../http/host-states.js';
import type { ErrorCode } from '../model/errors.js';
import { bytesText, durationText, numberText } from '../model/units.js';

export interface ProgressState {
  /** `plan`: before the first object is requested. */
  readonly phase: 'plan' | 'work';
  readonly elapsedMs: number;
  /** Attempts of requests that have ended. */
  readonly requests: number;
  /** Objects that have arrived, and those of the plan. */
  readonly objects: number;
  readonly totalObjects: number;
  readonly bytes: number;
  readonly totalBytes: number;
  /** Of the last seconds. */
  readonly bytesPerSecond: number;
  readonly inFlight: number;
  /** The limit of objects in flight, and whether the search for it has ended below its maximum. */
  readonly places: number;
  readonly isSettled: boolean;
  /** Files that are converted, complete ones that wait for a writer, and files that are committed. */
  readonly converting: number;
  readonly toWrite: number;
  readonly committing: number;
  readonly retried: number;
  readonly failed: number;
  /** Retries by the error before them, and failed objects by their error. */
  readonly errors: Readonly<Partial<Record<ErrorCode, number>>>;
  readonly hosts: HostStates;
}

/** The share of the objects that have an end, between 0 and 1. */
export function shareOf({ objects, failed, totalObjects }: ProgressState): number {
  return totalObjects === 0 ? 1 : Math.min(1, (objects + failed) / totalObjects);
}

/** Undefined before the first object. */
function leftMsOf(state: ProgressState): number | undefined {
  const share = shareOf(state);
  return share > 0 ? (state.elapsedMs * (1 - share)) / share : undefined;
}

/** `120/3,100 objects, 1.2 MB of 31 MB, 410 kB/s, ETA 1m 12s, 30 in flight, 2 retried, 1 failed` */
export function progressText(state: ProgressState): string {
  return [
    ...totalTexts(state).slice(0, 2),
    `${bytesText(state.bytesPerSecond)}/s`,
    ...totalTexts(state).slice(2),
    state.inFlight === 0 && state.objects > 0 ? 'converting' : `${state.inFlight} in flight`,
    ...(state.retried > 0 ? [`${numberText(state.retried)} retried`] : []),
    ...(state.failed > 0 ? [`${numberText(state.failed)} failed`] : []),
  ].join(', ');
}

/** `120/3,100 objects`, `1.2 MB of 31 MB`, `ETA 1m 12s` */
export function totalTexts(state: ProgressState): string[] {
  const leftMs = leftMsOf(state);
  return [
    `${numberText(state.objects)}/${numberText(state.totalObjects)} objects`,
    `${bytesText(state.bytes)} of ${bytesText(state.totalBytes)}`,
    ...(leftMs === 0 ? [] : [`ETA ${leftMs === undefined ? '-' : wholeSeconds(leftMs)}`]),
  ];
}

/** At least one second. */
export function wholeSeconds(ms: number): string {
  return durationText(Math.max(1, Math.round(ms / 1000)) * 1000);
}

/** The fields of a `progress` event, docs/automation.md. */
export function progressFields(state: ProgressState): object {
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
