/** The data of jobs: what a worker takes from a queue, and what it refuses. */
import { describe, expect, it } from 'vitest';
import { failuresIn } from '../../src/workers/hand-over.js';
import { jobData, jobId, lakeProblem, parseFailure, parseJob } from '../../src/workers/job-data.js';
import { parsePlan, planCommand, planData, planId, resolvePlan } from '../../src/workers/plan-data.js';
import { resolveOptions } from '../../src/options/resolve.js';
import type { RawValues } from '../../src/options/resolve.js';
import { loadBinance } from '../../src/source/binance/binance.js';
import { priorityOf } from '../../src/workers/add-jobs.js';

const OPTIONS = {
  market: ['um'],
  dataset: ['klines'],
  interval: ['1m'],
  symbols: ['BTCUSDT'],
  from: ['2024-01-01'],
  to: ['2024-12-31'],
  out: ['s3://lake/data'],
};
const job = jobData('vision', OPTIONS);

describe('a job', () => {
  it('passes the queue unchanged', () => {
    expect(parseJob(JSON.parse(JSON.stringify(job)))).toEqual(job);
  });

  it('has the same name for the same work, and another for other files', () => {
    const same = jobData('vision', Object.fromEntries(Object.entries(OPTIONS).toReversed()));
    expect(jobId(same)).toBe(jobId(job));
    expect(jobId(job)).toMatch(/^vision~um~klines~1m~BTCUSDT~2024-01-01~2024-12-31~[0-9a-f]{12}$/);
    for (const change of [{ format: ['csv'] }, { numbers: ['string'] }, { out: ['s3://other'] }])
      expect(jobId(jobData('vision', { ...OPTIONS, ...change }))).not.toBe(jobId(job));
  });

  it.each([
    ['another verb', { v: 1, verb: 'serve', options: OPTIONS }],
    ['a list in a file', { ...job, options: { ...OPTIONS, symbols: ['@/etc/passwd'] } }],
    ['a pattern', { ...job, options: { ...OPTIONS, symbols: ['*USDT'] } }],
    ['a path', { ...job, options: { ...OPTIONS, symbols: ['../../x'] } }],
    ['an address', { ...job, options: { ...OPTIONS, 'archive-url': ['http://127.0.0.1'] } }],
    ['a folder for temporary files', { ...job, options: { ...OPTIONS, 'temp-dir': ['/etc'] } }],
    ['two symbols', { ...job, options: { ...OPTIONS, symbols: ['A', 'B'] } }],
    ['two datasets', { ...job, options: { ...OPTIONS, dataset: ['klines,trades'] } }],
    ['no range', { ...job, options: { ...OPTIONS, from: undefined } }],
    ['a number', { ...job, options: { ...OPTIONS, out: [1] } }],
    ['no options', { v: 1, verb: 'vision' }],
    ['text', 'text'],
    ['nothing', null],
  ])('with %s is refused', (_, data) => {
    expect(() => parseJob(data)).toThrow(/job/);
  });
});

function planOf(values: RawValues): ReturnType<typeof planData> {
  const layer = { origin: 'flag', values, nameOf: (name: string) => `--${name}` } as const;
  return planData('vision', resolveOptions('enqueue', [layer]), {
    symbols: ['BTCUSDT', '!*_*'],
    out: 's3://lake/data',
  });
}

describe('a job of a schedule', () => {
  const given = { symbols: ['all'], market: ['um,spot'], days: ['3'], priority: ['low'] };
  const plan = planOf(given);

  it('passes the queue unchanged', () => {
    expect(parsePlan(JSON.parse(JSON.stringify(plan)))).toEqual(plan);
  });

  it('has the name of its download, however it is written and added', () => {
    for (const same of [
      { ...given, market: ['um', 'spot'] },
      { ...given, priority: ['high'], 'max-waiting': ['5'] },
      { ...given, 'include-today': ['no'] },
      { ...given, concurrency: ['5'] },
    ])
      expect(planId(planOf(same))).toBe(planId(plan));
    for (const other of [
      { days: ['4'] },
      { format: ['csv'] },
      { 'include-today': ['yes'] },
      { shard: ['0/2'] },
    ])
      expect(planId(planOf({ ...given, ...other }))).not.toBe(planId(plan));
  });

  it('is shown as a command', () => {
    expect(planCommand(planOf({ ...given, 'include-today': ['true'] }))).toBe(
      "vision --market um,spot --symbols 'BTCUSDT,!*_*' --include-today --days 3 --priority low --out s3://lake/data",
    );
  });

  it('takes neither what it writes nor its days from the options of its worker', () => {
    const values = { format: ['csv'], from: ['2020-01-01'], retries: ['7'], now: ['2026-11-01'] };
    const own = { origin: 'flag', values, nameOf: (name: string) => `--${name}` } as const;
    const { ofVerb, adding } = resolvePlan(plan, Date.UTC(2026, 10, 20), [own], loadBinance());
    expect(ofVerb.options).toMatchObject({ format: 'parquet', from: undefined, days: 3, retries: 7 });
    expect([ofVerb.options.nowMs, adding.priority]).toEqual([Date.UTC(2026, 10, 20), 'low']);
  });

  it.each([
    ['another verb', { ...plan, plan: 'serve' }],
    ['a list in a file', { ...plan, options: { ...plan.options, symbols: ['BTCUSDT, @/etc/passwd'] } }],
    ['standard input', { ...plan, options: { ...plan.options, symbols: ['-'] } }],
    ['a path', { ...plan, options: { ...plan.options, symbols: ['/etc/host.conf'] } }],
    ['an address', { ...plan, options: { ...plan.options, 'archive-url': ['http://127.0.0.1'] } }],
    ['a folder for temporary files', { ...plan, options: { ...plan.options, 'temp-dir': ['/etc'] } }],
    ['no symbols', { ...plan, options: { ...plan.options, symbols: undefined } }],
    ['two lakes', { ...plan, options: { ...plan.options, out: ['s3://a', 's3://b'] } }],
    ['a number', { ...plan, options: { ...plan.options, days: [3] } }],
    ['no options', { v: 2, plan: 'vision' }],
    ['another version', { ...plan, v: 1 }],
    ['text', 'text'],
    ['nothing', null],
  ])('with %s is refused', (_, data) => {
    expect(() => parsePlan(data)).toThrow(/job/);
  });
});

it('only failures of objects travel with a job', () => {
  const good = { key: 'a.zip', code: 'http-server-error', message: 'm' };
  const failures = [
    null,
    'text',
    { ...good, key: 1 },
    { ...good, code: 'redis-refused' },
    { ...good, code: 'constructor' },
    { ...good, message: undefined },
    { ...good, key: 'b.zip', message: 'x'.repeat(5000) },
    good,
  ];
  const found = failuresIn({ failures });
  expect([...found].map(([key, { code }]) => [key, code])).toEqual([
    ['b.zip', 'http-server-error'],
    ['a.zip', 'http-server-error'],
  ]);
  expect(found.get('b.zip')?.message.length).toBe(1000);
  for (const data of [null, 'text', {}, { failures: 'text' }, { failures: { 0: good } }])
    expect(failuresIn(data).size).toBe(0);
});

it('a worker writes only to the lake of its --out, or without one into buckets', () => {
  expect(lakeProblem('/lake', '/lake', true)).toBeUndefined();
  expect(lakeProblem('s3://lake', '/srv/data', false)).toBeUndefined();
  expect(lakeProblem('s3://lake', '/srv/data', true)).toContain('s3://lake');
  expect(lakeProblem('/elsewhere', '/srv/data', false)).toContain('/elsewhere');
});

it('a failure of the queue is checked', () => {
  const failure = { code: 'connection-lost', retryable: true, attempts: 3, message: 'lost', keys: ['a.zip'] };
  expect(parseFailure(failure)).toEqual(failure);
  expect(parseFailure({ ...failure, code: '<script>' })?.code).toBe('unknown');
  for (const progress of [0, null, 'text', {}, { code: 'usage' }])
    expect(parseFailure(progress)).toBeUndefined();
});

it('a waiting job is overtaken only by jobs that come within 12 hours per level', () => {
  const now = Date.parse('2026-11-23T00:00:00Z');
  const hours = (count: number): number => now + count * 3_600_000;
  expect(priorityOf('high', now)).toBeLessThan(priorityOf('normal', now));
  expect(priorityOf('high', hours(11))).toBeLessThan(priorityOf('normal', now));
  expect(priorityOf('high', hours(13))).toBeGreaterThan(priorityOf('normal', now));
  expect(priorityOf('high', hours(25))).toBeGreaterThan(priorityOf('low', now));
});
