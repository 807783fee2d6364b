// The sections about runs: the chosen one, its failures, and the history.

/** @param {Run} run */
function runSection(run) {
  const { summary } = run;
  const { outcomes, network } = summary;
  /** @type {[string, Content, string?][]} */
  const figures = [
    ['ok', outcomes.ok],
    ...optional('partial', outcomes.partial),
    ['skipped', outcomes.skipped],
    ['absent', outcomes.absent],
    ['failed', outcomes.failed, outcomes.failed > 0 ? 'bad' : 'good'],
    ...optional('not done', summary.undone),
    ['size', bytesText(summary.bytes)],
    ['rows', summary.rows],
    ['files', summary.files],
    ['duration', durationText(summary.elapsedMs)],
    ['requests', summary.requests],
    [
      'retries',
      `${numberText(network.retries.total)} (${percentText(network.retries.total, summary.requests)})`,
    ],
    ['peak memory', bytesText(summary.peakMemoryBytes)],
    ['exit code', summary.exitCode, summary.exitCode === 0 ? 'good' : 'bad'],
  ];
  const list = el(
    'dl',
    { class: 'figures' },
    ...figures.map(([name, value, kind = '']) =>
      el('div', { class: `card ${kind}` }, el('dt', {}, name), el('dd', {}, value)),
    ),
  );
  const name = run.job === undefined ? run.verb : `${run.job} (${run.verb})`;
  const about = `${name}, ${timeText(run.startedAt)} to ${timeText(run.endedAt)} UTC, ${run.tool}, Node ${run.node}, ${run.platform}`;
  const options = Object.entries(run.options);
  return section(
    'run',
    'Run',
    el('p', {}, el('code', {}, run.id), ` ${about}`),
    list,
    summary.alerts.length === 0
      ? ''
      : el(
          'ul',
          { class: 'alerts', 'aria-label': 'Alerts' },
          ...summary.alerts.map(({ text, advice }) => el('li', {}, `${text}: ${advice}`)),
        ),
    folded('Options of the run', () =>
      table(
        'Options',
        [
          { title: 'option', of: ([option]) => option },
          { title: 'value', of: ([, values]) => values.join(', '), isWide: true },
        ],
        options,
      ),
    ),
  );
}

/**
 * @param {string} name
 * @param {number} value
 * @returns {[string, Content, string?][]}
 */
function optional(name, value) {
  return value > 0 ? [[name, value, 'bad']] : [];
}

/** @param {Run} run */
function courseSection({ timeline: { points, boundsS } }) {
  const xs = points.map(({ atMs }) => atMs / 1000);
  const seconds = points.map(({ atMs }, at) => (atMs - (points[at - 1]?.atMs ?? 0)) / 1000);
  const rate = (/** @type {'bytes' | 'objects'} */ name) =>
    points.map((point, at) => ((seconds[at] ?? 0) > 0 ? point[name] / (seconds[at] ?? 1) : null));
  const latency = (/** @type {number} */ share) =>
    points.map((point) => percentileOf(point.latency, boundsS, share));
  const common = {
    xTitle: 'time in the run',
    xs,
    xText: clockText,
  };
  const count = (/** @type {number} */ value) => numberText(value);
  const wait = (/** @type {number} */ value) => durationText(value * 1000);
  return section(
    'course',
    'Course of the run',
    el(
      'div',
      { class: 'charts' },
      chart({
        ...common,
        title: 'Throughput',
        lines: [
          { label: 'bytes per second', values: rate('bytes'), text: (value) => `${bytesText(value)}/s` },
        ],
      }),
      chart({
        ...common,
        title: 'Objects per second',
        lines: [{ label: 'objects per second', values: rate('objects'), text: count }],
      }),
      chart({
        ...common,
        title: 'Latency of attempts',
        lines: [
          { label: 'P50', values: latency(0.5), text: wait },
          { label: 'P95', values: latency(0.95), text: wait },
          { label: 'P99', values: latency(0.99), text: wait },
        ],
      }),
      chart({
        ...common,
        title: 'Concurrency',
        lines: [
          { label: 'limit', values: points.map(({ concurrency }) => concurrency), text: count },
          { label: 'in flight', values: points.map(({ inFlight }) => inFlight), text: count },
          { label: 'waiting for a writer', values: points.map(({ toWrite }) => toWrite), text: count },
        ],
      }),
    ),
    note('The latencies are estimates: the record of a run counts its attempts in buckets.'),
  );
}

/** @param {Run} run */
function networkSection({ summary: { network } }) {
  const { retries, errors, hosts } = network;
  return section(
    'network',
    'Requests and retries',
    barTable('Retries by reason', 'reason', retries.reasons),
    note(
      retries.requests === 0
        ? 'No request was retried.'
        : `${numberText(retries.requests)} requests were retried; ${percentText(retries.succeeded, retries.requests)} of them succeeded.`,
    ),
    barTable('Failed attempts by error', 'error', errors),
    table(
      'Hosts',
      [
        { title: 'host', of: ([host]) => host },
        {
          title: 'answers by status',
          of: ([, { statuses }]) =>
            Object.entries(statuses)
              .map(([status, count]) => `${status}: ${numberText(count)}`)
              .join(', '),
        },
        { title: 'P50', isNumber: true, of: ([, { attemptMs }]) => durationText(attemptMs.p50) },
        { title: 'P95', isNumber: true, of: ([, { attemptMs }]) => durationText(attemptMs.p95) },
        { title: 'P99', isNumber: true, of: ([, { attemptMs }]) => durationText(attemptMs.p99) },
        { title: 'breaker', of: ([, { breaker }]) => breaker },
      ],
      Object.entries(hosts),
    ),
  );
}

/**
 * Counts as a table with bars; nothing without counts.
 * @param {string} caption
 * @param {string} what
 * @param {Record<string, number>} counts
 */
function barTable(caption, what, counts) {
  const rows = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .toSorted(([, a], [, b]) => b - a);
  const most = rows[0]?.[1] ?? 0;
  if (rows.length === 0) return document.createDocumentFragment();
  return table(
    caption,
    [
      { title: what, of: ([name]) => name },
      { title: 'count', isNumber: true, of: ([, count]) => count },
      {
        title: 'share',
        of: ([, count]) =>
          el('meter', {
            min: '0',
            max: String(most),
            value: String(count),
            'aria-label': `${count} of ${most}`,
          }),
      },
    ],
    rows,
  );
}

/** @param {Report} report */
function failureSection({ run, failures: { path, entries, more } }) {
  const failed = run?.summary.outcomes.failed ?? 0;
  if (entries.length === 0)
    return section(
      'failures',
      'Failures',
      note(
        failed === 0
          ? 'No object failed.'
          : 'The failure report of this run is gone or empty: cryptodl retry has replaced it, or it was moved.',
      ),
    );
  const texts = entries.map((entry) => Object.values(entry).join(' ').toLowerCase());
  const left = Object.values(more).reduce((all, count) => all + count, 0);
  const place = el('div', { 'aria-live': 'polite' });
  /** @type {Column<Failure>[]} */
  const columns = [
    { title: 'symbol', of: ({ symbol }) => symbol },
    { title: 'period', of: ({ period }) => period },
    {
      title: 'series',
      of: ({ market, dataset, interval }) => [market, dataset, interval ?? ''].join(' ').trim(),
    },
    { title: 'code', of: ({ kind, code }) => (kind === 'failed' ? code : `${code} (not a failure)`) },
    { title: 'retry', of: ({ retryable }) => (retryable ? 'helps' : 'does not help') },
    { title: 'attempts', isNumber: true, of: ({ attempts }) => attempts },
    { title: 'message', of: ({ message }) => message, isWide: true },
    { title: 'time', of: ({ at }) => timeText(at) },
  ];
  const show = (/** @type {string} */ text) => {
    const found = entries.filter((_, at) => texts[at]?.includes(text));
    place.replaceChildren(
      table(
        `${numberText(found.length)} of ${numberText(entries.length + left)} failures and holes`,
        columns,
        found,
      ),
    );
  };
  show('');
  return section(
    'failures',
    'Failures',
    el(
      'p',
      {},
      'From ',
      el('code', {}, path ?? ''),
      '. ',
      el('code', {}, `cryptodl retry ${path ?? ''}`),
      ' requests them again.',
    ),
    filterField('Filter ', show),
    place,
    left === 0 ? '' : barTable('Only in the failure report', 'code', more),
  );
}

/** @param {PastRun[]} history */
function historySection(history) {
  const xs = history.map(({ startedAt }) => Date.parse(startedAt) / 1000);
  const common = {
    xTitle: 'start of the run',
    xs,
    xText: (/** @type {number} */ x) => timeText(new Date(x * 1000).toISOString()),
    isTime: true,
    hasPoints: true,
  };
  return section(
    'history',
    history.length === 1 ? 'History: one run' : `History: the last ${history.length} runs`,
    el(
      'div',
      { class: 'charts' },
      chart({
        ...common,
        title: 'Retries per request',
        lines: [
          {
            label: 'retries per request',
            values: history.map(({ retries, requests }) => (requests === 0 ? null : retries / requests)),
            text: (value) => percentText(value, 1),
          },
        ],
      }),
      chart({
        ...common,
        title: 'Failed objects',
        lines: [
          {
            label: 'failed objects',
            values: history.map(({ outcomes }) => outcomes.failed),
            text: numberText,
          },
        ],
      }),
      chart({
        ...common,
        title: 'Duration',
        lines: [{ label: 'duration', values: history.map(({ elapsedMs }) => elapsedMs), text: durationText }],
      }),
    ),
    folded('All runs', () =>
      table(
        'Runs, newest first',
        [
          { title: 'start (UTC)', of: ({ startedAt }) => timeText(startedAt) },
          { title: 'verb', of: ({ verb, job }) => (job === null ? verb : `${job} (${verb})`) },
          { title: 'ok', isNumber: true, of: ({ outcomes }) => outcomes.ok },
          { title: 'skipped', isNumber: true, of: ({ outcomes }) => outcomes.skipped },
          { title: 'failed', isNumber: true, of: ({ outcomes }) => outcomes.failed },
          { title: 'absent', isNumber: true, of: ({ outcomes }) => outcomes.absent },
          { title: 'requests', isNumber: true, of: ({ requests }) => requests },
          { title: 'retries', isNumber: true, of: ({ retries, requests }) => percentText(retries, requests) },
          { title: 'size', isNumber: true, of: ({ bytes }) => bytesText(bytes) },
          { title: 'duration', isNumber: true, of: ({ elapsedMs }) => durationText(elapsedMs) },
          { title: 'exit code', isNumber: true, of: ({ exitCode }) => exitCode },
          { title: 'id', of: ({ id }) => el('code', {}, id) },
        ],
        history.toReversed(),
      ),
    ),
  );
}

/** @param {Report} report */
function publicationSection({ publication, made }) {
  const delay = (/** @type {number | null} */ ms) => (ms === null ? '–' : durationText(ms));
  return section(
    'publication',
    'Publication delay',
    note(
      'From the end of a period to its publication in the archive, as the runs of the history saw it. REST has no publication.',
    ),
    table(
      'Publication delay by dataset',
      [
        { title: 'dataset', of: ({ market, dataset }) => `${market} ${dataset}` },
        { title: 'newest period', of: ({ newest }) => newest ?? '–' },
        {
          title: 'age of its end',
          isNumber: true,
          of: ({ newestEndMs }) =>
            newestEndMs === null ? '–' : durationText(Math.max(0, Date.parse(made) - newestEndMs)),
        },
        { title: 'last delay', isNumber: true, of: ({ lastMs }) => delay(lastMs) },
        { title: 'median', isNumber: true, of: ({ medianMs }) => delay(medianMs) },
        { title: 'longest', isNumber: true, of: ({ mostMs }) => delay(mostMs) },
        { title: 'runs', isNumber: true, of: ({ runs }) => runs },
      ],
      publication,
    ),
  );
}

/**
 * @param {PastRun[]} history
 * @param {Group[]} groups
 */
function revisionSection(history, groups) {
  const revised = history.filter(({ changed, withdrawn, shorter }) => changed + withdrawn + shorter > 0);
  const held = groups
    .map(({ name, rows }) => ({
      name,
      objects: sum(rows.map(({ o }) => o)),
      revisions: sum(rows.map(({ v }) => v)),
    }))
    .filter(({ revisions }) => revisions > 0);
  return section(
    'revisions',
    'Revisions',
    note('The archive sometimes replaces or removes files that it has published.'),
    revised.length === 0
      ? note('No run of the history met a revision.')
      : table(
          'Runs that met revisions, newest first',
          [
            { title: 'start (UTC)', of: ({ startedAt }) => timeText(startedAt) },
            { title: 'changed', isNumber: true, of: ({ changed }) => changed },
            { title: 'withdrawn', isNumber: true, of: ({ withdrawn }) => withdrawn },
            { title: 'shorter, not taken', isNumber: true, of: ({ shorter }) => shorter },
          ],
          revised.toReversed(),
        ),
    held.length === 0
      ? ''
      : table(
          'Objects of the lake that a revision replaced',
          [
            { title: 'series', of: ({ name }) => name },
            { title: 'revisions', isNumber: true, of: ({ revisions }) => revisions },
            { title: 'objects', isNumber: true, of: ({ objects }) => objects },
          ],
          held,
        ),
  );
}

/** @param {readonly number[]} numbers */
function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
