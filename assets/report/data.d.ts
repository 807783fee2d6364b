/** The data of a report as `src/page` writes it. */
interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}
type Outcomes = Record<'ok' | 'partial' | 'skipped' | 'absent' | 'failed', number>;
interface TimelinePoint {
  atMs: number;
  objects: number;
  bytes: number;
  attempts: number;
  failed: number;
  retries: number;
  latency: number[];
  inFlight: number;
  concurrency: number;
  writing: number;
  toWrite: number;
}
interface Run {
  id: string;
  verb: string;
  job?: string;
  tool: string;
  node: string;
  platform: string;
  startedAt: string;
  endedAt: string;
  options: Record<string, string[]>;
  summary: {
    outcomes: Outcomes;
    undone: number;
    bytes: number;
    rows: number;
    files: number;
    requests: number;
    changed: number;
    withdrawn: number;
    shorter: number;
    elapsedMs: number;
    peakMemoryBytes: number;
    alerts: { id: string; text: string; advice: string }[];
    exitCode: number;
    network: {
      retries: Percentiles & {
        total: number;
        requests: number;
        succeeded: number;
        reasons: Record<string, number>;
      };
      attemptMs: Percentiles;
      errors: Record<string, number>;
      hosts: Record<string, { statuses: Record<string, number>; attemptMs: Percentiles; breaker: string }>;
      mostInFlight: number;
      limiter: { waits: number; waitedMs: number; refusals: number };
    };
  };
  timeline: { boundsS: number[]; points: TimelinePoint[] };
}
interface PastRun {
  id: string;
  verb: string;
  job: string | null;
  startedAt: string;
  elapsedMs: number;
  outcomes: Outcomes;
  requests: number;
  retries: number;
  bytes: number;
  rows: number;
  changed: number;
  withdrawn: number;
  shorter: number;
  exitCode: number;
}
interface Failure {
  kind: string;
  market: string;
  dataset: string;
  interval: string | null;
  symbol: string;
  period: string;
  code: string;
  attempts: number;
  retryable: boolean;
  message: string;
  at: string;
}
interface Publication {
  market: string;
  dataset: string;
  newest: string | null;
  newestEndMs: number | null;
  lastMs: number | null;
  medianMs: number | null;
  mostMs: number | null;
  runs: number;
}
interface Verdict {
  state: 'complete' | 'behind' | 'incomplete' | 'running';
  text: string;
  next: string | null;
}
interface Report {
  verdict: Verdict | null;
  made: string;
  version: string;
  lake: string;
  run: Run | null;
  history: PastRun[];
  publication: Publication[];
  failures: { path: string | null; entries: Failure[]; more: Record<string, number> };
  notes: string[];
  moreNotes: number;
}
/** `s` symbol, `p` percentage, `e` expected, `m` missing, `o` objects, `v` revisions, `f` first, `l` last, `d` first day, `r` runs of days: the character of a state, and the number of days. */
interface SeriesRow {
  s: string;
  p: string;
  e: number;
  m: number;
  o: number;
  v: number;
  f: string | null;
  l: string | null;
  d: number;
  r: string;
}
type DayState = [percent: number | null, reason: string | null];
interface Group {
  name: string;
  unit: 'rows' | 'days';
  rows: SeriesRow[];
  states: DayState[];
  gaps: { span: string; symbols: string; missing: string; reason: string; series: number }[];
  moreGaps: number;
}
