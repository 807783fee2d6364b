/** The time of a run by phase, in wall time, and the time of its objects by stage. */
import { durationText } from '../model/units.js';

/**
 * `wait`: a requested object is not in flight: permits, sockets, retries, an open breaker, a late sidecar ·
 * `transfer`: its attempts in flight · `check`: unpacking of zips, reading back of files · `convert`: rows become a file ·
 * `commit`: publishing of files and manifest lines.
 */
export const STAGES = ['wait', 'transfer', 'check', 'convert', 'commit'] as const;
export type Stage = (typeof STAGES)[number];

/** Whole milliseconds. Apart from rounding, `planMs`, `pausedMs` and `workMs` add up to `elapsedMs`. */
export interface TimeFigures {
  /** Since the command began. */
  readonly elapsedMs: number;
  /** From the beginning to the first object, without pauses: start-up, listing, plan, opening of the lake. */
  readonly planMs: number;
  /** Waits of the whole run: `--jitter`, `--wait-for-publication`, `--wait-lock`, and between rounds. */
  readonly pausedMs: number;
  readonly workMs: number;
  /** Sums over concurrent objects and files. They are no wall time; only their shares have a meaning. */
  readonly stagesMs: Readonly<Record<Stage, number>>;
}

/** Shorter runs get no line with their times. */
const SHOWN_AFTER_MS = 10_000;

/** For example `plan 18s, work 38.5s; of the objects' time 5 % wait, 95 % transfer`; undefined for a short run. */
export function timeText({ elapsedMs, planMs, pausedMs, workMs, stagesMs }: TimeFigures): string | undefined {
  if (elapsedMs <= SHOWN_AFTER_MS) return undefined;
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
