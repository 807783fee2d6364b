/** The progress of a run at a moment: as one line for logs, and as an event for programs. */
import type { BucketState, OpenBreaker } from '../../http/host-states.js';
import { Counters } from '../../model/counters.js';
import { bytesText, durationText, numberText, countText } from '../../model/units.js';
import cliProgress from 'cli-progress';
import { some } from './closing-block.js';
import type { LiveRun } from './live-run.js';

export type ProgressState = ReturnType<typeof progressState>;

/** `retriedBefore`: retries of the listing. `bytesPerSecond`: of the last seconds. */
export function progressState(
  { plan, counts, active, network, hosts }: LiveRun,
  times: { readonly elapsedMs: number; readonly bytesPerSecond: number; readonly retriedBefore: number },
) {
  const { concurrency = 0, settled } = network?.() ?? {};
  const { inFlight = 0, writing = 0, toWrite = 0 } = plan?.state() ?? {};
  const { elapsedMs, bytesPerSecond, retriedBefore } = times;
  return {
    /** `plan`: before the first object is requested. */
    phase: plan === undefined ? ('plan' as const) : ('work' as const),
    elapsedMs,
    /** Attempts of requests that have ended. */
    requests: counts.of('attempts'),
    /** Objects that have arrived, and those of the plan. */
    objects: counts.of('objects'),
    totalObjects: plan?.totals.fetch ?? 0,
    bytes: counts.of('bytes'),
    totalBytes: plan?.totals.fetchBytes ?? 0,
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
    failed: plan?.tally.of('outcome.failed') ?? 0,
    /** Retries by the error before them, and failed objects by their error. */
    errors: new Counters<string>(counts.by('reasons'), plan?.tally.failedBy ?? {}).all,
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
  return [
    ...totalTexts(state).slice(0, 2),
    `${bytesText(state.bytesPerSecond)}/s`,
    ...totalTexts(state).slice(2),
    state.inFlight === 0 && state.objects > 0 ? 'converting' : `${state.inFlight} in flight`,
    ...some(state.retried, 'retried'),
    ...some(state.failed, 'failed'),
  ].join(', ');
}

/** `120/3,100 objects`, `1.2 MB of 31 MB`, `ETA 1m 12s` */
function totalTexts(state: ProgressState): string[] {
  const leftMs = leftMsOf(state);
  return [
    `${numberText(state.objects)}/${numberText(state.totalObjects)} objects`,
    `${bytesText(state.bytes)} of ${bytesText(state.totalBytes)}`,
    ...(leftMs === 0 ? [] : [`ETA ${leftMs === undefined ? '-' : wholeSeconds(leftMs)}`]),
  ];
}

/** At least one second. */
function wholeSeconds(ms: number): string {
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

/** More hosts are counted. */
const MOST_HOSTS = 3;

/** At most `rows` lines. Those that come and go most often are the last ones, so that the others keep their place. */
export function liveLines(
  state: ProgressState,
  { columns, rows }: { readonly columns: number; readonly rows: number },
): string[] {
  const lines: readonly Line[] =
    state.phase === 'plan'
      ? [['plan', `${countText(state.requests, 'request')} in ${wholeSeconds(state.elapsedMs)}`]]
      : [...downloadLines(state), ...hostLines(state), ...errorLines(state), ...fileLines(state)];
  const width = columns < NARROW ? 0 : LABEL;
  const rest = lines.map(([name, text]) => `  ${name.padEnd(width)} ${text}`);
  return state.phase === 'plan' ? rest : [totalsLine(state, columns), ...rest].slice(0, rows);
}

type Line = readonly [name: string, text: string];

/** As in the closing block. */
const LABEL = 10;
/** A narrower terminal has no room for columns. */
const NARROW = 40;

const MOST_CELLS = 20;
const LEAST_CELLS = 4;

function totalsLine(state: ProgressState, columns: number): string {
  const cells = Math.max(LEAST_CELLS, Math.min(MOST_CELLS, Math.floor(columns / 5)));
  const share = shareOf(state);
  // cli-progress derives the two strings only for bars that it draws on the terminal itself.
  const strings = { barCompleteString: '█'.repeat(cells), barIncompleteString: '░'.repeat(cells) };
  const bar = cliProgress.Format.BarFormat(share, { barsize: cells, barGlue: '', ...strings });
  const texts = [...totalTexts(state), ...some(state.failed, 'failed')].join(', ');
  return `  ${bar} ${Math.floor(share * 100)}%  ${texts}`;
}

function downloadLines(state: ProgressState): Line[] {
  const { inFlight, places, isSettled, bytesPerSecond, objects, failed, totalObjects } = state;
  // After the limit has fallen, the objects in flight go on.
  const isTold = isSettled || inFlight > places;
  const limit = isTold ? `, limit ${isSettled ? 'settled at ' : ''}${places}` : ` of ${places}`;
  if (inFlight > 0) return [['download', `${inFlight} in flight${limit}, ${bytesText(bytesPerSecond)}/s`]];
  const left = totalObjects - objects - failed;
  return left > 0 ? [['download', `${countText(left, 'object')} left for another round`]] : [];
}

function fileLines({ converting, toWrite, committing }: ProgressState): Line[] {
  const waiting = toWrite > 0 ? `, ${numberText(toWrite)} wait` : '';
  return [
    ...(converting + toWrite > 0 ? [['convert', `${countText(converting, 'file')}${waiting}`] as const] : []),
    ...(committing > 0 ? [['commit', countText(committing, 'file')] as const] : []),
  ];
}

function hostLines({ hosts: { breakers, buckets, deadProxies = [] } }: ProgressState): Line[] {
  const lines: readonly Line[] = [
    ...deadProxies.map((proxy) => ['proxy', `${proxy}: does not work, tried again now and then`] as const),
    ...breakers.map((breaker) => ['host', breakerText(breaker)] as const),
    ...buckets.filter(({ waiting }) => waiting > 0).map((bucket) => ['limit', bucketText(bucket)] as const),
  ];
  const more = lines.length - MOST_HOSTS;
  return more <= 0 ? [...lines] : [...lines.slice(0, MOST_HOSTS), ['', `and ${more} more`]];
}

function breakerText({ host, state, leftMs }: OpenBreaker): string {
  switch (state) {
    case 'open':
      return `${host}: breaker open, tries again ${leftMs > 0 ? `in ${wholeSeconds(leftMs)}` : 'now'}`;
    case 'half-open':
      return `${host}: breaker half-open, a few requests test the host`;
    case 'stopped':
      return `${host}: refuses this address, gets no more requests`;
  }
}

function bucketText({ name, waiting, nextMs, pausedMs }: BucketState): string {
  const waits = `${countText(waiting, 'request')} ${waiting === 1 ? 'waits' : 'wait'} ${wholeSeconds(nextMs)}`;
  return `${name}: ${waits}${pausedMs > 0 ? ', as the host asked' : ' for a permit'}`;
}

/** `all retried: 3 connection-lost, 1 checksum-mismatch` */
function errorLines({ errors, failed }: ProgressState): Line[] {
  const kinds = (Object.entries(errors) as [string, number][]).toSorted(([, one], [, other]) => other - one);
  if (kinds.length === 0) return [];
  const texts = kinds.map(([code, count]) => `${numberText(count)} ${code}`);
  const end = failed === 0 ? 'all retried' : `${countText(failed, 'object')} failed`;
  return [['errors', `${end}: ${texts.join(', ')}`]];
}
