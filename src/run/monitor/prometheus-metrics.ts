/** The metrics of `--prometheus-port` and `--prometheus-textfile`: names, types, labels and help. */

interface MetricSpec {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
}

/**
 * Units are seconds and bytes. Counters begin at 0 with the process. No label has values without a bound, such as symbols, keys
 * or paths.
 */
export const METRICS = {
  cryptodl_build_info: gauge('Version of cryptodl; the value is 1.', 'version'),

  cryptodl_check_exit_code: gauge(
    'Verdict of cryptodl check after the last run: 0 complete, 3 a run may mend it, 4 the data cannot be had.',
    'run_job',
  ),
  cryptodl_check_lacking_series: gauge('Series that lack data, by the orders of the lake.', 'run_job'),

  cryptodl_requests_total: counter(
    'Ended attempts of requests by HTTP status; status none: no answer.',
    'host',
    'status',
  ),
  cryptodl_request_duration_seconds: {
    type: 'histogram',
    help: 'From the request to the end of the answer, for attempts without an error.',
    labels: ['host'],
  },
  cryptodl_request_errors_total: counter('Failed attempts of requests by error code.', 'code'),
  cryptodl_requests_in_flight: gauge('Requests that are sent and not yet answered.'),
  cryptodl_retries_total: counter('Retries by the error code of the attempt before.', 'reason'),
  cryptodl_retried_requests_total: counter('Requests with at least one retry that have ended.'),
  cryptodl_retried_requests_succeeded_total: counter('Requests with at least one retry that succeeded.'),
  cryptodl_lake_requests_total: counter(
    'Ended attempts of requests to the bucket of a lake, by method; LIST: the listings.',
    'host',
    'method',
  ),
  cryptodl_lake_retries_total: counter(
    'Retries of requests to the bucket of a lake, by the error code of the attempt before.',
    'reason',
  ),
  cryptodl_lake_sent_bytes_total: counter('Bytes that were sent to the bucket of a lake.'),
  cryptodl_lake_received_bytes_total: counter('Bytes that were received from the bucket of a lake.'),
  cryptodl_breaker_state: gauge(
    'State of the circuit breaker of a host: 0 closed, 1 half-open, 2 open, 3 stopped until the end of the run.',
    'host',
  ),

  cryptodl_limiter_waits_total: counter('Waits for a permit of the rate limit.', 'bucket'),
  cryptodl_limiter_wait_seconds_total: counter('Sum of the waits for a permit of the rate limit.', 'bucket'),
  cryptodl_limiter_refusals_total: counter(
    'Refusals because of a rate limit (429 and 418). Those of requests in flight together count as one.',
    'bucket',
  ),

  cryptodl_proxy_requests_total: counter('Requests that were sent through one of several proxies.', 'proxy'),
  cryptodl_proxy_failures_total: counter('Requests that failed because the proxy did not work.', 'proxy'),
  cryptodl_proxy_refusals_total: counter(
    'Requests that a host refused for the address of the proxy.',
    'proxy',
  ),
  cryptodl_proxy_up: gauge('1 while the proxy works, 0 while it is taken out.', 'proxy'),
  cryptodl_proxy_paused_seconds: gauge(
    'Rest of the longest pause or ban of the proxy, after a refusal of its address.',
    'proxy',
  ),
  cryptodl_egress_group_members: gauge('Programs of the egress group that were seen last.', 'group'),
  cryptodl_egress_group_shared: gauge(
    '1 while Redis counts the requests of the egress group, 0 while this program takes its share alone.',
    'group',
  ),

  cryptodl_queue_objects: gauge('Objects of the plans that have no outcome yet.'),
  cryptodl_objects_in_flight: gauge('Objects that are downloaded now.'),
  cryptodl_concurrency_limit: gauge('Objects that may be downloaded at the same time.'),
  cryptodl_files_writing: gauge('Files that are converted and written now.'),
  cryptodl_files_waiting: gauge('Complete files that wait for a writer.'),
  cryptodl_pool_sockets: gauge('Open direct connections.'),
  cryptodl_pool_sockets_busy: gauge('Open direct connections with a request in flight.'),
  cryptodl_pool_sockets_limit: gauge('Direct connections at most, of all jobs in progress together.'),
  cryptodl_pool_requests_queued: gauge('Requests that wait for a connection.'),

  cryptodl_objects_total: counter('Objects by outcome.', 'market', 'dataset', 'outcome'),
  cryptodl_object_failures_total: counter('Failed objects by error code.', 'code'),
  cryptodl_rows_total: counter('Rows that became part of the lake.', 'market', 'dataset'),
  cryptodl_bytes_total: counter(
    'Bytes of the objects that became part of the lake, as downloaded.',
    'market',
    'dataset',
  ),
  cryptodl_received_bytes_total: counter('Bytes of the objects that were received and verified.'),

  cryptodl_coverage_ratio: gauge(
    'Of the days of the objects of the last plan that the archive should have: the share that the lake holds. Failures and holes lower it.',
    'market',
    'dataset',
  ),
  cryptodl_missing_objects: gauge(
    'Failures and holes of the last plan: objects that the archive should have and the lake lacks.',
    'market',
    'dataset',
  ),
  cryptodl_newest_period_end_timestamp_seconds: gauge(
    'End of the newest period that runs of this lake have written or found in it.',
    'market',
    'dataset',
  ),
  cryptodl_fresh_until_timestamp_seconds: gauge(
    'Time from which the publication of the next period is late: 2 days after the end of a day, 10 days after that of a month.',
    'market',
    'dataset',
  ),
  cryptodl_publication_delay_seconds: gauge(
    'From the end of the newest published period of the last plan to its publication.',
    'market',
    'dataset',
  ),

  cryptodl_last_run_timestamp_seconds: gauge('End of the last run.', 'run_job'),
  cryptodl_last_run_exit_code: gauge('Exit code of the last run.', 'run_job'),
  cryptodl_last_success_timestamp_seconds: gauge(
    'End of the last run of the same selection with exit code 0.',
    'run_job',
  ),
  cryptodl_failed_runs_in_a_row: gauge(
    'Number of runs with failed objects since the last run without them.',
    'run_job',
  ),
  cryptodl_elapsed_seconds: gauge('From the start of the command until now, or until its end.'),

  cryptodl_event_loop_delay_p50_seconds: gauge('Median delay of the event loop.'),
  cryptodl_event_loop_delay_p99_seconds: gauge('99th percentile of the delay of the event loop.'),
  cryptodl_event_loop_delay_max_seconds: gauge('Longest delay of the event loop.'),
  cryptodl_heap_used_bytes: gauge('Used memory of the JavaScript heap.'),
  cryptodl_resident_memory_bytes: gauge('Resident memory of the process.'),
} as const satisfies Readonly<Record<string, MetricSpec>>;

export type MetricName = keyof typeof METRICS;

/** `run_job`, because Prometheus itself sets the label `job`. */
export type Labels = Readonly<Record<string, string>>;

function counter(help: string, ...labels: readonly string[]): MetricSpec {
  return { type: 'counter', help, labels };
}

function gauge(help: string, ...labels: readonly string[]): MetricSpec {
  return { type: 'gauge', help, labels };
}
