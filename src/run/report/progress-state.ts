/** The progress of a run at a moment: as one line for people, and as an event for programs. */
import { Counters } from '../../model/counters.js';
import { bytesText, durationText, numberText, countText } from '../../model/units.js';
import cliProgress from 'cli-progress';
import { some } from './closing-block.js';
import type { LiveRun } from './live-run.js';

export type ProgressState = ReturnType<typeof progressState>;

/** `retriedBefore`: retries of the listing. `bytesPerSecond`: of the last seconds. */
export function progressState(
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

const CELLS = 20;

export function barText(state: ProgressState): string {
  if (state.phase === 'plan') return progressText(state);
  const share = shareOf(state);
  // cli-progress derives the two strings only for bars that it draws on the terminal itself.
  const strings = { barCompleteString: '█'.repeat(CELLS), barIncompleteString: '░'.repeat(CELLS) };
  const bar = cliProgress.Format.BarFormat(share, { barsize: CELLS, barGlue: '', ...strings });
  return `${bar} ${Math.floor(share * 100)}%  ${progressText(state)}`;
}
