/** The metrics of `--prometheus-port` and `--prometheus-textfile`: names, types, labels and help. */

interface MetricSpec {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
}

/**
 * Units are seconds and bytes. Counters begin at 0 with the process. No label has values without a bound, such as symbols, keys
 * or paths. `run_job`, because Prometheus itself sets the label `job`.
 */
export const METRICS = {
  ...metrics('gauge', ['version'], {
    cryptodl_build_info: 'Version of cryptodl; the value is 1.',
  }),
  ...metrics('gauge', ['run_job'], {
    cryptodl_check_exit_code:
      'Verdict of cryptodl check after the last run: 0 complete, 3 a run may mend it, 4 the data cannot be had.',
    cryptodl_check_lacking_series: 'Series that lack data, by the orders of the lake.',
    cryptodl_last_run_timestamp_seconds: 'End of the last run.',
    cryptodl_last_run_exit_code: 'Exit code of the last run.',
    cryptodl_last_success_timestamp_seconds: 'End of the last run of the same selection with exit code 0.',
    cryptodl_failed_runs_in_a_row: 'Number of runs with failed objects since the last run without them.',
  }),
  ...metrics('counter', ['host', 'status'], {
    cryptodl_requests_total: 'Ended attempts of requests by HTTP status; status none: no answer.',
  }),
  ...metrics('counter', ['code'], {
    cryptodl_request_errors_total: 'Failed attempts of requests by error code.',
    cryptodl_object_failures_total: 'Failed objects by error code.',
  }),
  ...metrics('gauge', [], {
    cryptodl_requests_in_flight: 'Requests that are sent and not yet answered.',
    cryptodl_queue_objects: 'Objects of the plans that have no outcome yet.',
    cryptodl_objects_in_flight: 'Objects that are downloaded now.',
    cryptodl_concurrency_limit: 'Objects that may be downloaded at the same time.',
    cryptodl_files_writing: 'Files that are converted and written now.',
    cryptodl_files_waiting: 'Complete files that wait for a writer.',
    cryptodl_pool_sockets: 'Open direct connections.',
    cryptodl_pool_sockets_busy: 'Open direct connections with a request in flight.',
    cryptodl_pool_sockets_limit: 'Direct connections at most, of all jobs in progress together.',
    cryptodl_pool_requests_queued: 'Requests that wait for a connection.',
    cryptodl_elapsed_seconds: 'From the start of the command until now, or until its end.',
    cryptodl_event_loop_delay_p50_seconds: 'Median delay of the event loop.',
    cryptodl_event_loop_delay_p99_seconds: '99th percentile of the delay of the event loop.',
    cryptodl_event_loop_delay_max_seconds: 'Longest delay of the event loop.',
    cryptodl_heap_used_bytes: 'Used memory of the JavaScript heap.',
    cryptodl_resident_memory_bytes: 'Resident memory of the process.',
  }),
  ...metrics('counter', ['reason'], {
    cryptodl_retries_total: 'Retries by the error code of the attempt before.',
    cryptodl_lake_retries_total:
      'Retries of requests to the bucket of a lake, by the error code of the attempt before.',
  }),
  ...metrics('counter', [], {
    cryptodl_retried_requests_total: 'Requests with at least one retry that have ended.',
    cryptodl_retried_requests_succeeded_total: 'Requests with at least one retry that succeeded.',
    cryptodl_lake_sent_bytes_total: 'Bytes that were sent to the bucket of a lake.',
    cryptodl_lake_received_bytes_total: 'Bytes that were received from the bucket of a lake.',
    cryptodl_received_bytes_total: 'Bytes of the objects that were received and verified.',
  }),
  ...metrics('counter', ['host', 'method'], {
    cryptodl_lake_requests_total:
      'Ended attempts of requests to the bucket of a lake, by method; LIST: the listings.',
  }),
  ...metrics('gauge', ['host'], {
    cryptodl_breaker_state:
      'State of the circuit breaker of a host: 0 closed, 1 half-open, 2 open, 3 stopped until the end of the run.',
  }),
  ...metrics('counter', ['bucket'], {
    cryptodl_limiter_waits_total: 'Waits for a permit of the rate limit.',
    cryptodl_limiter_wait_seconds_total: 'Sum of the waits for a permit of the rate limit.',
    cryptodl_limiter_refusals_total:
      'Refusals because of a rate limit (429 and 418). Those of requests in flight together count as one.',
  }),
  ...metrics('counter', ['proxy'], {
    cryptodl_proxy_requests_total: 'Requests that were sent through one of several proxies.',
    cryptodl_proxy_failures_total: 'Requests that failed because the proxy did not work.',
    cryptodl_proxy_refusals_total: 'Requests that a host refused for the address of the proxy.',
  }),
  ...metrics('gauge', ['proxy'], {
    cryptodl_proxy_up: '1 while the proxy works, 0 while it is taken out.',
    cryptodl_proxy_paused_seconds:
      'Rest of the longest pause or ban of the proxy, after a refusal of its address.',
  }),
  ...metrics('gauge', ['group'], {
    cryptodl_egress_group_members: 'Programs of the egress group that were seen last.',
    cryptodl_egress_group_shared:
      '1 while Redis counts the requests of the egress group, 0 while this program takes its share alone.',
  }),
  ...metrics('counter', ['market', 'dataset', 'outcome'], {
    cryptodl_objects_total: 'Objects by outcome.',
  }),
  ...metrics('counter', ['market', 'dataset'], {
    cryptodl_rows_total: 'Rows that became part of the lake.',
    cryptodl_bytes_total: 'Bytes of the objects that became part of the lake, as downloaded.',
  }),
  ...metrics('gauge', ['market', 'dataset'], {
    cryptodl_coverage_ratio:
      'Of the days of the objects of the last plan that the archive should have: the share that the lake holds. Failures and holes lower it.',
    cryptodl_missing_objects:
      'Failures and holes of the last plan: objects that the archive should have and the lake lacks.',
    cryptodl_newest_period_end_timestamp_seconds:
      'End of the newest period that runs of this lake have written or found in it.',
    cryptodl_fresh_until_timestamp_seconds:
      'Time from which the publication of the next period is late: 2 days after the end of a day, 10 days after that of a month.',
    cryptodl_publication_delay_seconds:
      'From the end of the newest published period of the last plan to its publication.',
  }),
  ...metrics('histogram', ['host'], {
    cryptodl_request_duration_seconds:
      'From the request to the end of the answer, for attempts without an error.',
  }),
};

export type MetricName = keyof typeof METRICS;

export type Labels = Readonly<Record<string, string>>;

/** `helps`: the help of each metric. */
function metrics<Name extends string>(
  type: MetricSpec['type'],
  labels: readonly string[],
  helps: Readonly<Record<Name, string>>,
): Readonly<Record<Name, MetricSpec>> {
  const rows = Object.entries<string>(helps).map(([name, help]) => [name, { type, help, labels }] as const);
  return Object.fromEntries(rows) as Record<Name, MetricSpec>;
}
