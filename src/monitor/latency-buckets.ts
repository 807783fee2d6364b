/** The buckets in which monitoring counts the latency of attempts. */

/** Upper bounds in seconds. The archive answers most requests in less than 0.1 s. */
export const LATENCY_BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10] as const;

/** The index of the first bound that is not below the latency; the number of bounds if all are. */
export function bucketOf(seconds: number): number {
  const at = LATENCY_BOUNDS_S.findIndex((bound) => seconds <= bound);
  return at < 0 ? LATENCY_BOUNDS_S.length : at;
}
