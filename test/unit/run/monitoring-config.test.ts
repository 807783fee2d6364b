/** The rules and the dashboard of config/monitoring use only metrics, labels and job names that exist. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { LEAST, THRESHOLDS } from '../../../src/run/monitor/alerts.js';
import { METRICS } from '../../../src/run/monitor/prometheus-metrics.js';

const textOf = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), 'utf8');

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
      // A verdict is its threshold.
      CryptodlIncomplete: [],
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
