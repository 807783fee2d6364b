/** The rules and the dashboard of config/monitoring use only metrics, labels and job names that exist. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { LEAST, THRESHOLDS } from '../../src/monitor/alerts.js';
import { METRICS } from '../../src/monitor/prometheus-metrics.js';

const textOf = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');

/** A histogram has further names. */
const known = new Set(
  Object.entries(METRICS).flatMap(([name, { type }]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  ),
);

const FILES = ['alerts.yml', 'alerts.test.yml', 'dashboard.json'].map((name) => `config/monitoring/${name}`);

describe.each(FILES)('%s', (path) => {
  it('names only metrics that exist', () => {
    const names = textOf(path).match(/cryptodl_\w+/g) ?? [];
    expect(names.length).toBeGreaterThan(5);
    expect([...new Set(names)].filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('the rules', () => {
  const { groups } = parse(textOf('config/monitoring/alerts.yml')) as {
    groups: { rules: { alert: string; expr: string }[] }[];
  };
  const rules = Object.fromEntries(
    groups.flatMap(({ rules: own }) =>
      own.map(({ alert, expr }) => [alert, expr.replaceAll(/\s+/g, ' ').trim()]),
    ),
  );
  /** The comparisons of a rule with their numbers. */
  const boundsOf = (expression: string): string[] => expression.match(/(?<= )[<>]=? [\d.]+/g) ?? [];

  it('have the thresholds of the alerts that the program raises', () => {
    const { limiterTriggers, retryRate, retrySuccess, poolUse, coverage } = THRESHOLDS;
    expect(Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, boundsOf(rule)]))).toEqual({
      // The metric has the threshold.
      CryptodlNotFresh: [],
      CryptodlNoSuccess: ['> 2'],
      // A time is its threshold.
      CryptodlNeverSucceeded: [],
      CryptodlFailedAgain: ['>= 2'],
      CryptodlLowCoverage: [`< ${coverage}`, `>= ${LEAST.missingObjects}`],
      CryptodlLimiterTriggers: [`> ${limiterTriggers}`],
      CryptodlRetryRate: [`> ${retryRate}`, `>= ${LEAST.retries}`],
      CryptodlRetrySuccess: [`< ${retrySuccess}`, `>= ${LEAST.retriedRequests}`],
      CryptodlPoolUse: [`> ${poolUse}`],
    });
  });

  it('keep the machines, and the commands of a machine, apart', () => {
    const groupings = Object.values(rules).flatMap((rule) => rule.match(/ by \(.*?\)/g) ?? []);
    expect(groupings.length).toBeGreaterThan(10);
    expect(groupings.filter((grouping) => !grouping.startsWith(' by (job, instance, textfile'))).toEqual([]);
    for (const rule of Object.values(rules))
      expect(rule.match(/ by \(/g)).toHaveLength(rule.match(/cryptodl_/g)?.length ?? 0);
  });

  it('and those of the documents', () => {
    const percent = (share: number): string => `${share * 100} %`;
    const text = textOf('docs/monitoring.md').replaceAll(/\s+/g, ' ');
    const { limiterTriggers, retryRate, retrySuccess, poolUse, coverage } = THRESHOLDS;
    for (const [name, ...parts] of [
      ['LowCoverage', `less than ${percent(coverage)}`, `at least ${LEAST.missingObjects}`],
      ['LimiterTriggers', `more than ${limiterTriggers} requests per hour`],
      ['RetryRate', `more than ${percent(retryRate)}`, `at least ${LEAST.retries}`],
      ['RetrySuccess', `less than ${percent(retrySuccess)}`, `at least ${LEAST.retriedRequests}`],
      ['PoolUse', `more than ${percent(poolUse)}`],
    ] as const) {
      const [row = ''] = new RegExp(`\\| \`Cryptodl${name}\` .*?\\|.*?\\|`).exec(text) ?? [];
      expect([name, parts.filter((part) => !row.includes(part))]).toEqual([name, []]);
    }
  });
});

describe('docs/monitoring.md', () => {
  it('names only metrics that exist', () => {
    const names = textOf('docs/monitoring.md')
      .split('\n')
      .filter((line) => /^\| .*\?/.test(line))
      .flatMap((line) => line.match(/`\w+`/g) ?? [])
      .map((name) => name.replaceAll('`', ''));
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !(`cryptodl_${name}` in METRICS))).toEqual([]);
  });
});

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly fieldConfig: { readonly defaults: { readonly unit?: string } };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource: { readonly uid: string };
  readonly targets: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly instant?: boolean;
    readonly datasource: { readonly uid: string };
  }[];
}

describe('the dashboard', () => {
  const { panels, schemaVersion, templating } = JSON.parse(textOf('config/monitoring/dashboard.json')) as {
    panels: Panel[];
    schemaVersion: number;
    templating: { list: { name: string; type: string }[] };
  };
  const targets = panels.flatMap((panel) => panel.targets.map((target) => ({ panel, ...target })));

  it('has the form of Grafana 10 and later: ids, units, and queries with variables that exist', () => {
    expect(schemaVersion).toBe(39);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(panels.filter(({ fieldConfig }) => fieldConfig.defaults.unit === undefined)).toEqual([]);
    for (const { refId, panel } of targets)
      expect(panel.targets.filter((other) => other.refId === refId)).toHaveLength(1);
    expect(templating.list.map(({ name, type }) => [name, type])).toEqual([
      ['datasource', 'datasource'],
      ['instance', 'query'],
    ]);
    const variables = targets.flatMap(({ expr }) => expr.match(/\$\w+/g) ?? []);
    expect(new Set(variables)).toEqual(new Set(['$instance', '$__rate_interval']));
    expect(targets.filter(({ expr }) => !expr.includes('instance=~"$instance"'))).toEqual([]);
  });

  it('has single values that stay between the runs, and rates over the interval of Grafana', () => {
    for (const { panel, expr, instant } of targets) {
      const isSingle = panel.type === 'stat';
      expect([panel.title, instant === true, expr.includes('last_over_time')]).toEqual([
        panel.title,
        isSingle,
        isSingle,
      ]);
      if (/(?:_total|_bucket)\{.*\[/.test(expr)) expect(expr).toMatch(/rate\(.*\[\$__rate_interval\]/);
    }
  });

  it('has the median and the high percentiles of the latency', () => {
    const shares = targets.flatMap(({ expr }) => /^histogram_quantile\(([\d.]+)/.exec(expr)?.[1] ?? []);
    expect(shares).toEqual(['0.5', '0.95', '0.99']);
  });

  it('has the panels that show whether runs are healthy', () => {
    const titles = panels.map(({ title }) => title);
    expect(titles).toEqual(
      expect.arrayContaining([
        'Success rate by host',
        'Latency of requests',
        'Concurrency',
        'Memory',
        'Backlog',
        'Age of the newest period',
      ]),
    );
    expect(new Set(titles).size).toBe(titles.length);
  });

  it('has the unit and the figures of each panel', () => {
    const figuresOf = ({ targets: own }: Panel): string[] =>
      own.flatMap(({ expr }) => [...expr.matchAll(/cryptodl_(\w+)/g)].map(([, name = '']) => name));
    expect(
      Object.fromEntries(
        panels.map((panel) => [panel.title, [panel.fieldConfig.defaults.unit, ...figuresOf(panel)]]),
      ),
    ).toEqual({
      'Age of the newest period': ['s', 'newest_period_end_timestamp_seconds'],
      Coverage: ['percentunit', 'coverage_ratio'],
      'Time since the last success': ['s', 'last_success_timestamp_seconds'],
      'Success rate by host': ['percentunit', 'requests_total', 'requests_total'],
      'Latency of requests': [
        's',
        'request_duration_seconds_bucket',
        'request_duration_seconds_bucket',
        'request_duration_seconds_bucket',
      ],
      Concurrency: ['short', 'objects_in_flight', 'concurrency_limit', 'pool_sockets_busy'],
      Backlog: ['short', 'queue_objects', 'files_waiting'],
      Memory: ['bytes', 'resident_memory_bytes', 'heap_used_bytes'],
      Throughput: ['Bps', 'received_bytes_total'],
      'Objects by outcome': ['short', 'objects_total'],
      'Retries by reason': ['reqps', 'retries_total'],
      'Limits and breakers': [
        'short',
        'limiter_refusals_total',
        'limiter_wait_seconds_total',
        'breaker_state',
      ],
      'Delay of the event loop': ['s', 'event_loop_delay_p50_seconds', 'event_loop_delay_p99_seconds'],
    });
  });

  it('has ages for times, and the share of answers that are no errors', () => {
    const times = targets.filter(({ expr }) => /_timestamp_seconds/.test(expr));
    expect(times.filter(({ expr }) => !expr.startsWith('time() - max by '))).toEqual([]);
    const [share = ''] = targets.flatMap(({ panel, expr }) =>
      panel.title === 'Success rate by host' ? expr : [],
    );
    const [good = '', all = ''] = share.split(' / ');
    expect(/status=~"(.*?)"/.exec(good)?.[1]).toBe('200|206|304|404');
    expect(all).toBe(good.replace(/, status=~".*?"/, ''));
  });

  it('takes its data source from a variable, because each Grafana names it differently', () => {
    const sources = [...panels, ...targets].map(({ datasource }) => datasource.uid);
    expect(new Set(sources)).toEqual(new Set([`\${datasource}`]));
  });

  it('has no panel over another one', () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
  });
});
