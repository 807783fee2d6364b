/** The numbers of jobs that were done in the last minutes, from the figures that BullMQ keeps when a job ends. */

const MINUTE_MS = 60_000;

interface JobMetrics {
  readonly meta: {
    /** Jobs that were done until now, and before the minute of `prevTS`. */
    readonly count: number;
    readonly prevCount: number;
    /** Milliseconds: a time in the last minute in which a job was done; 0 if none was. */
    readonly prevTS: number;
  };
  /** Jobs in each minute before that of `prevTS`, the latest first. */
  readonly data: readonly number[];
}

/** The jobs in each of the last full minutes, the latest first. Minutes before the first job are left out. */
export function donePerMinute({ meta, data }: JobMetrics, nowMs: number, most: number): number[] {
  if (meta.prevTS === 0) return [];
  const since = Math.floor(nowMs / MINUTE_MS) - Math.floor(meta.prevTS / MINUTE_MS);
  if (since <= 0) return data.slice(0, most);
  const idle = Array.from({ length: Math.min(since - 1, most) }, () => 0);
  return [...idle, meta.count - meta.prevCount, ...data].slice(0, most);
}
