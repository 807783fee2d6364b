/** The record that each run leaves in its lake, for `cryptodl runs`, reports and alerts. */
import { randomBytes } from 'node:crypto';
import * as v from 'valibot';
import { OUTCOME_KINDS } from '../../model/outcome.js';
import type { RunSummary } from '../report/run-summary.js';

// A lake may come from another person. Its records have lists and texts of the sizes that the program writes, except for
// options, which are as long as they were given.
const MOST_ENTRIES = 1000;
const text = v.pipe(v.string(), v.maxLength(10_000));
const list = <T extends v.GenericSchema>(items: T) =>
  v.pipe(v.array(items), v.maxLength(MOST_ENTRIES), v.readonly());
const map = <T extends v.GenericSchema>(values: T) =>
  v.pipe(v.record(text, values), v.maxEntries(MOST_ENTRIES));
const count = v.pipe(v.number(), v.minValue(0));
const counts = map(count);
const counted = <const Name extends string>(...names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, count])) as Record<Name, typeof count>;
const percentiles = counted('p50', 'p95', 'p99');
const outcomes = v.object(counted(...OUTCOME_KINDS));
const instant = v.pipe(v.string(), v.isoTimestamp());

/** What is known at the start of a run. */
const BEGUN = {
  v: v.literal(1),
  /** The name of the file without its ending: the start of the run and a random number. */
  id: text,
  verb: text,
  job: v.optional(text),
  tool: text,
  startedAt: instant,
  options: map(v.pipe(v.array(v.string()), v.readonly())),
};

/** The parts of a record that readers use. Other fields are ignored, so that older programs read newer records. */
const RunSchema = v.object({
  ...BEGUN,
  node: text,
  platform: text,
  endedAt: instant,
  summary: v.object({
    ...counted('undone', 'bytes', 'rows', 'files', 'requests', 'changed', 'withdrawn', 'shorter'),
    ...counted('elapsedMs', 'peakMemoryBytes'),
    outcomes,
    absent: counts,
    failed: counts,
    failures: v.nullable(text),
    datasets: list(
      v.object({
        ...counted('holes', 'rows', 'bytes'),
        market: text,
        dataset: text,
        outcomes,
        days: v.object(counted('held', 'missing')),
        newest: v.nullable(text),
        newestEndMs: v.nullable(v.number()),
        publicationDelayMs: v.nullable(count),
        unpublished: v.nullable(text),
        unpublishedEndMs: v.nullable(v.number()),
        freshUntilMs: v.optional(v.nullable(v.number()), null),
      }),
    ),
    network: v.object({
      ...counted('mostInFlight', 'concurrency'),
      retries: v.object({
        ...percentiles,
        ...counted('total', 'requests', 'succeeded'),
        reasons: counts,
      }),
      attemptMs: v.object(percentiles),
      errors: counts,
      hosts: map(v.object({ statuses: counts, attemptMs: v.object(percentiles), breaker: text })),
      limiter: v.object(counted('waits', 'waitedMs', 'refusals')),
    }),
    alerts: list(v.object({ id: text, text, advice: text })),
    exitCode: v.pipe(v.number(), v.integer(), v.minValue(0)),
  }),
  timeline: v.object({
    boundsS: list(v.number()),
    // The intervals of a run. Counts are of the interval, levels are those at its end: `atMs` since the downloads began. `latency`: answered attempts,
    // one count for each of `boundsS`, and one for longer ones.
    points: list(
      v.object({
        ...counted('atMs', 'objects', 'bytes', 'attempts', 'failed', 'retries'),
        ...counted('inFlight', 'concurrency', 'writing', 'toWrite'),
        latency: list(count),
      }),
    ),
  }),
});

export type RunRecord = v.InferOutput<typeof RunSchema>;

export interface WrittenRun extends Omit<RunRecord, 'summary'> {
  readonly summary: RunSummary;
}

/** A run that has begun. Its record replaces this one; a run that was killed or could not begin leaves only this one. */
const StartSchema = v.object({
  ...BEGUN,
  /** Set once the orders of the run are in the lake. */
  isOrdered: v.optional(v.literal(true)),
  /** The error that ended the run before its work. */
  ended: v.optional(v.object({ at: instant, code: text, message: text })),
});

export type RunStart = v.InferOutput<typeof StartSchema>;

/** These throw for anything else. */
export const parseRun = v.parser(RunSchema);
export const parseStart = v.parser(StartSchema);

/** `20261121T070000123Z-1f0c22aa` */
export function runId(startedAtMs: number): string {
  const instantText = new Date(startedAtMs).toISOString().replaceAll(/[-:.]/g, '');
  return `${instantText}-${randomBytes(4).toString('hex')}`;
}
